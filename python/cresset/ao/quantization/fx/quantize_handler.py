"""What is known of a matched pattern: which node is its root, and whether it is a module of a user's class or one with a graph of its own."""

from abc import ABC

from cresset.fx import Node

from ..backend_config import ObservationType

__all__ = [
    "QuantizeHandler", "BinaryOpQuantizeHandler", "CatQuantizeHandler", "ConvReluQuantizeHandler", "LinearReLUQuantizeHandler", "BatchNormQuantizeHandler",
    "EmbeddingQuantizeHandler", "RNNDynamicQuantizeHandler", "DefaultNodeQuantizeHandler", "FixedQParamsOpQuantizeHandler", "CopyNodeQuantizeHandler",
    "GeneralTensorShapeOpQuantizeHandler", "CustomModuleQuantizeHandler", "StandaloneModuleQuantizeHandler",
]  # fmt: skip


def _default_root_node_getter(node_pattern):
    """The last node of a pattern, that of its last part where the parts are patterns: of (relu, (bn, conv)) the convolution. TypeError for what has none."""
    while not isinstance(node_pattern, Node):
        if not isinstance(node_pattern, (tuple, list)) or not node_pattern:
            raise TypeError(f"_default_root_node_getter: a node or a pattern of nodes was required; got {node_pattern!r}.")
        node_pattern = node_pattern[-1]
    return node_pattern


class QuantizeHandler(ABC):
    """A pattern of nodes that a backend quantizes, or `None` where only its kind is asked."""

    def __init__(self, node_pattern, modules, root_node_getter=None, is_custom_module=False, is_standalone_module=False):
        self.node_pattern, self.modules = node_pattern, modules
        self.root_node = None if node_pattern is None else (root_node_getter or _default_root_node_getter)(node_pattern)
        self.is_custom_module_, self.is_standalone_module_ = is_custom_module, is_standalone_module
        self.num_tensor_args = sum(isinstance(arg, Node) for arg in self.root_node.args) if isinstance(self.root_node, Node) else 0

    def is_general_tensor_value_op(self):
        """Do inputs and results share an observer?"""
        return False

    def is_custom_module(self):
        """Is it a module whose observed and quantized forms a user gave?"""
        return self.is_custom_module_

    def is_standalone_module(self):
        """Is it a module with a graph of its own?"""
        return self.is_standalone_module_


def _get_quantize_handler_cls(observation_type, dtype_configs, num_tensor_args_to_observation_type):
    """A class of handlers of a backend's pattern."""

    class ConfigurableQuantizeHandler(QuantizeHandler):
        """A pattern of a backend config."""

        def is_general_tensor_value_op(self):
            kind = num_tensor_args_to_observation_type.get(self.num_tensor_args, observation_type)
            return kind is ObservationType.OUTPUT_SHARE_OBSERVER_WITH_INPUT

    ConfigurableQuantizeHandler.dtype_configs = dtype_configs
    return ConfigurableQuantizeHandler


def _get_pattern_to_quantize_handlers(backend_config):
    """{pattern: class of handlers}"""
    return {
        pattern: _get_quantize_handler_cls(config.observation_type, config.dtype_configs, config._num_tensor_args_to_observation_type)
        for pattern, config in backend_config._pattern_complex_format_to_config.items()
    }



# Kinds that libraries ask for by name: backend configs make classes of their own.
class BinaryOpQuantizeHandler(QuantizeHandler):
    """Of sums and products."""


class CatQuantizeHandler(QuantizeHandler):
    """Of concatenation."""


class ConvReluQuantizeHandler(QuantizeHandler):
    """Of convolutions with ReLU."""


class LinearReLUQuantizeHandler(QuantizeHandler):
    """Of linear layers with ReLU."""


class BatchNormQuantizeHandler(QuantizeHandler):
    """Of batch norms."""


class EmbeddingQuantizeHandler(QuantizeHandler):
    """Of embeddings."""


class RNNDynamicQuantizeHandler(QuantizeHandler):
    """Of recurrent layers."""


class DefaultNodeQuantizeHandler(QuantizeHandler):
    """Of what has no other handler."""


class FixedQParamsOpQuantizeHandler(QuantizeHandler):
    """Of what has a fixed range."""


class CopyNodeQuantizeHandler(QuantizeHandler):
    """Of what keeps values."""


class GeneralTensorShapeOpQuantizeHandler(QuantizeHandler):
    """Of shapes."""


class CustomModuleQuantizeHandler(QuantizeHandler):
    """Of modules of users' classes."""


class StandaloneModuleQuantizeHandler(QuantizeHandler):
    """Of modules with graphs of their own."""
