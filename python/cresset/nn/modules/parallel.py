"""DataParallel: a batch in parts over the devices of this process."""

import cresset

from .module import Module

__all__ = ["DataParallel"]


class DataParallel(Module):
    """Splits the inputs along `dim` over `device_ids`, runs a copy of `module` on each, and joins the results on `output_device` (the first).

    `device_ids` are devices, their names, or indices of the accelerator; by default all devices of the accelerator. Without any the module runs as it
    is. Parameters must lie on the first device (RuntimeError otherwise), and gradients arrive there.
    """

    __module__ = "cresset.nn.parallel.data_parallel"  # its public place

    def __init__(self, module, device_ids=None, output_device=None, dim=0):
        super().__init__()
        self.dim = dim
        self.module = module
        if device_ids is None:
            kind = cresset._C._accelerator_type()
            device_ids = list(range(cresset._C._device_count(cresset.device(kind)))) if kind else []
        elif cresset._C._accelerator_type() is None and all(isinstance(d, int) for d in device_ids):
            device_ids = []  # indices of devices that are not there
        self.device_ids = [d if isinstance(d, int) else cresset.device(d) for d in device_ids]
        self.output_device = output_device if output_device is not None else (self.device_ids or [None])[0]

    def forward(self, *inputs, **kwargs):
        from cresset.nn.parallel import comm
        from cresset.nn.parallel.parallel_apply import parallel_apply
        from cresset.nn.parallel.replicate import replicate
        from cresset.nn.parallel.scatter_gather import gather, scatter_kwargs

        if not self.device_ids:
            return self.module(*inputs, **kwargs)
        first = comm.device_of(self.device_ids[0])
        for t in (*self.module.parameters(), *self.module.buffers()):
            if t.device.type != first.type or (first.index is not None and t.device != first):
                raise RuntimeError(f"module must have its parameters and buffers on device {first} (device_ids[0]) but found one of them on device: {t.device}")
        inputs, kwargs = scatter_kwargs(inputs, kwargs, self.device_ids, self.dim)
        if not inputs and not kwargs:
            inputs, kwargs = ((),), ({},)
        if len(self.device_ids) == 1:
            return self.module(*inputs[0], **kwargs[0])
        replicas = replicate(self.module, self.device_ids[: len(inputs)], not cresset.is_grad_enabled())
        outputs = parallel_apply(replicas, inputs, kwargs, self.device_ids[: len(replicas)])
        return gather(outputs, self.output_device, self.dim)
