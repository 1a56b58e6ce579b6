"""The class of parameters that keep a gradient for each sample of a batch."""

import cresset
from cresset import _C
from cresset.nn import functional as F

__all__ = ["ExpandedWeight", "check_batch", "unpack_expanded_weight_or_tensor"]

_DIMENSIONS = {F.conv1d: 3, F.conv2d: 4, F.conv3d: 5, F.linear: 2, F.embedding: 2, F.layer_norm: 1, F.group_norm: 1, F.instance_norm: 1}
_MIXTURE = "ExpandedWeights currently does not support a mixture of ExpandedWeight parameters and normal Parameters. Please give one kind of them."
_INSTANCE_NORM = ("running_mean", "running_var", "weight", "bias", "use_input_stats", "momentum", "eps")
_FACTS = ("shape", "dtype", "device", "layout", "is_cuda", "is_sparse", "ndim", "requires_grad")


class ExpandedWeight(cresset.Tensor):
    """A tensor that requires a gradient, as it is used for a batch: backward from a function of nn.functional (linear, conv1d to conv3d, embedding,
    layer_norm, group_norm, instance_norm) puts the gradient of each sample, (batch, *shape), into its field `grad_sample`, and none into `grad`.

    `loss_reduction`: the loss adds up the samples' losses ("sum"), or is their mean ("mean"). RuntimeError for other functions.
    """

    @staticmethod
    def __new__(cls, orig_weight, batch_size, loss_reduction):
        if not isinstance(orig_weight, cresset.Tensor):
            raise RuntimeError(f"Can only make Expanded Weights of Tensors, got {type(orig_weight).__name__}")
        if not orig_weight.requires_grad:
            raise RuntimeError("Can only build ExpandedWeights objects of tensors that requires_grad")
        return cresset.Tensor._make_subclass(cls, orig_weight.detach(), True)

    def __init__(self, orig_weight, batch_size, loss_reduction):
        self.batch_size, self.loss_reduction = batch_size, loss_reduction
        self.batch_first, self.allow_smaller_batches = True, False
        self.orig_weight = orig_weight

    def data_ptr(self):
        return self.orig_weight.data_ptr()

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        if func in _DIMENSIONS:
            return _applied(func, args, kwargs)
        if getattr(func, "__name__", "") == "__get__" and func.__self__.__name__ in _FACTS:
            with _C.DisableTorchFunctionSubclass():
                return func(*args)
        raise RuntimeError(f"Expanded Weights encountered but cannot handle function {getattr(func, '__name__', func)}")


def _check_rank(func, args, kwargs):
    input, name = args[0], func.__name__
    rank = _DIMENSIONS[func]
    if name.startswith("conv") and input.dim() != rank:
        raise RuntimeError(f"Expanded Weights only support convolution with batched input, got {name} with an unbatched input of dim {input.dim()}, expected input of dim {rank}")
    if name == "linear" and input.dim() < rank:
        raise RuntimeError(f"Input does not have a batch dimension. Expanded Weights expected input of at least rank 2, got of rank {input.dim()}")
    if name == "embedding" and input.dim() < rank:
        raise RuntimeError(f"Expanded Weights needs an input with a batch size, got a {input.dim()}D tensor, {input}")
    if name == "layer_norm":
        shape = tuple(args[1] if len(args) > 1 else kwargs["normalized_shape"])
        if tuple(input.shape) == shape:
            raise RuntimeError(
                f"Expanded Weights: Layer norm should not normalize over batch dimension for per sample gradient computations but got that normalized shape, {shape}, matched input shape."
            )


def _applied(func, args, kwargs):
    """The function for each sample, with a copy of the weights that are expanded."""
    from .._per_sample_grad import _copies

    if args and not isinstance(args[0], ExpandedWeight) and isinstance(args[0], cresset.Tensor) and args[0].dim():
        _check_rank(func, args, kwargs)
    check_batch(func, args, kwargs)
    input, size = args[0], args[0].shape[0]
    if func is F.instance_norm:
        args, kwargs = args[:1], {**dict(zip(_INSTANCE_NORM, args[1:])), **kwargs}
        if kwargs.get("running_mean") is not None and kwargs.get("use_input_stats", True):  # statistics are the batch's
            with cresset.no_grad():
                func(input, kwargs.pop("running_mean"), kwargs.pop("running_var"), momentum=kwargs.get("momentum", 0.1))
    if func is F.embedding and kwargs.get("max_norm") is not None:  # in place, so before there are copies
        table = args[1].orig_weight if isinstance(args[1], ExpandedWeight) else args[1]
        F.embedding(input, table.detach(), **kwargs)
        kwargs = {k: v for k, v in kwargs.items() if k not in ("max_norm", "norm_type")}
    values = [*args[1:], *kwargs.values()]
    places = [i for i, v in enumerate(values) if isinstance(v, ExpandedWeight)]
    for value in values:
        unpack_expanded_weight_or_tensor(value)
    weights = [_copies(values[i].orig_weight, size, values[i].loss_reduction == "mean") for i in places]
    unbatched = len(args) - 1

    def one(sample, *weights):
        given = list(values)
        for i, weight in zip(places, weights):
            given[i] = weight
        return func(sample.unsqueeze(0), *given[:unbatched], **dict(zip(kwargs, given[unbatched:]))).squeeze(0)

    return cresset.func.vmap(one, randomness="different")(input, *weights)


def check_batch(func, args, kwargs):
    """RuntimeError unless the first argument is a tensor whose first dimension is the batch of the expanded weights."""
    input = args[0]
    name = getattr(func, "__name__", str(func))
    if isinstance(input, ExpandedWeight):
        raise RuntimeError("Expanded Weights do not support inputs that are also ExpandedWeights. Input must be a Tensor, got ExpandedWeight in function " + name)
    if not hasattr(input, "dim"):
        raise RuntimeError(f"Expanded Weights requires a Tensor as the first input to get the batch dimension, got {type(input).__name__} in function {name}")
    if input.dim() == 0:
        raise RuntimeError(f"Expanded Weights requires a batch dimension but got an input of size 0 in function {name}")
    if input.shape[0] == 0:
        raise RuntimeError(f"0 is not a valid batch size for Expanded Weights but got input tensor of {input} in function {name}")
    for weight in (*args, *kwargs.values()):
        if isinstance(weight, ExpandedWeight):
            size = input.shape[0 if weight.batch_first else 1]
            if size != weight.batch_size and not (weight.allow_smaller_batches and size < weight.batch_size):
                raise RuntimeError(f"Expected ExpandedWeights to have batch size matching input but got input batch size of {size} with ExpandedWeight of batch size {weight.batch_size}")


def unpack_expanded_weight_or_tensor(maybe_expanded_weight, func=lambda x: x):
    """`func` of the tensor, which may be expanded; None for what is no tensor. RuntimeError for a tensor with a gradient that is not expanded."""
    if isinstance(maybe_expanded_weight, ExpandedWeight):
        return func(maybe_expanded_weight.orig_weight)
    if not hasattr(maybe_expanded_weight, "requires_grad"):
        return None
    if maybe_expanded_weight.requires_grad:
        raise RuntimeError(_MIXTURE)
    return func(maybe_expanded_weight)
