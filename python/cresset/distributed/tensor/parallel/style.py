"""Styles: how the parameters of a module are divided, and what its inputs and outputs are."""

from abc import ABC, abstractmethod

import cresset
from cresset import nn

from .._api import DTensor, distribute_module, distribute_tensor
from ..placement_types import Replicate, Shard

__all__ = [
    "ColwiseParallel", "ParallelStyle", "PrepareModuleInput", "PrepareModuleInputOutput", "PrepareModuleOutput", "RowwiseParallel", "SequenceParallel",
]


class ParallelStyle(ABC):
    """Base of styles: `_apply(module, device_mesh)` changes a module and gives it back."""

    src_data_rank = 0

    @abstractmethod
    def _apply(self, module, device_mesh):
        ...


def _as_dtensor(value, mesh, layouts):
    return value if isinstance(value, DTensor) else DTensor.from_local(value, mesh, layouts, run_check=False)


def _moved(value, layouts, async_op=True):
    return value if value.placements == tuple(layouts) else value.redistribute(placements=layouts, async_op=async_op)


def _parameter(style, parameter, mesh, placements):
    return nn.Parameter(distribute_tensor(parameter, mesh, placements, src_data_rank=style.src_data_rank), requires_grad=parameter.requires_grad)


class _Divided(ParallelStyle):
    """A Linear or Embedding whose weight is divided. `weight`, `bias`, `table`: placements of a Linear's parameters and an Embedding's table."""

    def __init__(self, input_layouts, output_layouts, use_local_output):
        self.input_layouts, self.output_layouts, self.use_local_output = (input_layouts,), (output_layouts,), use_local_output

    def _partition(self, name, module, device_mesh):
        table = isinstance(module, nn.Embedding)
        for key, parameter in list(module.named_parameters(recurse=False)):
            placements = [self._TABLE] if table else [self._BIAS if key == "bias" else self._WEIGHT]
            module.register_parameter(key, _parameter(self, parameter, device_mesh, placements))

    def _inputs(self, module, inputs, device_mesh):
        value = _as_dtensor(inputs[0], device_mesh, self.input_layouts)
        return (_moved(value, self._desired(module)), *inputs[1:])

    def _outputs(self, module, outputs, device_mesh):
        outputs = _moved(outputs, self.output_layouts)
        return outputs.to_local() if self.use_local_output else outputs

    def _apply(self, module, device_mesh):
        if not isinstance(module, (nn.Linear, nn.Embedding)):
            raise NotImplementedError(f"{type(self).__name__} currently only support nn.Linear and nn.Embedding!")
        return distribute_module(module, device_mesh, self._partition, self._inputs, self._outputs)

    def __repr__(self):
        return f"{type(self).__name__}(input_layouts={self.input_layouts}, output_layouts={self.output_layouts}, use_local_output={self.use_local_output})"


class ColwiseParallel(_Divided):
    """A Linear divided by outputs, an Embedding by columns. Its input is whole on every rank, its output divided along the last dimension.

    `input_layouts` says what comes in (Replicate()), `output_layouts` what goes out (Shard(-1)), `use_local_output` whether as a plain tensor.
    """

    _WEIGHT, _BIAS, _TABLE = Shard(0), Shard(0), Shard(1)

    def __init__(self, *, input_layouts=None, output_layouts=None, use_local_output=True):
        super().__init__(input_layouts or Replicate(), output_layouts or Shard(-1), use_local_output)
        self.desired_input_layouts = (Replicate(),)

    def _desired(self, module):
        return self.desired_input_layouts


class RowwiseParallel(_Divided):
    """A Linear divided by inputs, an Embedding by rows. Its input is divided along the last dimension (an Embedding's whole), its output whole.

    `input_layouts` says what comes in (Shard(-1)), `output_layouts` what goes out (Replicate()), `use_local_output` whether as a plain tensor.
    """

    _WEIGHT, _BIAS, _TABLE = Shard(1), Replicate(), Shard(0)

    def __init__(self, *, input_layouts=None, output_layouts=None, use_local_output=True):
        super().__init__(input_layouts or Shard(-1), output_layouts or Replicate(), use_local_output)

    def _desired(self, module):
        return (Replicate(),) if isinstance(module, nn.Embedding) else (Shard(-1),)

    def _inputs(self, module, inputs, device_mesh):
        value = _as_dtensor(inputs[0], device_mesh, self.input_layouts)
        wanted = tuple(Shard(p.dim % value.ndim) if p.is_shard() else p for p in self._desired(module))
        return (_moved(value, wanted), *inputs[1:])


class SequenceParallel(ParallelStyle):
    """A module whose parameters are whole (LayerNorm, Dropout, RMSNorm) on inputs that are divided along the sequence, dimension `sequence_dim`."""

    def __init__(self, *, sequence_dim=1, use_local_output=False):
        self.sequence_sharding, self.use_local_output = (Shard(sequence_dim),), use_local_output

    def _replicate(self, name, module, device_mesh):
        for key, parameter in list(module.named_parameters(recurse=False)):
            whole = DTensor.from_local(parameter, device_mesh, [Replicate()], run_check=False) if self.src_data_rank is None else None
            if whole is None:
                made = _parameter(self, parameter, device_mesh, [Replicate()])
            else:
                made = nn.Parameter(whole.detach(), requires_grad=parameter.requires_grad)
            module.register_parameter(key, made)

    def _inputs(self, module, inputs, device_mesh):
        value = inputs[0]
        if isinstance(value, DTensor):
            return (_moved(value, self.sequence_sharding), *inputs[1:])
        if isinstance(value, cresset.Tensor):
            return (DTensor.from_local(value, device_mesh, self.sequence_sharding, run_check=False), *inputs[1:])
        raise ValueError(f"expecting input of {module} to be a torch.Tensor or DTensor, but got {value}")

    def _outputs(self, module, outputs, device_mesh):
        return outputs.to_local() if self.use_local_output else outputs

    def _apply(self, module, device_mesh):
        return distribute_module(module, device_mesh, self._replicate, self._inputs, self._outputs)

    def __repr__(self):
        return f"SequenceParallel(sequence_sharding={self.sequence_sharding}, use_local_output={self.use_local_output})"


def _as_tuple(layouts):
    return (layouts,) if layouts is not None and not isinstance(layouts, (tuple, list)) else layouts


class PrepareModuleInput(ParallelStyle):
    """What comes into a module as DTensors: tensors are taken under `input_layouts` and brought to `desired_input_layouts`; None leaves one alone.

    The layouts are one, or one for each argument; those of keyword arguments are dicts. `use_local_output`: as plain tensors.
    """

    def __init__(self, *, input_layouts=None, desired_input_layouts=None, input_kwarg_layouts=None, desired_input_kwarg_layouts=None, use_local_output=False):
        self.input_layouts, self.desired_input_layouts = _as_tuple(input_layouts), _as_tuple(desired_input_layouts)
        self.use_local_output = use_local_output
        if self.input_layouts is not None:
            assert self.desired_input_layouts is not None, "desired module inputs should not be None!"
            assert len(self.input_layouts) == len(self.desired_input_layouts), "input_layouts and desired_input_layouts should have same length!"
        self.with_kwargs = input_kwarg_layouts is not None
        self.input_kwarg_layouts, self.desired_input_kwarg_layouts = input_kwarg_layouts or {}, desired_input_kwarg_layouts or {}
        if self.with_kwargs:
            assert len(self.input_kwarg_layouts) == len(self.desired_input_kwarg_layouts), "input_kwarg_layouts and desired_input_kwarg_layouts should have same length!"

    def _one(self, value, mesh, layout, desired):
        if layout is None:
            return value
        if isinstance(value, DTensor):
            made = value
        else:
            assert isinstance(value, cresset.Tensor), f"expecting input to be a torch.Tensor, but found {type(value)}!"
            made = DTensor.from_local(value, mesh, (layout,), run_check=False)
        if desired is not None and desired != layout:
            made = _moved(made, (desired,), async_op=False)
        return made.to_local() if self.use_local_output else made

    def _inputs(self, inputs, device_mesh):
        if self.input_layouts is None:
            return inputs
        inputs = inputs if isinstance(inputs, tuple) else (inputs,)
        if len(inputs) != len(self.input_layouts):
            raise ValueError("module inputs and input_layouts should have same length!")
        return tuple(self._one(v, device_mesh, a, b) for v, a, b in zip(inputs, self.input_layouts, self.desired_input_layouts))

    def _kwargs(self, inputs, kwargs, device_mesh):
        made = {k: self._one(v, device_mesh, self.input_kwarg_layouts.get(k), self.desired_input_kwarg_layouts.get(k)) for k, v in kwargs.items()}
        return self._inputs(inputs, device_mesh), made

    def _apply(self, module, device_mesh):
        if self.with_kwargs:
            module.register_forward_pre_hook(lambda _, inputs, kwargs: self._kwargs(inputs, kwargs, device_mesh), with_kwargs=True)
        else:
            module.register_forward_pre_hook(lambda _, inputs: self._inputs(inputs, device_mesh))
        return module

    def __repr__(self):
        return (
            f"PrepareModuleInput(input_layouts={self.input_layouts}, desired_input_layouts={self.desired_input_layouts}, "
            f"input_kwarg_layouts={self.input_kwarg_layouts}, desired_input_kwarg_layouts={self.desired_input_kwarg_layouts}, use_local_output={self.use_local_output})"
        )


class PrepareModuleOutput(ParallelStyle):
    """What goes out of a module: tensors are taken under `output_layouts` and brought to `desired_output_layouts`; None leaves one alone."""

    def __init__(self, *, output_layouts, desired_output_layouts, use_local_output=True):
        self.output_layouts, self.desired_output_layouts = _as_tuple(output_layouts), _as_tuple(desired_output_layouts)
        self.use_local_output = use_local_output
        assert len(self.output_layouts) == len(self.desired_output_layouts), "output_layouts and desired_output_layouts should have same length!"

    def _one(self, value, mesh, layout, desired):
        if layout is None:
            return value
        made = _as_dtensor(value, mesh, (layout,))
        if desired is not None and layout != desired:
            made = _moved(made, (desired,), async_op=False)
        return made.to_local() if self.use_local_output else made

    def _outputs(self, outputs, device_mesh):
        values = outputs if isinstance(outputs, tuple) else (outputs,)
        if len(values) != len(self.output_layouts):
            raise ValueError("module outputs and output_layouts should have same length!")
        made = tuple(self._one(v, device_mesh, a, b) for v, a, b in zip(values, self.output_layouts, self.desired_output_layouts))
        return made if isinstance(outputs, tuple) and len(made) > 1 else made[0]

    def _apply(self, module, device_mesh):
        module.register_forward_hook(lambda _, inputs, outputs: self._outputs(outputs, device_mesh))
        return module

    def __repr__(self):
        return f"PrepareModuleOutput(output_layouts={self.output_layouts}, desired_output_layouts={self.desired_output_layouts}, use_local_output={self.use_local_output})"


class PrepareModuleInputOutput(ParallelStyle):
    """PrepareModuleInput and PrepareModuleOutput in one."""

    def __init__(
        self, *, input_layouts=None, desired_input_layouts=None, input_kwarg_layouts=None, desired_input_kwarg_layouts=None, use_local_input=False,
        output_layouts, desired_output_layouts, use_local_output=True,
    ):  # fmt: skip
        self.prepare_module_input = PrepareModuleInput(
            input_layouts=input_layouts, desired_input_layouts=desired_input_layouts, input_kwarg_layouts=input_kwarg_layouts,
            desired_input_kwarg_layouts=desired_input_kwarg_layouts, use_local_output=use_local_input,
        )  # fmt: skip
        self.prepare_module_output = PrepareModuleOutput(
            output_layouts=output_layouts, desired_output_layouts=desired_output_layouts, use_local_output=use_local_output
        )

    def _apply(self, module, device_mesh):
        self.prepare_module_input._apply(module, device_mesh)
        return self.prepare_module_output._apply(module, device_mesh)


