"""Operators made by custom_op and the functions that register parts of operators."""

import itertools

import numpy as np
import pytest

import cresset as torch
from cresset import Tensor, library
from cresset.library import Library, custom_op, opcheck

_numbers = itertools.count()


@pytest.fixture
def name():
    """A name that no other operator has."""
    return f"custom_test::op{next(_numbers)}"


def numpy_sin(name, **options):
    @custom_op(name, mutates_args=(), **options)
    def sin(x: Tensor) -> Tensor:
        return torch.from_numpy(np.sin(x.detach().numpy()))

    return sin


def test_call_and_name(name):
    sin = numpy_sin(name)
    x = torch.tensor([0.0, 1.0, 2.0])
    assert sin(x).tolist() == pytest.approx(np.sin([0.0, 1.0, 2.0]).tolist(), rel=1e-6)
    assert repr(sin) == f"<CustomOpDef({name})>"
    op = getattr(torch.ops.custom_test, name.partition("::")[2])
    assert torch.equal(op(x), sin(x)) and torch.Tag.pt2_compliant_tag in op.default.tags
    assert str(op.default._schema) == f"{name}(Tensor x) -> Tensor"


def test_gradient(name):
    sin = numpy_sin(name)
    x = torch.tensor([0.5, 1.0], dtype=torch.float64, requires_grad=True)
    y = sin(x)
    assert type(y.grad_fn).__name__.startswith("GeneratedBackwardFor_custom_test_")
    with pytest.raises(RuntimeError, match="no autograd formula was registered"):
        y.sum().backward()

    def setup(ctx, inputs, output):
        ctx.save_for_backward(*inputs)

    sin.register_autograd(lambda ctx, g: g * ctx.saved_tensors[0].cos(), setup_context=setup)
    assert torch.autograd.gradcheck(sin, (x,))
    with torch.no_grad():
        assert not sin(x).requires_grad


def test_lists_keywords_and_several_results(name):
    seen = {}

    @custom_op(name, mutates_args=())
    def scale(xs: list[Tensor], by: float, *, plus: int = 0) -> tuple[list[Tensor], Tensor]:
        return [x * by + plus for x in xs], xs[0].clone()

    def setup(ctx, inputs, keyword_only_inputs, output):
        seen["inputs"], seen["keywords"], seen["output"], seen["needs"] = inputs, keyword_only_inputs, output, ctx.needs_input_grad
        ctx.by = inputs[1]

    def backward(ctx, grads, grad):
        return [grads[0] * ctx.by + grad, *[g * ctx.by for g in grads[1:]]], None

    scale.register_autograd(backward, setup_context=setup)
    a, b = torch.ones(2, requires_grad=True), torch.ones(2)
    outs, copy = scale([a, b], 3.0, plus=1)
    assert outs[0].tolist() == [4.0, 4.0] and outs[1].tolist() == [4.0, 4.0]
    assert seen["keywords"] == {"plus": 1} and seen["needs"] == ([True, False], False) and seen["inputs"][1] == 3.0 and len(seen["output"][0]) == 2
    (outs[0].sum() + copy.sum()).backward()
    assert a.grad.tolist() == [4.0, 4.0] and b.grad is None


@pytest.mark.parametrize(
    "gradients, words",
    [((None,), "of the same structure as the inputs: 2 gradients"), ((torch.ones(2), None), "for argument 0 a list of 1")],
)
def test_wrong_gradients(name, gradients, words):
    @custom_op(name, mutates_args=())
    def f(xs: list[Tensor], k: float) -> list[Tensor]:
        return [x * k for x in xs]

    f.register_autograd(lambda ctx, g: gradients)
    out = f([torch.ones(2, requires_grad=True)], 2.0)
    with pytest.raises(RuntimeError, match=words):
        out[0].sum().backward()


@pytest.mark.parametrize("body", [lambda x: x, lambda x: x.view(-1), lambda x: x[:1]])
def test_results_must_be_fresh(name, body):
    def f(x: Tensor) -> Tensor:
        return body(x)

    with pytest.raises(RuntimeError, match="must not also be an input to this custom operator"):
        custom_op(name, f, mutates_args=())(torch.ones(3))


def test_two_results_must_not_share(name):
    def f(x: Tensor) -> tuple[Tensor, Tensor]:
        y = x + 1
        return y, y[0]

    with pytest.raises(RuntimeError, match="other returns"):
        custom_op(name, f, mutates_args=())(torch.ones(3))


def test_mutation_counts_a_version(name):
    @custom_op(name, mutates_args=("x",))
    def write(x: Tensor, value: float) -> None:
        np.copyto(x.numpy(), value)

    x = torch.zeros(2)
    before = x._version
    assert write(x, 2.5) is None
    assert x.tolist() == [2.5, 2.5] and x._version > before
    w = torch.ones(2, requires_grad=True)
    y = w * x
    write(x, 1.0)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.sum().backward()
    with pytest.raises(RuntimeError, match="non-functional operator"):
        write.register_autograd(lambda ctx: None)


def test_fake(name):
    sin = numpy_sin(name)
    meta = torch.empty(3, device="meta")
    with pytest.raises(RuntimeError, match="no fake impl registered"):
        sin(meta)
    contexts = []
    sin.register_fake(lambda x: contexts.append(library.get_ctx()) or torch.empty_like(x))
    assert sin(meta).shape == (3,) and sin(meta).is_meta
    assert library.get_ctx() is None
    with pytest.raises(RuntimeError, match="data-dependent shape"):
        contexts[0].new_dynamic_size()
    sin.register_fake(lambda x: x.new_empty(7))
    assert sin(meta).shape == (7,)


def test_kernels_of_devices(name):
    sin = numpy_sin(name, device_types="cpu")
    sin.register_kernel("cpu", lambda x: x + 100)
    x = torch.zeros(1)
    assert sin(x).item() == 100.0
    with sin.set_kernel_enabled("cpu", False):
        assert sin(x).item() == 0.0
    assert sin(x).item() == 100.0
    only_cuda = numpy_sin(name + "_cuda", device_types="cuda")
    with pytest.raises(NotImplementedError, match=f"Could not run '{name}_cuda' with arguments from the 'CPU' backend"):
        only_cuda(x)
    with pytest.raises(RuntimeError, match="Expected one of cpu"):
        sin.register_kernel("toaster", lambda x: x)


def test_a_second_definition_replaces(name):
    numpy_sin(name)
    again = custom_op(name, lambda x: x, mutates_args=(), schema="(Tensor x) -> Tensor")
    again.register_kernel(None, lambda x: x + 1)
    assert again(torch.ones(1)).item() == 2.0


@pytest.mark.parametrize(
    "arguments, words",
    [
        (dict(name="nocolon", mutates_args=()), "of the form 'namespace::name'"),
        (dict(name="ns::f", mutates_args=(), schema="(Tensor(a!) x) -> Tensor"), "Please make these consistent"),
        (dict(name="ns::f", mutates_args=("x",), schema="(Tensor x) -> Tensor"), "Please make these consistent"),
        (dict(name="ns::f", mutates_args=(), schema="(Tensor x, Tensor y) -> Tensor"), "must be as many"),
    ],
)
def test_definitions_that_are_refused(arguments, words):
    def f(x: Tensor) -> Tensor:
        return x.clone()

    with pytest.raises(ValueError, match=words):
        custom_op(arguments.pop("name"), f, **arguments)


def test_autocast(name):
    seen = []

    @custom_op(name, mutates_args=())
    def f(x: Tensor, ys: list[Tensor]) -> Tensor:
        seen.append((x.dtype, [y.dtype for y in ys]))
        return x.clone()

    f.register_autocast("cpu", torch.bfloat16)
    one = torch.ones(1)
    f(one, [one])
    with torch.autocast("cpu"):
        f(one, [one, one.long(), one.double()])
        assert torch.is_autocast_enabled("cpu")
    assert seen == [(torch.float32, [torch.float32]), (torch.bfloat16, [torch.bfloat16, torch.int64, torch.float64])]


# --- the functions that register for operators of a Library -----------------------------------------------------------------


@pytest.fixture
def lib():
    with library._scoped_library("register_test", "FRAGMENT") as made:
        yield made


def test_register_for_library_operators(lib):
    lib.define("square(Tensor x) -> Tensor")

    @library.register_kernel("register_test::square", "cpu", lib=lib)
    def _(x):
        return (x.detach() ** 2).clone()

    @library.register_fake("register_test::square", lib=lib)
    def _(x):
        return torch.empty_like(x)

    def setup(ctx, inputs, output):
        ctx.save_for_backward(inputs[0])

    library.register_autograd("register_test::square", lambda ctx, g: 2 * g * ctx.saved_tensors[0], setup_context=setup, lib=lib)
    op = torch.ops.register_test.square
    x = torch.tensor([3.0], dtype=torch.float64, requires_grad=True)
    assert op(x).item() == 9.0 and op(torch.ones(2, device="meta")).is_meta
    assert torch.autograd.gradcheck(op, (x,))
    assert opcheck(op, (x,)) == dict.fromkeys(("test_schema", "test_autograd_registration", "test_faketensor", "test_aot_dispatch_dynamic"), "SUCCESS")
    assert library.get_kernel("register_test::square", "CPU")(torch.tensor([2.0])).item() == 4.0


@pytest.mark.parametrize(
    "call, error, words",
    [
        (lambda: library.register_autograd("register_test::mut", None), RuntimeError, "non-functional operator"),
        (lambda: library.register_autograd("register_test::none", None), RuntimeError, "non-functional operator"),
        (lambda: library.register_autograd("register_test::view", None), RuntimeError, "non-functional operator"),
        (lambda: library.register_fake("register_test::composite", print), RuntimeError, "it has a CompositeImplicitAutograd kernel"),
        (lambda: library.register_fake("register_test::absent", print), RuntimeError, "operator register_test::absent does not exist"),
        (lambda: library.register_kernel("register_test::absent", "cpu", print), AttributeError, "object has no attribute 'absent'"),
        (lambda: library.register_autograd("aten::add.absent", print), AttributeError, "has no overload name 'absent'"),
        (lambda: library.register_kernel("noname", "cpu", print), ValueError, 'of the form "namespace::name"'),
        (lambda: library.register_kernel("register_test::mut", "toaster", print), RuntimeError, "Expected one of cpu"),
        (lambda: library.get_kernel("register_test::mut", "CPU"), RuntimeError, "no kernel for CPU for register_test::mut"),
        (lambda: library.wrap_triton(print), NotImplementedError, "no Triton backend"),
        (lambda: opcheck(torch.ops.register_test.mut, (), test_utils="nonsense"), ValueError, "test_utils to be subset"),
        (lambda: opcheck(print, ()), ValueError, "must be instance of torch._ops.OpOverload"),
    ],
)
def test_registrations_that_are_refused(lib, call, error, words):
    lib.define("mut(Tensor(a!) x) -> Tensor(a!)")
    lib.define("none(Tensor x) -> ()")
    lib.define("view(Tensor(a) x) -> Tensor(a)")
    lib.define("composite(Tensor x) -> Tensor")
    lib.impl("composite", lambda x: x.sin(), "CompositeImplicitAutograd")
    with pytest.raises(error, match=words):
        call()


def hidden_write(x):
    x.add_(1)
    return x.clone()


@pytest.mark.parametrize(
    "schema, kernels, inputs, test, words",
    [
        ("(Tensor x) -> Tensor", {"CPU": hidden_write}, 1, "test_schema", "Argument x is not defined as mutable but was mutated"),
        ("(Tensor x) -> Tensor", {"CPU": lambda x: x.detach()}, 1, "test_schema", "Argument x is not defined to alias output but was aliasing"),
        ("(Tensor x) -> (Tensor, Tensor)", {"CPU": lambda x: (y := x + 1, y[:])}, 1, "test_schema", "Outputs 0 and 1 alias unexpectedly"),
        ("(Tensor x) -> Tensor", {"CPU": lambda x: x.detach().clone().requires_grad_()}, 2, "test_autograd_registration", "does not have an autograd kernel defined"),
        ("(Tensor x) -> Tensor", {"CPU": lambda x: x.clone(), "Meta": lambda x: x.new_empty(7)}, 1, "test_faketensor", "Shapes .* are not equal"),
        ("(Tensor x) -> Tensor", {"CPU": lambda x: x.clone(), "Meta": lambda x: x.new_empty(3, dtype=torch.int64)}, 1, "test_faketensor", "Dtypes .* are not equal"),
        ("(Tensor x) -> Tensor", {"CPU": lambda x: x.expand(3, 3).clone(), "Meta": lambda x: x.new_empty(3, 3).t()}, 1, "test_faketensor", "Stride mismatch"),
        ("(Tensor x) -> Tensor", {"CPU": lambda x: x.clone()}, 1, "test_faketensor", "Use register_fake to add one"),
        ("(Tensor x) -> Tensor", {"CPU": lambda x: x.clone()}, 1, "test_aot_dispatch_dynamic", "register_test.checked"),
    ],
)
def test_opcheck_finds(lib, schema, kernels, inputs, test, words):
    lib.define("checked" + schema)
    for key, kernel in kernels.items():
        lib.impl("checked", kernel, key)
    args = (torch.arange(3.0).requires_grad_(inputs == 2),)
    op = torch.ops.register_test.checked
    with pytest.raises(library_error(), match=f"{test} failed with .*{words}"):
        opcheck(op, args, test_utils=test)
    assert isinstance(opcheck(op, args, test_utils=(test,), raise_exception=False)[test], Exception)


def library_error():
    from cresset._library.opcheck import OpCheckError

    return OpCheckError


def test_a_rule_of_one_class_for_one_operator(name):
    sin = numpy_sin(name)

    class Seen(torch.Tensor):
        @classmethod
        def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
            return NotImplemented

    sin.register_torch_dispatch(Seen, lambda cls, func, types, args, kwargs: torch.full((1,), 42.0))
    assert sin(torch.Tensor._make_subclass(Seen, torch.ones(2))).item() == 42.0


def test_overload_object(lib):
    lib.define("halve(Tensor x) -> Tensor", tags=torch.Tag.pointwise)
    op = torch.ops.register_test.halve.default
    assert op.tags == [torch.Tag.pointwise] and "pointwise" in op.tags
    lib.impl("halve", lambda x: x / 2, "CompositeImplicitAutograd")
    assert op.decompose(torch.ones(1)).item() == 0.5
    lib.define("opaque(Tensor x) -> Tensor")
    assert torch.ops.register_test.opaque.default.decompose(torch.ones(1)) is NotImplemented
    assert [a.alias for a in torch.ops.aten.add_.Tensor._schema.arguments][:2] == ["a", ""]


def test_registrations_go_with_the_library():
    lib = Library("gone_test", "FRAGMENT")
    lib.define("f(Tensor x) -> Tensor")
    library.register_kernel("gone_test::f", "cpu", lambda x: x + 1, lib=lib)
    library.register_autograd("gone_test::f", lambda ctx, g: g, lib=lib)
    assert torch.ops.gone_test.f(torch.ones(1)).item() == 2.0
    lib._destroy()
    assert not torch._C._dispatch_has_kernel("gone_test::f")


# --- sizes that depend on values ----------------------------------------------------------------------------------------------


def nonzero_op(name, wrong=False, **bounds):
    @custom_op(name, mutates_args=())
    def rows(x: Tensor) -> tuple[Tensor, Tensor]:
        found = x.nonzero().contiguous()
        return found, x.new_zeros(found.shape[0] * 2)

    @rows.register_fake
    def _(x):
        n = torch.library.get_ctx().new_dynamic_size(**bounds)
        return x.new_empty([n, x.dim() + wrong], dtype=torch.int64), x.new_empty(n * 2)

    return rows


def test_new_dynamic_size(name):
    from cresset._subclasses.fake_tensor import DynamicOutputShapeException, FakeTensorMode

    rows = nonzero_op(name)
    x = torch.tensor([[1.0, 0.0], [2.0, 3.0]])
    assert rows(x)[0].shape == (3, 2) and set(opcheck(rows, (x,)).values()) == {"SUCCESS"}
    with pytest.raises(RuntimeError, match="You're trying to run this operator with meta Tensors .as opposed to FakeTensors., but this operator may return an output"):
        rows(x.to("meta"))
    with pytest.raises(DynamicOutputShapeException, match=f"{name.replace('::', '.')}.default"):
        rows(FakeTensorMode().from_tensor(x))
    assert torch.library.get_ctx() is None


@pytest.mark.parametrize(
    "options, words",
    [
        (dict(wrong=True), "Shapes .* are not equal"),
        (dict(max=2), r"new_dynamic_size\(min=0, max=2\): the real operator gave the size 3"),
        (dict(min=4), r"new_dynamic_size\(min=4, max=None\): the real operator gave the size 3"),
        (dict(min=-1), "this API can only create non-negative sizes"),
    ],
)
def test_opcheck_of_dynamic_sizes(name, options, words):
    with pytest.raises(torch._library.opcheck.OpCheckError, match=words):
        opcheck(nonzero_op(name, **options), (torch.ones(3),))


def test_opcheck_compares_devices(name):
    @custom_op(name, mutates_args=())
    def f(x: Tensor) -> Tensor:
        return x.clone()

    f.register_fake(lambda x: torch.empty(x.shape, device="meta"))
    with pytest.raises(Exception, match="Devices cpu and meta are not equal!"):
        opcheck(f, (torch.ones(2),), test_utils="test_faketensor")


def test_writing_operators_look_at_memory_of_what_requires_grad(name):
    @custom_op(name, mutates_args={"out"})
    def f(x: Tensor, out: Tensor) -> None:
        out.numpy()[:] = x.numpy() * 2

    x, out = torch.ones(2, requires_grad=True), torch.zeros(2)
    before = out._version
    f(x, out)
    assert out.tolist() == [2.0, 2.0] and out._version > before


def test_operators_that_may_call_triton(name):
    @library.triton_op(name, mutates_args=())
    def double(x: Tensor, by: float = 2.0) -> Tensor:
        return x.sin() * by

    x = torch.ones(2, requires_grad=True)
    assert double._opoverload.name() == name and torch.equal(double(x), x.sin() * 2)
    assert double(torch.ones(2, device="meta")).shape == (2,)  # the function itself computes shapes
    with pytest.raises(RuntimeError, match="no autograd formula was registered"):
        double(x).sum().backward()
    double.register_autograd(lambda ctx, g: (g * 7, None))
    double(x).sum().backward()
    assert x.grad.tolist() == [7, 7]
    opcheck(double, (torch.ones(2),))
    with pytest.raises(NotImplementedError, match="no Triton backend"):
        library.wrap_triton(print)
