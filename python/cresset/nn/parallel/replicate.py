"""Copies of a module on several devices, whose gradients reach the module."""

from . import comm

__all__ = ["replicate"]


def replicate(network, devices, detach=False):
    """A list of copies of the module, one on each device: parameters are differentiable copies of the module's unless `detach`, buffers copies."""
    modules = list(network.modules())
    parameters, buffers = list(network.parameters()), list(network.buffers())
    copies = []
    for device in devices:
        target = comm.device_of(device)
        moved = {id(p): (p.detach() if detach else p).to(target) for p in parameters} | {id(b): b.to(target) for b in buffers}
        replicas = {id(m): m._replicate_for_data_parallel() for m in modules}
        for module in modules:
            replica = replicas[id(module)]
            replica._former_parameters = {}
            for name, child in module._modules.items():
                replica._modules[name] = None if child is None else replicas[id(child)]
            for name, parameter in module._parameters.items():
                if parameter is None:
                    replica._parameters[name] = None
                    continue
                # Not a leaf, so no Parameter: an attribute as any other.
                replica.__dict__[name] = replica._former_parameters[name] = moved[id(parameter)]
            for name, buffer in module._buffers.items():
                replica._buffers[name] = None if buffer is None else moved[id(buffer)]
        copies.append(replicas[id(network)])
    return copies
