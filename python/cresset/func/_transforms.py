"""grad, vjp, jvp and the Jacobians of functions.

One graph serves every level: a reverse transform gives its function aliases of the inputs that gradients can be asked for, takes the
gradients with a graph of their own where something outside can still be differentiated, and cuts the results off where nothing can.
Under vmap gradients are taken on the physical tensors, whose examples are independent.
"""

import contextlib
import functools

import cresset
from cresset import _C
from cresset._vmap import vmap
from cresset.autograd import forward_ad
from cresset.autograd.function import _transforms
from cresset.utils import _pytree as pytree

__all__ = ["debug_unwrap", "grad", "grad_and_value", "hessian", "jacfwd", "jacrev", "jvp", "linearize", "vjp"]


# --- arguments ----------------------------------------------------------------------------------------------------------------


def _check_argnums(argnums, count):
    """argnums as non-negative numbers: an int, or a tuple of different ones."""

    def wrapped(n):
        if not isinstance(n, int):
            raise RuntimeError(f"argnum must be int, got: {type(n)}")
        if not -count <= n < count:
            raise RuntimeError(f"Got argnum={n}, but only {count} positional inputs")
        return n % count

    if isinstance(argnums, bool) or not isinstance(argnums, (int, tuple)):
        raise RuntimeError(f"argnums must be int or Tuple[int, ...], got: {type(argnums)}")
    if isinstance(argnums, int):
        return wrapped(argnums)
    if not argnums:
        raise RuntimeError("argnums must be non-empty")
    argnums = tuple(wrapped(n) for n in argnums)
    if len(set(argnums)) != len(argnums):
        raise RuntimeError(f"argnums elements must be unique, got {argnums}")
    return argnums


def _selected(args, argnums):
    return args[argnums] if isinstance(argnums, int) else tuple(args[n] for n in argnums)


def _replaced(args, argnums, values):
    args = list(args)
    if isinstance(argnums, int):
        args[argnums] = values
    else:
        for n, value in zip(argnums, values):
            args[n] = value
    return tuple(args)


def _wrap_tensor_for_grad(tensor, level=None):
    """The input that the function of a transform sees in place of a tensor, under PyTorch's name: libraries put their own step in its place."""
    return _C._fresh_input(tensor)


def _fresh(tree):
    """(tree of inputs that gradients can be asked for, its leaves)."""
    leaves, spec = pytree.tree_flatten(tree)
    for leaf in leaves:
        if not isinstance(leaf, cresset.Tensor):
            raise ValueError(f"Thing passed to transform API must be Tensor, got {type(leaf)}")
    fresh = [_wrap_tensor_for_grad(leaf) for leaf in leaves]
    return pytree.tree_unflatten(fresh, spec), fresh


def _zeros_where_missing(grads, inputs):
    return [cresset.zeros_like(x) if g is None else g for g, x in zip(grads, inputs)]


def _named(func, wrapper):
    with contextlib.suppress(AttributeError):
        return functools.wraps(func)(wrapper)
    return wrapper


def _out_of_inference_mode(function):
    """Transforms run their functions in the normal mode, also where inference mode is on: derivatives need history."""

    @functools.wraps(function)
    def wrapper(*args, **kwargs):
        if not _C.is_inference_mode_enabled():
            return function(*args, **kwargs)
        with cresset.inference_mode(False), cresset.no_grad():
            return function(*args, **kwargs)

    return wrapper


def _with_history(tensor):
    """The tensor, a copy of one that was made in inference mode."""
    return tensor.clone() if tensor.is_inference() else tensor


class _function_of:
    """The function of a transform runs in the block. It may write to these tensors, to those in the trees, and to what it makes."""

    __slots__ = ("_tensors",)

    def __init__(self, tensors, *trees):
        self._tensors = tensors
        for tree in trees:
            leaves = (tree,) if isinstance(tree, cresset.Tensor) else pytree.tree_leaves(tree)
            self._tensors = [*self._tensors, *(leaf for leaf in leaves if isinstance(leaf, cresset.Tensor))]

    def __enter__(self):
        _C._transform_enter(self._tensors)
        _transforms.depth += 1

    def __exit__(self, *exc_info):
        _transforms.depth -= 1
        _C._transform_leave()


class _Reverse:
    """One run of a function whose gradients may be asked for: its fresh inputs, and how its results leave the transform."""

    def __init__(self, tree, later=False):
        """`later`: gradients may be asked for when the mode of gradients is another one, so that what the inputs come from counts in either."""
        self.outside = cresset.is_grad_enabled()
        self._given = pytree.tree_leaves(tree)
        with cresset.enable_grad() if later else contextlib.nullcontext():
            self.tree, self.inputs = _fresh(tree)

    def leaving(self, tree):
        """Results without the history that only this transform sees; an input that is returned is what was given."""
        given = dict(zip(map(id, self.inputs), self._given))

        def cut(value):
            if id(value) in given and value.is_leaf:
                return given[id(value)]
            return _C._without_own_history(value, self.inputs, not self.outside) if isinstance(value, cresset.Tensor) else value

        return pytree.tree_map(cut, tree)

    def gradients(self, outputs, cotangents, keep_graph, record=None):
        """Gradients for the inputs, differentiable where something outside can be differentiated (or as `record` says)."""
        if record is None:
            record = cresset.is_grad_enabled() and (
                _C._depends_on_others(outputs, self.inputs) or any(_C._is_recorded(c) for c in cotangents)
            )
        grads = _C._transform_gradients(outputs, self.inputs, cotangents, keep_graph or record, record)
        return _zeros_where_missing(grads, self.inputs)


# --- reverse mode -------------------------------------------------------------------------------------------------------------


def _scalar_output(output, has_aux):
    """(the scalar, aux) of what a function for grad returned."""
    aux = None
    if has_aux:
        if not (isinstance(output, tuple) and len(output) == 2):
            raise RuntimeError("grad_and_value(f)(*args): output of function f should be a tuple: (output, aux) if has_aux is True")
        output, aux = output
    if not isinstance(output, cresset.Tensor):
        raise RuntimeError(f"grad_and_value(f)(*args): Expected f(*args) to return a Tensor, got {type(output)}")
    if output.dim() != 0:
        raise RuntimeError(
            f"grad_and_value(f)(*args): Expected f(*args) to return a scalar Tensor, got tensor with {output.dim()} dims. Maybe you wanted to use "
            "the vjp or jacrev APIs instead?"
        )
    if output.is_complex():
        raise RuntimeError(f"grad can be implicitly created only for real scalar outputs but got {output.dtype}")
    return output, aux


def _check_aux(aux):
    for leaf in pytree.tree_leaves(aux):
        if not isinstance(leaf, cresset.Tensor):
            raise RuntimeError(f"Expected tensors, got unsupported type {type(leaf)}")


def grad_and_value(func, argnums=0, has_aux=False):
    """A function that gives (gradient, value) of `func`, which returns a scalar; with has_aux func returns (scalar, aux) and the result is
    (gradient, (value, aux)). argnums: with respect to which arguments, an int or a tuple; their tensors may lie in containers."""

    @_out_of_inference_mode
    def wrapper(*args, **kwargs):
        numbers = _check_argnums(argnums, len(args))
        run = _Reverse(_selected(args, numbers))
        with cresset.enable_grad(), _function_of(run.inputs, *args, kwargs):
            output, aux = _scalar_output(func(*_replaced(args, numbers, run.tree), **kwargs), has_aux)
        record = run.outside and _C._depends_on_others([output], run.inputs)
        with contextlib.nullcontext() if run.outside else cresset.no_grad():
            grads = run.gradients([output], [cresset.ones_like(output)], False, record)
        grads = pytree.tree_unflatten(grads, pytree.tree_structure(run.tree))
        if has_aux:
            _check_aux(aux)
            return grads, (run.leaving(output), run.leaving(aux))
        return grads, run.leaving(output)

    return _named(func, wrapper)


def grad(func, argnums=0, has_aux=False):
    """A function that gives the gradient of `func`, which returns a scalar; with has_aux (gradient, aux). See grad_and_value."""

    def wrapper(*args, **kwargs):
        grads, value = grad_and_value(func, argnums, has_aux)(*args, **kwargs)
        return (grads, value[1]) if has_aux else grads

    return _named(func, wrapper)


def _require_tensors(outputs, spec, caller):
    if not outputs or outputs == [None]:
        raise RuntimeError(f"{caller}: Expected f to be a function that has non-empty output (got output = {outputs})")
    for out in outputs:
        if not isinstance(out, cresset.Tensor):
            raise RuntimeError(f"{caller}: expected f(*primals) to return only tensors, got unsupported type {type(out)}")


@_out_of_inference_mode
def _run_vjp(func, args, argnums, has_aux):
    """(outputs, the function of cotangents, aux) of one run; argnums None: all arguments, and the results are a tuple."""
    everything = argnums is None
    run = _Reverse(tuple(args) if everything else _selected(args, argnums), later=True)
    with cresset.enable_grad(), _function_of(run.inputs, *args):
        result = func(*run.tree) if everything else func(*_replaced(args, argnums, run.tree))
    aux = None
    if has_aux:
        if not (isinstance(result, tuple) and len(result) == 2):
            raise RuntimeError("vjp(f, *primals): output of function f should be a tuple: (output, aux) if has_aux is True")
        result, aux = result
        _check_aux(aux)
        aux = run.leaving(aux)
    outputs, out_spec = pytree.tree_flatten(result)
    _require_tensors(outputs, out_spec, "vjp(f, *primals)")
    for output in outputs:
        if not (output.is_floating_point() or output.is_complex()):
            raise RuntimeError(f"vjp(f, ...): All outputs of f must be floating-point or complex Tensors, got Tensor with dtype {output.dtype}")
    in_spec = pytree.tree_structure(run.tree)

    @_out_of_inference_mode
    def vjp_fn(cotangents, retain_graph=True, create_graph=None):
        """The product of cotangents, one for each output, with the Jacobian."""
        given, spec = pytree.tree_flatten(cotangents)
        if spec != out_spec:
            raise RuntimeError(
                "Expected pytree structure of cotangents to be the same as pytree structure of outputs to the function. cotangents: "
                f"{pytree.treespec_pprint(spec)}, primal output: {pytree.treespec_pprint(out_spec)}"
            )
        for i, (c, out) in enumerate(zip(given, outputs)):
            if c.shape != out.shape:
                raise RuntimeError(
                    f"Mismatch in shape: grad_output[{i}] has a shape of {c.shape} and output[{i}] has a shape of {out.shape}."
                )
        return pytree.tree_unflatten(run.gradients(outputs, given, retain_graph, create_graph), in_spec)

    return run.leaving(result), vjp_fn, aux


def vjp(func, *primals, has_aux=False):
    """(func(*primals), f) where f(cotangents) is the product of cotangents, shaped like the outputs, with the Jacobian: a tuple with one
    entry for each primal. With has_aux func returns (outputs, aux), and so a third result."""
    result, function, aux = _run_vjp(func, primals, None, has_aux)
    return (result, function, aux) if has_aux else (result, function)


# --- forward mode -------------------------------------------------------------------------------------------------------------


def _jvp_arguments(primals, tangents):
    call = "jvp(f, primals, tangents)"
    if not isinstance(primals, tuple):
        raise RuntimeError(f"{call}: Expected primals to be a tuple. E.g. it should be valid to call f(*primals).")
    flat, spec = pytree.tree_flatten(primals)
    flat_tangents, tangent_spec = pytree.tree_flatten(tangents)
    if spec != tangent_spec:
        raise RuntimeError(
            f"{call}: Expected primals and tangents to have the same python structure. For example, if primals is a tuple of 3 tensors, tangents "
            f"also must be. Got primals with structure {spec} and tangents with structure {tangent_spec}"
        )
    for values, what in ((flat, "primals"), (flat_tangents, "tangents")):
        for v in values:
            if not isinstance(v, cresset.Tensor):
                raise RuntimeError(f"{call}: Expected {what} to only contain Tensors, got {type(v)}")
        if not values:
            raise RuntimeError(f"{call}: Expected {what} to contain at least one Tensor.")
    return flat, flat_tangents, spec


def _split_aux(result, has_aux, call):
    if not has_aux:
        return result, None
    if not (isinstance(result, tuple) and len(result) == 2):
        raise RuntimeError(f"{call}: output of function f should be a tuple: (output, aux) if has_aux is True")
    _check_aux(result[1])
    return result


@_out_of_inference_mode
def jvp(func, primals, tangents, *, strict=False, has_aux=False):
    """(func(*primals), the Jacobian times tangents), by forward mode. primals and tangents are tuples of one structure. strict raises when
    an output does not depend on the primals. With has_aux func returns (outputs, aux), and so a third result."""
    call = "jvp(f, primals, tangents)"
    flat, directions, spec = _jvp_arguments(primals, tangents)
    if _C._current_dual_level() >= 0:
        return _jvp_by_reverse(func, flat, directions, spec, strict, has_aux)
    # Inside of the forward of an autograd.Function forward mode is off; this level is not that Function's.
    with forward_ad.dual_level(), forward_ad._set_fwd_grad_enabled(True):
        duals = [forward_ad.make_dual(_with_history(p), _with_history(t)) for p, t in zip(flat, directions)]
        with _function_of([*flat, *directions, *duals]):
            result, aux = _split_aux(func(*pytree.tree_unflatten(duals, spec)), has_aux, call)
        outputs, out_spec = pytree.tree_flatten(result)
        _require_tensors(outputs, out_spec, call)
        values, products = [], []
        for out in outputs:
            value, tangent = forward_ad.unpack_dual(out)
            if tangent is None and strict:
                raise RuntimeError(
                    "jvp(f, primals, tangents, strict=True): The output of f is independent of the inputs. This is not allowed with strict=True."
                )
            values.append(value)
            products.append(cresset.zeros_like(value) if tangent is None else tangent)
        if has_aux:
            aux = pytree.tree_map(lambda t: forward_ad.unpack_dual(t).primal, aux)
    pair = pytree.tree_unflatten(values, out_spec), pytree.tree_unflatten(products, out_spec)
    return (*pair, aux) if has_aux else pair


def _jvp_by_reverse(func, flat, directions, spec, strict, has_aux):
    """jvp inside of another one. There is one forward level; inside of it u → u J is recorded, which is linear in u, and its derivative
    with respect to u times v is J v. Tangents of the outer level pass through both."""
    outside = cresset.is_grad_enabled()
    with cresset.enable_grad():
        run = _Reverse(tuple(flat))
        with _function_of([*flat, *directions, *run.inputs]), forward_ad._recorded_level():
            result, aux = _split_aux(func(*pytree.tree_unflatten(list(run.tree), spec)), has_aux, "jvp(f, primals, tangents)")
        outputs, out_spec = pytree.tree_flatten(result)
        _require_tensors(outputs, out_spec, "jvp(f, primals, tangents)")
        if strict and not all(_C._is_recorded(o) for o in outputs):
            raise RuntimeError(
                "jvp(f, primals, tangents, strict=True): The output of f is independent of the inputs. This is not allowed with strict=True."
            )
        weights = [_C._fresh_input(cresset.ones_like(o)) for o in outputs]  # not zeros, where formulas that are linear only in values have no slope
        rows = run.gradients(outputs, weights, True, True)
        record = outside and (_C._depends_on_others(rows, [*run.inputs, *weights]) or any(_C._is_recorded(d) for d in directions))
        products = _zeros_where_missing(_C._transform_gradients(rows, weights, directions, True, record), outputs)
    if not record:
        products = [_C._without_own_history(p, [], True) for p in products]
    run.outside = outside
    pair = run.leaving(result), pytree.tree_unflatten(products, out_spec)
    return (*pair, run.leaving(aux)) if has_aux else pair


def linearize(func, *primals):
    """(func(*primals), f) where f(*tangents) is the Jacobian at the primals times tangents."""
    flat, spec = pytree.tree_flatten(primals)

    def jvp_fn(*tangents):
        given, given_spec = pytree.tree_flatten(tangents)
        if given_spec != spec:
            raise RuntimeError(
                f"Expected the tangents {given_spec} to have the same argspec as the primals {spec}"
            )
        for i, (t, p) in enumerate(zip(given, flat)):
            if t.shape != p.shape:
                raise RuntimeError(
                    f"tangent:{i} with shape {t.shape} in flattened pytree doesn't match the shape {p.shape} of the corresponding primal."
                )
            if t.dtype != p.dtype or t.device != p.device:
                raise RuntimeError(f"tangent:{i} with dtype {t.dtype} on {t.device} in flattened pytree doesn't match the primal's {p.dtype} on {p.device}.")
        return jvp(func, primals, tangents)[1]

    return func(*primals), jvp_fn


# --- Jacobians ----------------------------------------------------------------------------------------------------------------


def _basis(tensors):
    """For each tensor its part of the unit vectors of the space of all of them together, stacked."""
    counts = [t.numel() for t in tensors]
    total, start, parts = sum(counts), 0, []
    for t, n in zip(tensors, counts):
        part = cresset.zeros(total, n, dtype=t.dtype, device=t.device)
        part.diagonal(-start).fill_(1)
        parts.append(part.view(total, *t.shape))
        start += n
    return parts, counts


def _check_real(tensors, what, caller):
    for i, t in enumerate(tensors):
        if isinstance(t, cresset.Tensor) and t.is_complex():
            raise RuntimeError(f"{caller}: Expected all {what} to be real but received complex tensor at flattened input idx: {i}")


def _one_by_one(rows, basis):
    """What vmap of rows gives, without vmap: for functions that it refuses."""
    return tuple(cresset.stack(column) for column in zip(*(rows(*parts) for parts in zip(*basis))))


def _check_chunk_size(chunk_size):
    if not (chunk_size is None or chunk_size > 0):
        raise ValueError("jacrev: `chunk_size` should be greater than 0.")


def jacrev(func, argnums=0, *, has_aux=False, chunk_size=None, _preallocate_and_copy=False):
    """A function that gives the Jacobian of `func`, row by row with reverse mode, all rows at once (or chunk_size at a time): for each
    output and each argument of argnums a tensor of the output's sizes followed by the argument's. With has_aux (Jacobian, aux)."""
    _check_chunk_size(chunk_size)

    @_out_of_inference_mode
    def wrapper(*args, **kwargs):
        numbers = _check_argnums(argnums, len(args))
        result, vjp_fn, aux = _run_vjp(functools.partial(func, **kwargs) if kwargs else func, args, numbers, has_aux)
        outputs, out_spec = pytree.tree_flatten(result)
        inputs, in_spec = pytree.tree_flatten(_selected(args, numbers))
        _check_real(inputs, "inputs", "jacrev")
        _check_real(outputs, "outputs", "jacrev")
        basis, counts = _basis(outputs)

        def rows(*cotangents):
            return tuple(pytree.tree_leaves(vjp_fn(pytree.tree_unflatten(list(cotangents), out_spec))))

        if sum(counts):
            products = _one_by_one(rows, basis) if chunk_size == 1 else vmap(rows, chunk_size=chunk_size)(*basis)
        else:
            products = tuple(x.new_zeros((0, *x.shape)) for x in inputs)
        columns = [p.split(counts) for p in products]
        jacobians = [
            pytree.tree_unflatten([column[m].reshape(out.shape + x.shape) for column, x in zip(columns, inputs)], in_spec)
            for m, out in enumerate(outputs)
        ]
        jacobian = pytree.tree_unflatten(jacobians, out_spec)
        return (jacobian, aux) if has_aux else jacobian

    return _named(func, wrapper)


def jacfwd(func, argnums=0, has_aux=False, *, randomness="error"):
    """A function that gives the Jacobian of `func`, column by column with forward mode, all columns at once. As jacrev otherwise."""

    @_out_of_inference_mode
    def wrapper(*args, **kwargs):
        numbers = _check_argnums(argnums, len(args))
        inputs, in_spec = pytree.tree_flatten(_selected(args, numbers))
        for x in inputs:
            if not isinstance(x, cresset.Tensor):
                raise RuntimeError(f"jvp(f, primals, tangents): Expected primals to only contain Tensors, got {type(x)}")
        _check_real(inputs, "inputs", "jacfwd")
        basis, counts = _basis(inputs)
        seen = {}

        def of_leaves(*leaves):
            return func(*_replaced(args, numbers, pytree.tree_unflatten(list(leaves), in_spec)), **kwargs)

        def push(*tangents):
            values, products, *aux = jvp(of_leaves, tuple(inputs), tuple(tangents), has_aux=has_aux)
            leaves, seen["spec"] = pytree.tree_flatten(products)
            _check_real(leaves, "outputs", "jacfwd")
            seen["shapes"] = [v.shape for v in pytree.tree_leaves(values)]
            return leaves, aux[0] if has_aux else ()

        products, aux = vmap(push, randomness=randomness)(*basis)
        aux = pytree.tree_map(lambda t: t[0], aux)  # the same for all directions
        jacobians = []
        for product, shape in zip(products, seen["shapes"]):
            columns = product.movedim(0, -1).split(counts, -1)
            jacobians.append(pytree.tree_unflatten([c.reshape(shape + x.shape) for c, x in zip(columns, inputs)], in_spec))
        jacobian = pytree.tree_unflatten(jacobians, seen["spec"])
        return (jacobian, aux) if has_aux else jacobian

    return _named(func, wrapper)


def hessian(func, argnums=0):
    """A function that gives the second derivatives of `func`: forward mode over reverse mode."""
    return jacfwd(jacrev(func, argnums), argnums)


def debug_unwrap(tensor, *, recurse=True):
    """The tensor inside of vmap's wrapper, of all of them with recurse; for looking at, not for computing with."""
    while isinstance(tensor, cresset.Tensor) and _C._is_batched(tensor):
        tensor = _C._batch_parts(tensor)[0]
        if not recurse:
            break
    return tensor
