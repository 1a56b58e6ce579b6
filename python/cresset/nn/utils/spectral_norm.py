"""Spectral normalisation by a hook; parametrizations.spectral_norm is the newer form."""

import cresset
from cresset.nn import functional as F
from cresset.nn.parameter import Parameter, is_lazy

__all__ = ["SpectralNorm", "spectral_norm", "remove_spectral_norm"]


class SpectralNorm:
    """The forward pre-hook that computes `name` from `name_orig` and the vectors `name_u` and `name_v`."""

    _version = 1

    def __init__(self, name="weight", n_power_iterations=1, dim=0, eps=1e-12):
        if n_power_iterations <= 0:
            raise ValueError(f"Expected n_power_iterations to be positive, but got n_power_iterations={n_power_iterations}")
        self.name, self.n_power_iterations, self.dim, self.eps = name, n_power_iterations, dim, eps

    def reshape_weight_to_matrix(self, weight):
        if self.dim != 0:
            weight = weight.permute(self.dim, *(d for d in range(weight.dim()) if d != self.dim))
        return weight.reshape(weight.size(0), -1)

    def compute_weight(self, module, do_power_iteration):
        weight = getattr(module, self.name + "_orig")
        u, v = getattr(module, self.name + "_u"), getattr(module, self.name + "_v")
        matrix = self.reshape_weight_to_matrix(weight)
        if do_power_iteration:
            with cresset.no_grad():
                for _ in range(self.n_power_iterations):
                    v.copy_(F.normalize(cresset.mv(matrix.t(), u), dim=0, eps=self.eps))
                    u.copy_(F.normalize(cresset.mv(matrix, v), dim=0, eps=self.eps))
                # Copies, because the next forward pass changes the buffers in place.
                u, v = u.clone(), v.clone()
        return weight / cresset.dot(u, cresset.mv(matrix, v))

    def remove(self, module):
        with cresset.no_grad():
            weight = self.compute_weight(module, do_power_iteration=False)
        delattr(module, self.name)
        for suffix in ("_u", "_v", "_orig"):
            delattr(module, self.name + suffix)
        module.register_parameter(self.name, Parameter(weight.detach()))

    def __call__(self, module, inputs):
        setattr(module, self.name, self.compute_weight(module, do_power_iteration=module.training))

    @staticmethod
    def apply(module, name, n_power_iterations, dim, eps):
        for hook in module._forward_pre_hooks.values():
            if isinstance(hook, SpectralNorm) and hook.name == name:
                raise RuntimeError(f"Cannot register two spectral_norm hooks on the same parameter {name}")
        hook = SpectralNorm(name, n_power_iterations, dim, eps)
        weight = module._parameters[name]
        if weight is None:
            raise ValueError(f"`SpectralNorm` cannot be applied as parameter `{name}` is None")
        if is_lazy(weight):
            raise ValueError("The module passed to `SpectralNorm` can't have uninitialized parameters. Make sure to run the dummy forward before applying spectral normalization")
        with cresset.no_grad():
            matrix = hook.reshape_weight_to_matrix(weight)
            rows, columns = matrix.size()
            u = F.normalize(weight.new_empty(rows).normal_(0, 1), dim=0, eps=eps)
            v = F.normalize(weight.new_empty(columns).normal_(0, 1), dim=0, eps=eps)
        delattr(module, name)
        module.register_parameter(name + "_orig", weight)
        # A plain attribute: state and parameters are the ones above.
        setattr(module, name, weight.data)
        module.register_buffer(name + "_u", u)
        module.register_buffer(name + "_v", v)
        module.register_forward_pre_hook(hook)
        module._register_state_dict_hook(SpectralNormStateDictHook(hook))
        module._register_load_state_dict_pre_hook(SpectralNormLoadStateDictPreHook(hook))
        return hook


class SpectralNormStateDictHook:
    """Notes the version of a SpectralNorm's entries in the state dict's metadata."""

    def __init__(self, fn):
        self.fn = fn

    def __call__(self, module, state_dict, prefix, local_metadata):
        versions = local_metadata.setdefault("spectral_norm", {})
        versions[self.fn.name + ".version"] = self.fn._version


class SpectralNormLoadStateDictPreHook:
    """Computes the vector v for state dicts from before it was an entry, from the normalised weight that they have."""

    def __init__(self, fn):
        self.fn = fn

    def __call__(self, state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs):
        name = prefix + self.fn.name
        version = local_metadata.get("spectral_norm", {}).get(self.fn.name + ".version")
        needed = [name + suffix for suffix in ("_orig", "", "_u")]
        if version is not None or name + "_v" in state_dict or not all(key in state_dict for key in needed):
            return
        with cresset.no_grad():
            original, weight, u = (state_dict[key] for key in needed)
            matrix = self.fn.reshape_weight_to_matrix(original)
            sigma = (original / weight).mean()
            v = cresset.linalg.pinv(matrix.t() @ matrix) @ (matrix.t() @ u)
            state_dict[name + "_v"] = v * (sigma / cresset.dot(u, cresset.mv(matrix, v)))
            del state_dict[name]


def spectral_norm(module, name="weight", n_power_iterations=1, eps=1e-12, dim=None):
    """Divide `module.name` by its largest singular value before every forward (Miyato et al. 2018)."""
    if dim is None:
        transposed = (cresset.nn.ConvTranspose1d, cresset.nn.ConvTranspose2d, cresset.nn.ConvTranspose3d)
        dim = 1 if isinstance(module, transposed) else 0
    SpectralNorm.apply(module, name, n_power_iterations, dim, eps)
    return module


def _remove_state_hooks(module, name):
    for hooks, kind in ((module._state_dict_hooks, SpectralNormStateDictHook), (module._load_state_dict_pre_hooks, SpectralNormLoadStateDictPreHook)):
        for key, hook in list(hooks.items()):
            hook = getattr(hook, "hook", hook)
            if isinstance(hook, kind) and hook.fn.name == name:
                del hooks[key]


def remove_spectral_norm(module, name="weight"):
    """Make `module.name` an ordinary parameter again."""
    for key, hook in module._forward_pre_hooks.items():
        if isinstance(hook, SpectralNorm) and hook.name == name:
            hook.remove(module)
            del module._forward_pre_hooks[key]
            _remove_state_hooks(module, name)
            return module
    raise ValueError(f"spectral_norm of '{name}' not found in {module}")
