"""Products with Jacobians and Hessians of functions of tensors, and the matrices themselves."""

import cresset
from cresset import _C

from . import forward_ad

__all__ = ["vjp", "jvp", "jacobian", "hessian", "hvp", "vhp"]

_OUTPUTS = "outputs of the user-provided function"


def _as_tuple(value, arg_name=None, fn_name=None):
    """`_tensors` under PyTorch's name."""
    return _tensors(value, f"{arg_name} of the user-provided function" if arg_name == "outputs" else arg_name, fn_name)


def _tensors(value, what, caller):
    """(was it a tuple?, the tuple of tensors); anything else raises TypeError."""
    is_tuple = isinstance(value, tuple)
    values = value if is_tuple else (value,)
    for i, v in enumerate(values):
        if isinstance(v, cresset.Tensor):
            continue
        text = f"The {what} given to {caller} must be either a Tensor or a tuple of Tensors but the "
        raise TypeError(text + (f"value at index {i} has type {type(v)}." if is_tuple else f"given {what} has type {type(v)}."))
    return is_tuple, values


def _inputs(values, create_graph, needed=True):
    """The inputs as views that the function may build a graph on: connected to the caller's graph with create_graph."""
    return tuple(
        (v.view_as(v) if create_graph and v.requires_grad else v.detach().requires_grad_(needed)) if v.is_floating_point() or v.is_complex() else v
        for v in values
    )


def _results(values, create_graph):
    return values if create_graph else tuple(v.detach() for v in values)


def _give(values, as_tuple):
    return tuple(values) if as_tuple else values[0]


def _check_vector(v, other, is_tuple):
    """v has the lengths and sizes of other."""
    if len(other) != len(v):
        if is_tuple:
            raise RuntimeError(f"v is a tuple of invalid length: should be {len(other)} but got {len(v)}.")
        raise RuntimeError("The given v should contain a single Tensor.")
    for i, (a, b) in enumerate(zip(v, other)):
        if a.size() != b.size():
            where = f"Entry {i} in " if is_tuple else ""
            raise RuntimeError(f"{where}v has invalid size: should be {b.size()} but got {a.size()}.")


def _single(value, what, caller):
    """The function's only result, a tensor of one element."""
    as_tuple, outputs = _tensors(value, _OUTPUTS, caller)
    if as_tuple:
        raise RuntimeError(f"The function given to {caller} should return a single Tensor")
    if outputs[0].numel() != 1:
        raise RuntimeError(f"The Tensor returned by the function given to {caller} should contain a single element")
    return outputs[0].squeeze()


def _unit_vector(target, message):
    if len(target) != 1 or target[0].nelement() != 1:
        raise RuntimeError(message)
    return (cresset.ones_like(target[0]),)


def _grad(outputs, inputs, vectors, create_graph):
    """Gradients; None for outputs that have no graph."""
    recorded = [(o, v) for o, v in zip(outputs, vectors) if o.requires_grad]
    if not recorded:
        return (None,) * len(inputs)
    out, weights = zip(*recorded)
    return cresset.autograd.grad(out, inputs, weights, allow_unused=True, create_graph=create_graph, retain_graph=True)


def _filled(grads, inputs, strict, create_graph, stage):
    """Zeros for missing gradients; with strict, errors for them and for gradients that are constants of a graph."""
    out = []
    for i, (g, x) in enumerate(zip(grads, inputs)):
        if g is None:
            if strict:
                raise RuntimeError(_INDEPENDENT[stage].format(i))
            g = cresset.zeros_like(x)
        elif strict and create_graph and not g.requires_grad:
            raise RuntimeError(
                f"The {'jacobian' if stage != 'hessian' else 'hessian'} of the user-provided function is independent of input {i}. This is not "
                "allowed in strict mode when create_graph=True."
            )
        out.append(g)
    return tuple(out)


_INDEPENDENT = {
    "back": "The output of the user-provided function is independent of input {}. This is not allowed in strict mode.",
    "double_back": "The jacobian of the user-provided function is independent of input {}. This is not allowed in strict mode.",
    "hessian": "The jacobian of the user-provided function is independent of input {}. This is not allowed in strict mode.",
}


def _require_curvature(jacobian, strict):
    for i, g in enumerate(jacobian):
        if strict and not g.requires_grad:
            raise RuntimeError(
                f"While computing the hessian, found that the jacobian of the user-provided function with respect to input {i} is independent of the "
                "input. This is not allowed in strict mode. You should ensure that your function is twice differentiable and that the jacobian "
                "depends on the inputs."
            )
    return jacobian


def _require_graph(outputs, strict):
    for i, o in enumerate(outputs):
        if strict and not o.requires_grad:
            raise RuntimeError(
                f"Output {i} of the user-provided function does not require gradients. The outputs must be computed in a differentiable manner "
                "from the input when running in strict mode."
            )


def vjp(func, inputs, v=None, create_graph=False, strict=False):
    """(func(*inputs), v times the Jacobian). v has the outputs' sizes; it may be left out for one output of one element.
    strict raises when an output does not depend on an input, instead of zeros."""
    with cresset.enable_grad():
        is_tuple, inputs = _tensors(inputs, "inputs", "vjp")
        inputs = _inputs(inputs, create_graph)
        outputs_tuple, outputs = _tensors(func(*inputs), _OUTPUTS, "vjp")
        _require_graph(outputs, strict)
        if v is None:
            v = _unit_vector(
                outputs, "The vector v can only be None if the user-provided function returns a single Tensor with a single element."
            )
        else:
            v_tuple, v = _tensors(v, "v", "vjp")
            v = _inputs(v, create_graph, False)
            _check_vector(v, outputs, outputs_tuple)
        grads = _filled(_grad(outputs, inputs, v, create_graph), inputs, strict, create_graph, "back")
    return _give(_results(outputs, create_graph), outputs_tuple), _give(_results(grads, create_graph), is_tuple)


def jvp(func, inputs, v=None, create_graph=False, strict=False):
    """(func(*inputs), the Jacobian times v). v has the inputs' sizes; it may be left out for one input of one element.
    Computed by differentiating backward once more."""
    with cresset.enable_grad():
        is_tuple, inputs = _tensors(inputs, "inputs", "jvp")
        inputs = _inputs(inputs, create_graph)
        if v is None:
            v = _unit_vector(
                inputs, "The vector v can only be None if the input to the user-provided function is a single Tensor with a single element."
            )
        else:
            _, v = _tensors(v, "v", "jvp")
            v = _inputs(v, create_graph, False)
            _check_vector(v, inputs, is_tuple)
        outputs_tuple, outputs = _tensors(func(*inputs), _OUTPUTS, "jvp")
        _require_graph(outputs, strict)
        # u -> u J is linear in u: its derivative with respect to u, times v, is J v.
        u = tuple(cresset.zeros_like(o, requires_grad=True) for o in outputs)
        grads = _filled(_grad(outputs, inputs, u, True), inputs, strict, create_graph, "back")
        products = _grad(grads, u, v, create_graph)
        products = _filled(products, outputs, strict, create_graph, "double_back")
    return _give(_results(outputs, create_graph), outputs_tuple), _give(_results(products, create_graph), outputs_tuple)


def _grad_postprocess(values, create_graph):
    """Under PyTorch's name, for libraries with a `jacobian` of their own: tensors in tuples of any depth, apart from their graph without create_graph."""
    if isinstance(values, cresset.Tensor):
        return values if create_graph else values.detach()
    return tuple(_grad_postprocess(v, create_graph) for v in values)


def _tuple_postprocess(values, to_unpack):
    """Likewise: a tuple, or its only entry where `to_unpack` is False; of two flags the second decides about each entry of the tuple."""
    if isinstance(to_unpack, tuple):
        outer, inner = to_unpack
        values = tuple(_give(v, inner) for v in values)
        return _give(values, outer)
    return _give(values, to_unpack)


def _construct_standard_basis_for(tensors, numels):
    """The identity matrix of all elements, in one block of columns for each tensor, in its dtype and on its device."""
    total, start, out = sum(numels), 0, []
    for tensor, count in zip(tensors, numels):
        block = cresset.zeros(total, count, dtype=tensor.dtype, device=tensor.device)
        block[start : start + count] = cresset.eye(count, dtype=tensor.dtype, device=tensor.device)
        out.append(block)
        start += count
    return tuple(out)


def _basis(tensor):
    """The unit vectors of a tensor's space, each of its sizes."""
    for i in range(tensor.numel()):
        unit = cresset.zeros(tensor.numel(), dtype=tensor.dtype, device=tensor.device)
        unit[i] = 1
        yield unit.view(tensor.shape)


def _units(tensor):
    """All of them, stacked."""
    return cresset.eye(tensor.numel(), dtype=tensor.dtype, device=tensor.device).view(tensor.numel(), *tensor.shape)


def _forward_jacobian(func, inputs, is_tuple):
    """All columns of an input at once: the tangents of the outputs for its directions, under vmap."""
    from cresset._vmap_internals import _vmap  # functions may be called in it that read their ctx in forward

    shape = {}

    def columns(i):
        def push(unit):
            with forward_ad.dual_level():
                duals = tuple(forward_ad.make_dual(y.detach(), unit if i == j else cresset.zeros_like(y)) for j, y in enumerate(inputs))
                shape["tuple"], outputs = _tensors(func(*duals), _OUTPUTS, "jacobian")
                shape["sizes"] = [o.size() for o in outputs]
                parts = [forward_ad.unpack_dual(o) for o in outputs]
                return tuple(cresset.zeros_like(p) if t is None else t for p, t in parts)

        if inputs[i].numel():
            return _vmap(push)(_units(inputs[i]))
        shape["tuple"], outputs = _tensors(func(*inputs), _OUTPUTS, "jacobian")
        shape["sizes"] = [o.size() for o in outputs]
        return tuple(o.new_zeros((0, *o.shape)) for o in outputs)

    all_columns = [columns(i) for i in range(len(inputs))]
    return _give([
        _give([c[m].movedim(0, -1).reshape(size + x.size()) for c, x in zip(all_columns, inputs)], is_tuple)
        for m, size in enumerate(shape["sizes"])
    ], shape["tuple"])  # fmt: skip


def _batched_rows(out, inputs, create_graph):
    """For each input the rows of one output's Jacobian, all in one backward pass under vmap."""
    if not out.requires_grad or out.numel() == 0:
        return [out.new_zeros(out.size() + x.size()) for x in inputs]
    grads = cresset.autograd.grad(
        (out,), inputs, (_units(out),), allow_unused=True, create_graph=create_graph, retain_graph=True, is_grads_batched=True
    )
    return [cresset.zeros(out.size() + x.size(), dtype=x.dtype, device=x.device) if g is None else g.reshape(out.size() + x.size()) for g, x in zip(grads, inputs)]


def jacobian(func, inputs, create_graph=False, strict=False, vectorize=False, strategy="reverse-mode"):
    """The Jacobian of func: for each output and each input a tensor of the output's sizes followed by the input's sizes.

    A function of one tensor gives the tensor itself, tuples of inputs or outputs give tuples. `strategy` "forward-mode" goes by the
    inputs' directions and needs `vectorize`, which takes all directions at once under vmap.
    """
    if strategy not in ("forward-mode", "reverse-mode"):
        raise AssertionError('Expected strategy to be either "forward-mode" or "reverse-mode". Hint: If your function has more outputs than inputs, '
                             '"forward-mode" tends to be more performant. Otherwise, prefer to use "reverse-mode".')  # fmt: skip
    if strict and vectorize:
        raise RuntimeError("jacobian: `strict=True` and `vectorized=True` are not supported together. Please either set `strict=False` or "
                           "`vectorize=False`.")  # fmt: skip
    is_tuple, given = _tensors(inputs, "inputs", "jacobian")
    if strategy == "forward-mode":
        if create_graph:
            raise NotImplementedError('jacobian: `create_graph=True` and `strategy="forward-mode"` are not supported together (yet). Please '
                                      'either set `create_graph=False` or `strategy="reverse-mode"`.')  # fmt: skip
        if strict:
            raise RuntimeError('jacobian: `strict=True` and `strategy="forward-mode"` are not supported together (yet). Please either set '
                               '`strict=False` or `strategy="reverse-mode"`.')  # fmt: skip
        if not vectorize:
            raise NotImplementedError("Computing Jacobian using forward-AD or forward-over-reverse Hessian is only implemented for "
                                      "`vectorize=True`.")  # fmt: skip
        return _forward_jacobian(func, given, is_tuple)
    with cresset.enable_grad():
        inputs = _inputs(given, create_graph)
        outputs_tuple, outputs = _tensors(func(*inputs), _OUTPUTS, "jacobian")
        _require_graph(outputs, strict)
        rows = []
        for m, out in enumerate(outputs):
            if vectorize:
                rows.append(_batched_rows(out, inputs, create_graph))
                continue
            columns = [[] for _ in inputs]
            for unit in _basis(out):
                grads = _grad((out,), inputs, (unit,), create_graph)
                for i, (g, x) in enumerate(zip(grads, inputs)):
                    if strict and g is None:
                        raise RuntimeError(f"Output {m} of the user-provided function is independent of input {i}. This is not allowed in strict mode.")
                    if strict and create_graph and not g.requires_grad:
                        raise RuntimeError("The jacobian of the user-provided function is independent of input "
                                           f"{i}. This is not allowed in strict mode when create_graph=True.")  # fmt: skip
                    columns[i].append(cresset.zeros_like(x) if g is None else g)
            rows.append([
                cresset.stack(column).view(out.size() + x.size()) if column else out.new_zeros(out.size() + x.size())
                for column, x in zip(columns, inputs)
            ])  # fmt: skip
    return _give([_give(_results(row, create_graph), is_tuple) for row in rows], outputs_tuple)


def hessian(func, inputs, create_graph=False, strict=False, vectorize=False, outer_jacobian_strategy="reverse-mode"):
    """The second derivatives of func, which gives one element: for each pair of inputs a tensor of both their sizes."""
    is_tuple, inputs = _tensors(inputs, "inputs", "hessian")
    if outer_jacobian_strategy not in ("forward-mode", "reverse-mode"):
        raise AssertionError('Expected strategy to be either "forward-mode" or "reverse-mode".')

    def gradient(*values):
        if outer_jacobian_strategy == "forward-mode":
            # Tensors that vmap wraps and that carry tangents.
            with cresset.enable_grad():
                values = tuple(_C._fresh_input(v) for v in values)
                value = _single(func(*values), "func", "hessian")
                grads = _C._transform_gradients([value], values, [cresset.ones_like(value)], True, False)
            return tuple(cresset.zeros_like(v) if g is None else g for g, v in zip(grads, values))
        value = _single(func(*values), "func", "hessian")
        _require_graph((value,), strict)
        with cresset.enable_grad():
            grads = _grad((value,), values, (cresset.ones_like(value),), True)
        return _require_curvature(_filled(grads, values, False, False, "back"), strict)

    result = jacobian(gradient, inputs, create_graph=create_graph, strict=strict, vectorize=vectorize, strategy=outer_jacobian_strategy)
    return _give([_give(row, is_tuple) for row in result], is_tuple)


def _scalar_gradient(func, inputs, caller, strict):
    """(value, gradient with a graph) of a function that gives one element."""
    output = _single(func(*inputs), "func", caller)
    _require_graph((output,), strict)
    gradient = _filled(_grad((output,), inputs, (cresset.ones_like(output),), True), inputs, strict, False, "back")
    return output, _require_curvature(gradient, strict)


def _vector(v, inputs, is_tuple, create_graph, caller):
    if v is None:
        return _unit_vector(
            inputs, "The vector v can only be None if the input to the user-provided function is a single Tensor with a single element."
        )
    _, v = _tensors(v, "v", caller)
    v = _inputs(v, create_graph, False)
    _check_vector(v, inputs, is_tuple)
    return v


def vhp(func, inputs, v=None, create_graph=False, strict=False):
    """(func(*inputs), v times the Hessian) for a func of one element."""
    with cresset.enable_grad():
        is_tuple, inputs = _tensors(inputs, "inputs", "vhp")
        inputs = _inputs(inputs, create_graph)
        v = _vector(v, inputs, is_tuple, create_graph, "vhp")
        output, gradient = _scalar_gradient(func, inputs, "vhp", strict)
        product = _filled(_grad(gradient, inputs, v, create_graph), inputs, strict, create_graph, "hessian")
    return _results((output,), create_graph)[0], _give(_results(product, create_graph), is_tuple)


def hvp(func, inputs, v=None, create_graph=False, strict=False):
    """(func(*inputs), the Hessian times v) for a func of one element. vhp is faster and gives the same for smooth functions."""
    with cresset.enable_grad():
        is_tuple, inputs = _tensors(inputs, "inputs", "hvp")
        inputs = _inputs(inputs, create_graph)
        v = _vector(v, inputs, is_tuple, create_graph, "hvp")
        output, gradient = _scalar_gradient(func, inputs, "hvp", strict)
        u = tuple(cresset.zeros_like(x, requires_grad=True) for x in inputs)
        back = _filled(_grad(gradient, inputs, u, True), inputs, strict, False, "hessian")
        product = _filled(_grad(back, u, v, create_graph), inputs, strict, create_graph, "hessian")
    return _results((output,), create_graph)[0], _give(_results(product, create_graph), is_tuple)
