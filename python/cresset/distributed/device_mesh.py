"""Meshes: the ranks of a program as an array with named dimensions, and a process group along each of them.

A mesh is a layout over the flat list of its root's ranks: each dimension is a tuple of (size, stride) pairs. A slice takes some dimensions,
a flattened one has the pairs of several, an unflattened one splits a pair; none of them needs more than numbers.
"""

import math
import threading
from itertools import product

import cresset

from . import is_available

__all__ = ["DeviceMesh", "init_device_mesh"]

if is_available():
    from . import _groups
    from ._world import _resolve_process_group


class _MeshResources:
    """Which meshes are entered with `with`, and the options of dimensions to come. Its other methods are older names of a mesh's own."""

    def __init__(self):
        self._local = threading.local()
        self.mesh_dim_group_options = {}

    @property
    def mesh_stack(self):
        if not hasattr(self._local, "stack"):
            self._local.stack = []
        return self._local.stack

    @property
    def flatten_name_to_root_dims(self):
        return _FlattenedDims()

    def get_current_mesh(self):
        """The mesh of the innermost `with`; RuntimeError where there is none."""
        if not self.mesh_stack:
            raise RuntimeError("No device mesh is currently active!")
        return self.mesh_stack[-1]

    def get_root_mesh(self, mesh):
        return mesh._get_root_mesh()

    def get_root_mesh_dim(self, mesh):
        return mesh._get_root_mesh_dim()

    def get_mesh_dim_by_name(self, mesh, name):
        return mesh._get_mesh_dim_by_name(name)

    def _get_all_submeshes(self, mesh, name):
        return mesh._get_all_submeshes(name)

    def _set_mesh_dim_group_options(self, dim, backend, pg_options=None):
        self.mesh_dim_group_options[dim] = (backend, pg_options)

    @staticmethod
    def num_devices_per_host(device_type):
        return _device_count(device_type)


class _FlattenedDims:
    """root mesh → {name of a flattened dimension: which dimensions of the root it has}."""

    def __getitem__(self, root):
        strides = [pairs[0][1] if pairs else None for pairs in root._layout]
        return {name: tuple(strides.index(stride) for _, stride in mesh._layout[0]) for name, mesh in root._flatten_mapping.items()}


_mesh_resources = _MeshResources()


def _device_count(device_type):
    module = getattr(cresset, device_type, None)
    count = getattr(module, "device_count", None)
    return count() if count is not None else 1


def _contiguous(shape):
    """The layout of a mesh over all of its ranks in order."""
    layout, stride = [], math.prod(shape)
    for size in shape:
        stride = stride // size if size else 0
        layout.append(((size, stride),))
    return tuple(layout)


def _size(pairs):
    return math.prod(size for size, _ in pairs)


def _offsets(layout):
    """Places in the flat list of the mesh's elements, in order."""
    pairs = [pair for dim in layout for pair in dim]
    return [sum(i * stride for i, (_, stride) in zip(index, pairs)) for index in product(*(range(size) for size, _ in pairs))]


def _origin(place, layout):
    """Where the mesh of this layout that has `place` begins."""
    return place - sum(place // stride % size * stride for dim in layout for size, stride in dim if size > 1)


def _as_array(mesh):
    """(flat list of ranks, shape) of what the caller gave as a mesh."""
    if isinstance(mesh, cresset.Tensor):
        if mesh.device.type != "cpu":
            raise ValueError(f"`mesh` must be a CPU tensor, got {mesh}")
        return [int(r) for r in mesh.detach().flatten().tolist()], tuple(mesh.shape)
    tensor = cresset.tensor(mesh, dtype=cresset.int32, device="cpu")
    return tensor.flatten().tolist(), tuple(tensor.shape)


class DeviceMesh:
    """Ranks of the default group as an n-dimensional array `mesh`, whose dimensions may have names.

    Each dimension has a process group of the ranks that differ in it alone: `get_group(dim)`. Every process makes the same meshes in the same
    order; the default group is made from the environment where there is none. `mesh["dp"]` and `mesh["dp", "tp"]` are meshes of
    some dimensions that share the groups. Two meshes are equal when ranks, names and kind of device are. `backend_override` has
    (backend name or None, options or None) for each dimension. RuntimeError for ranks beyond the world or named twice.
    """

    def __init__(
        self, device_type, mesh=None, *, mesh_dim_names=None, backend_override=None, _init_backend=True, _rank=None, _layout=None, _rank_map=None, _root_mesh=None
    ):
        self._device_type = device_type
        if _layout is None:
            if mesh is None:
                raise TypeError("The mesh argument is required except for PRIVATE USAGE ONLY!")
            self._rank_map, shape = _as_array(mesh)
            if isinstance(mesh, cresset.Tensor) and not shape:
                shape = (1,)
            self._layout = _contiguous(shape)
        else:
            self._layout, self._rank_map = _layout, _rank_map
        self._mesh_dim_names = tuple(mesh_dim_names) if mesh_dim_names else None
        self._root_mesh, self._thread_id, self._flatten_mapping = _root_mesh, None, {}
        self._mesh_tensor = self._hash = self._dim_group_names = None
        if device_type == "xla":
            raise NotImplementedError("DeviceMesh: devices of the kind xla are not part of Cresset.")
        if _root_mesh is None and _init_backend:
            self._set_up_world()
        if _rank is None:
            _rank = _groups.get_rank() if _groups.is_initialized() else 0
        self._rank = _rank
        if _root_mesh is None:
            self._thread_id = threading.get_ident()
            if _init_backend:
                overrides = backend_override or [_mesh_resources.mesh_dim_group_options.get(i, (None, None)) for i in range(self.ndim)]
                self._dim_group_names = [self._make_group(pairs, self._dim_name(i), overrides[i]) for i, pairs in enumerate(self._layout)]
        else:
            self._thread_id = _root_mesh._thread_id
        self._place = self._rank_map.index(_rank) if _rank in self._rank_map else None
        self._coordinate_on_dim = None if self._place is None else [self._coordinate(pairs) for pairs in self._layout]

    # --- making

    def _set_up_world(self):
        if not _groups.is_initialized():
            _groups.init_process_group()
        world = _groups.get_world_size()
        if len(self._rank_map) > world:
            raise RuntimeError(f"Mesh should not be bigger than default world size {world}, but found {len(self._rank_map)} ranks!")
        if len(set(self._rank_map)) != len(self._rank_map):
            raise RuntimeError(f"DeviceMesh: each rank must be in a mesh once; {self._rank_map} was given.")

    def _dim_name(self, dim):
        return f"mesh_{self._mesh_dim_names[dim]}" if self._mesh_dim_names else f"mesh_dim_{dim}"

    def _make_group(self, pairs, description, override):
        """Make the groups along a dimension, one for each of its lines; the name of this rank's, or None."""
        backend, options = override
        default = _groups._get_default_group()
        mine, lines = None, {}
        for place in range(len(self._rank_map)):
            lines.setdefault(_origin(place, (pairs,)), None)
        for origin in lines:
            ranks = [self._rank_map[origin + offset] for offset in _offsets((pairs,))]
            if backend is None and options is None and ranks == list(range(default.size())):
                group = default
            else:
                group = _groups.new_group(ranks, backend=backend, pg_options=options, group_desc=description, sort_ranks=False)
            if self._own_rank() in ranks:
                mine = group.group_name
        return mine

    def _own_rank(self):
        return _groups.get_rank()

    def _coordinate(self, pairs):
        value = 0
        for size, stride in pairs:
            value = value * size + (self._place // stride % size if size > 1 else 0)
        return value

    def _derived(self, layout, names, group_names):
        root = self._get_root_mesh()
        made = DeviceMesh(
            self._device_type, mesh_dim_names=names, _init_backend=False, _rank=self._rank, _layout=layout, _rank_map=root._rank_map, _root_mesh=root
        )
        made._dim_group_names = group_names
        return made

    @staticmethod
    def from_group(group, device_type, mesh=None, *, mesh_dim_names=None):
        """A mesh of groups that there are: of one group, or of a list with one for each dimension of `mesh`. ValueError where they do not agree."""
        if isinstance(group, _groups.ProcessGroup):
            ranks = _groups.get_process_group_ranks(group)
            if mesh is not None:
                given = mesh.tolist() if isinstance(mesh, cresset.Tensor) else [list(r) if isinstance(r, (list, tuple)) else r for r in mesh]
                if given != ranks:
                    raise ValueError(f"Invalid mesh {given} for ProcessGroup with ranks {ranks}")
            made = DeviceMesh(device_type, ranks, mesh_dim_names=mesh_dim_names, _init_backend=False)
            made._dim_group_names = [group.group_name]
            return made
        groups = list(group)
        if not groups:
            raise ValueError("Expects at least one ProcessGroup to be passed")
        if mesh is None:
            raise ValueError("Must pass mesh if passing multiple ProcessGroups")
        flat, shape = _as_array(mesh)
        if len(shape) != len(groups):
            raise ValueError(
                f"Expects mesh with ndim equal to number of ProcessGroups but got mesh {cresset.tensor(flat).reshape(shape).tolist()} and {len(groups)} ProcessGroups"
            )
        made = DeviceMesh(device_type, mesh, mesh_dim_names=mesh_dim_names, _init_backend=False)
        made._dim_group_names = [g.group_name for g in groups]
        return made

    # --- asking

    @property
    def device_type(self):
        """The kind of the devices."""
        return self._device_type

    @property
    def mesh_dim_names(self):
        """Names of the dimensions, or None."""
        return self._mesh_dim_names

    @property
    def shape(self):
        """The sizes of the dimensions."""
        return tuple(_size(pairs) for pairs in self._layout)

    @property
    def ndim(self):
        """How many dimensions there are."""
        return len(self._layout)

    @property
    def _flatten_mesh_list(self):
        origin = _origin(self._place or 0, self._layout)
        return tuple(self._rank_map[origin + offset] for offset in _offsets(self._layout))

    @property
    def mesh(self):
        """The ranks as an int32 tensor: those of the mesh that this process is in."""
        if self._mesh_tensor is None:
            from cresset._subclasses.fake_tensor import unset_fake_temporarily

            with unset_fake_temporarily():
                self._mesh_tensor = cresset.tensor(self._flatten_mesh_list, dtype=cresset.int32).reshape(self.shape)
        return self._mesh_tensor

    @property
    def _dim_group_infos(self):
        return [("", _groups.get_process_group_ranks(_resolve_process_group(name)), name) for name in self._dim_group_names or ()]

    def size(self, mesh_dim=None):
        """How many ranks there are, in all or along a dimension."""
        return math.prod(self.shape) if mesh_dim is None else self.shape[mesh_dim]

    def numel(self):
        """How many ranks there are."""
        return self.size()

    def get_rank(self):
        """This process's rank in the default group."""
        return _groups.get_rank()

    def get_coordinate(self):
        """This process's place in the mesh, a number for each dimension; None where it is not part of it."""
        return self._coordinate_on_dim

    def _is_current_rank_part_of_mesh(self):
        return self._coordinate_on_dim is not None

    def _names_text(self):
        return ("Optional kwarg `mesh_dim` needs to be specified when device_mesh.ndim > 1.",)

    def get_group(self, mesh_dim=None):
        """The process group along a dimension, given by number or name; without it that of a mesh of one dimension."""
        if self._dim_group_names is None:
            raise RuntimeError("DeviceMesh process groups not initialized!")
        if self.ndim > 1 and mesh_dim is None:
            raise RuntimeError(
                f"Found the DeviceMesh have {self.ndim} dimensions",
                "Optional kwarg `mesh_dim` needs to be specified when device_mesh.ndim > 1.",
                "If you want to get the list of all the ProcessGroups in the DeviceMesh,please use `get_all_groups()` instead.",
            )
        if mesh_dim is None:
            return _resolve_process_group(self._dim_group_names[0])
        if isinstance(mesh_dim, str) and mesh_dim in self._get_root_mesh()._flatten_mapping and mesh_dim not in (self._mesh_dim_names or ()):
            return self._get_root_mesh()._flatten_mapping[mesh_dim].get_group()
        dim = self._get_mesh_dim_by_name(mesh_dim) if isinstance(mesh_dim, str) else mesh_dim
        return _resolve_process_group(self._dim_group_names[dim])

    def get_all_groups(self):
        """The process groups along all dimensions."""
        return [self.get_group(i) for i in range(self.ndim)]

    def get_local_rank(self, mesh_dim=None):
        """This process's place along a dimension, given by number or name."""
        if self.ndim > 1 and mesh_dim is None:
            raise RuntimeError(
                f"Found the DeviceMesh have {self.ndim} dimensions", "Optional kwarg `mesh_dim` needs to be specified when device_mesh.ndim > 1."
            )
        return _groups.get_rank(self.get_group(0 if mesh_dim is None else mesh_dim))

    def _get_mesh_dim_by_name(self, name):
        if self._mesh_dim_names is None:
            raise KeyError("No `mesh_dim_names` found.")
        if name not in self._mesh_dim_names:
            raise KeyError(f"Mesh dimension '{name}' does not exist.", f"Available mesh dimensions are: mesh_dim_names={self._mesh_dim_names}")
        return self._mesh_dim_names.index(name)

    def _get_root_mesh(self):
        return self if self._root_mesh is None else self._root_mesh

    def _get_root_mesh_dim(self):
        """Which dimension of its root a mesh of one dimension is; None for others and for a root."""
        root = self._get_root_mesh()
        if root is self or self.ndim != 1 or not self._mesh_dim_names or self._mesh_dim_names[0] not in (root._mesh_dim_names or ()):
            return None
        return root._mesh_dim_names.index(self._mesh_dim_names[0])

    def _get_all_submeshes(self, name):
        """All meshes along a dimension, this rank's and the others'."""
        dim = self._get_mesh_dim_by_name(name)
        moved = self.mesh.swapdims(-1, dim).reshape(-1, self.size(dim))
        made = []
        for ranks in moved:
            mesh = DeviceMesh(self._device_type, ranks, mesh_dim_names=(name,), _init_backend=False)
            mesh._dim_group_names = [self._dim_group_names[dim]] if self.get_rank() in ranks.tolist() else []
            made.append(mesh)
        return made

    # --- meshes of this one

    def __getitem__(self, mesh_dim_names):
        """The mesh of some dimensions, by name: `mesh["dp"]`, `mesh["dp", "tp"]`. KeyError for others."""
        if not self._mesh_dim_names:
            raise RuntimeError("Cannot slice a DeviceMesh without mesh_dim_names!")
        names = (mesh_dim_names,) if isinstance(mesh_dim_names, str) else tuple(mesh_dim_names)
        if names == self._mesh_dim_names:
            return self
        flattened = self._get_root_mesh()._flatten_mapping
        for name in names:
            if name not in self._mesh_dim_names and name not in flattened:
                valid = [*self._mesh_dim_names, *flattened]
                raise KeyError(f"Invalid mesh_dim_names {names} specified. Valid mesh_dim_names are {valid}.")
        layout, groups, known = [], [], self._dim_group_names is not None
        for name in names:
            mesh, dim = (self, self._mesh_dim_names.index(name)) if name in self._mesh_dim_names else (flattened[name], 0)
            layout.append(mesh._layout[dim])
            if known:
                groups.append(mesh._dim_group_names[dim])
        if len(names) == 1 and names[0] in flattened and names[0] not in self._mesh_dim_names:
            return flattened[names[0]]
        _check_overlap(layout, names)
        return self._derived(tuple(layout), names, groups if known else None)

    def _flatten(self, mesh_dim_name=None, backend_override=None):
        """The mesh of one dimension with all of this one's ranks, named by joining the names with "_"; the root knows it by that name."""
        if not self._mesh_dim_names:
            raise RuntimeError("Cannot flatten a DeviceMesh without mesh_dim_names!")
        root = self._get_root_mesh()
        name = mesh_dim_name or "_".join(self._mesh_dim_names)
        pairs = tuple(pair for dim in self._layout for pair in dim)
        if self.ndim == 1 and self._mesh_dim_names == (name,):
            return self
        if name in root._flatten_mapping and root._flatten_mapping[name]._layout == (pairs,):
            return root._flatten_mapping[name]
        if name in (root._mesh_dim_names or ()) or name in root._flatten_mapping:
            raise ValueError(
                f"{name} already exists for submesh of the {root}. ",
                f"The mesh_dim_names of submesh and flattened mesh are {root._mesh_dim_names}. Please specify another valid mesh_dim_name.",
            )
        group = None
        if self.ndim == 1 and backend_override is None:
            group = self._dim_group_names and self._dim_group_names[0]
        elif self._dim_group_names is not None:
            group = root._make_group(pairs, f"mesh_{name}", _override(backend_override))
        made = self._derived((pairs,), (name,), None if self._dim_group_names is None else [group])
        root._flatten_mapping[name] = made
        return made

    def _unflatten(self, dim, mesh_sizes, mesh_dim_names, backend_override=None):
        """This mesh with a dimension split into several of these sizes and names."""
        dim = self._get_mesh_dim_by_name(dim) if isinstance(dim, str) else dim
        pairs = self._layout[dim]
        if math.prod(mesh_sizes) != _size(pairs):
            raise ValueError(f"_unflatten: the sizes {tuple(mesh_sizes)} do not make {_size(pairs)}, the size of dimension {dim}.")
        if len(mesh_sizes) != len(mesh_dim_names):
            raise RuntimeError("mesh_dim_names must have same length as mesh_sizes in _unflatten!")
        if len(pairs) != 1:
            raise NotImplementedError("_unflatten: a dimension that was flattened of several ones is not split; slice the root instead.")
        overrides = _overrides(backend_override, mesh_dim_names)
        stride, made = pairs[0][1] * pairs[0][0], []
        for size in mesh_sizes:
            stride //= size
            made.append(((size, stride),))
        names = list(self._mesh_dim_names or ())
        names[dim:dim + 1] = mesh_dim_names
        groups = None
        if self._dim_group_names is not None:
            root = self._get_root_mesh()
            groups = list(self._dim_group_names)
            groups[dim:dim + 1] = [root._make_group(p, f"mesh_{n}", o) for p, n, o in zip(made, mesh_dim_names, overrides)]
        return self._derived((*self._layout[:dim], *made, *self._layout[dim + 1:]), tuple(names), groups)

    @staticmethod
    def _concatenate(device_mesh_list):
        """The mesh with the dimensions of several meshes of one root, in order."""
        root = device_mesh_list[0]._get_root_mesh()
        if any(m._get_root_mesh() is not root for m in device_mesh_list):
            raise RuntimeError("_concatenate: all meshes must be slices of one root.")
        layout = [pairs for m in device_mesh_list for pairs in m._layout]
        names = tuple(n for m in device_mesh_list for n in m._mesh_dim_names or ())
        _check_overlap(layout, names)
        groups = None
        if all(m._dim_group_names is not None for m in device_mesh_list):
            groups = [g for m in device_mesh_list for g in m._dim_group_names]
        return root._derived(tuple(layout), names, groups)

    # --- as a value

    def _key(self):
        return self._flatten_mesh_list, self.shape, self._device_type, self._mesh_dim_names, self._thread_id

    def __hash__(self):
        if self._hash is None:
            self._hash = hash(self._key())
        return self._hash

    def __eq__(self, other):
        return self is other or (isinstance(other, DeviceMesh) and hash(self) == hash(other) and self._key() == other._key())

    def __repr__(self):
        if self._mesh_dim_names:
            sizes = "(" + ", ".join(f"{n}={s}" for n, s in zip(self._mesh_dim_names, self.shape)) + ")"
        else:
            sizes = str(self.shape)
        strides = []
        for pairs in self._layout:
            real = tuple(stride for size, stride in pairs if size > 1)
            strides.append(real[0] if len(real) == 1 else real)
        return f"DeviceMesh({sizes}, '{self._device_type}', stride={tuple(strides)})"

    def __enter__(self):
        _mesh_resources.mesh_stack.append(self)
        return self

    def __exit__(self, *exc_info):
        _mesh_resources.mesh_stack.pop()

    def __deepcopy__(self, memo):
        return self  # it never changes, and its groups are those of this process

    def __reduce__(self):
        return _rebuild_mesh, (self._device_type, self._layout, tuple(self._rank_map), self._mesh_dim_names, self._dim_group_names, self._root_mesh)


def _rebuild_mesh(device_type, layout, rank_map, names, group_names, root):
    """A mesh out of a file: its groups are those of this process with the same names."""
    made = DeviceMesh(device_type, mesh_dim_names=names, _init_backend=False, _layout=layout, _rank_map=list(rank_map), _root_mesh=root)
    made._dim_group_names = group_names
    return made


def _check_overlap(layout, names):
    strides = [stride for pairs in layout for size, stride in pairs if size > 1]
    if len(set(strides)) != len(strides):
        raise KeyError(f"Invalid mesh_dim_names {names} specified. Each dimension of the mesh can be taken once.")
    if strides != sorted(strides, reverse=True):
        raise KeyError(f"Invalid mesh_dim_names {names} specified. Mesh dim indices should be in ascending order.")


def _override(value):
    """(backend, options) of one value of backend_override."""
    if value is None:
        return None, None
    if isinstance(value, str):
        return value, None
    return tuple(value) if isinstance(value, tuple) else (None, value)


def _overrides(given, names, ndim=None):
    """backend_override for each dimension, of a dict by number or name."""
    ndim = len(names or ()) if ndim is None else ndim
    names, given = tuple(names or ()), dict(given or {})
    found = []
    for dim in range(ndim):
        by_name = names[dim] if names else None
        if dim in given and by_name in given:
            raise RuntimeError(f"Found redundant dim index {dim} and name {by_name} in backend_override")
        found.append(_override(given.pop(dim, given.pop(by_name, None) if by_name is not None else None)))
    if given:
        raise RuntimeError(f"Found invalid keys in backend_override: got {list(given)}, expected integers in range [0, {ndim}) or one of {names}")
    return tuple(found)


def init_device_mesh(device_type, mesh_shape, *, mesh_dim_names=None, backend_override=None):
    """A mesh of all ranks 0, 1, … in this shape. `backend_override`: {dimension by number or name: backend, options, or both}.

    RuntimeError for names that are not unique or not as many as dimensions, and for a device with an index.
    """
    if mesh_dim_names is not None:
        if len(set(mesh_dim_names)) != len(mesh_dim_names):
            raise RuntimeError(f"Each mesh_dim_name must be unique. Found repeated mesh_dim_name in mesh_dim_names {mesh_dim_names}")
        if len(mesh_shape) != len(mesh_dim_names):
            raise RuntimeError(
                "mesh_shape and mesh_dim_names should have same length! "
                f"Found len(mesh_dim_names): {len(mesh_dim_names)} and len(mesh_shape):{len(mesh_shape)}."
            )
    if not device_type.isalpha():
        raise RuntimeError(
            f"Device type with index is not supported but got {device_type}. ",
            "If you maintained a 'torch.device' object, it's recommended to pass in 'device.type'.",
        )
    overrides = _overrides(backend_override, mesh_dim_names, len(mesh_shape)) if backend_override else None
    from cresset._subclasses.fake_tensor import unset_fake_temporarily

    with unset_fake_temporarily(), cresset.device("cpu"):
        ranks = cresset.arange(math.prod(mesh_shape), dtype=cresset.int32).reshape(tuple(mesh_shape))
    return DeviceMesh(device_type, ranks, mesh_dim_names=mesh_dim_names, backend_override=overrides)
