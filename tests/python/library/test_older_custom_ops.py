"""The two older interfaces of custom operators, _custom_ops and _custom_op, and what custom_op has in common with PyTorch's."""

import cresset as torch
import pytest
from cresset import _custom_ops as custom_ops
from cresset import library
from cresset._custom_op import impl as older

NAME = "older_ops::foo"


@pytest.fixture(autouse=True)
def gone():
    yield
    for name in [n for n in older.global_registry if n.startswith("older_ops::")]:
        custom_ops._destroy(name)


def sine(backward=None, save=lambda inputs, output: inputs.x, **options):
    @custom_ops.custom_op(NAME)
    def foo(x: torch.Tensor, dim: int = 0) -> torch.Tensor:
        raise NotImplementedError

    custom_ops.impl(NAME, func=lambda x, dim=0: x.sin())
    if save:
        custom_ops.impl_save_for_backward(NAME, func=save)
    if backward:
        custom_ops.impl_backward(NAME, func=backward, **options)
    return torch.ops.older_ops.foo


def test_an_operator_with_its_gradient():
    seen = []

    def save(inputs, output):
        seen.append(inputs._fields)
        return {"x": inputs.x, "n": 2}

    op = sine(lambda ctx, saved, grad: {"x": grad * saved["x"].cos() * saved["n"]}, save)
    x = torch.tensor(0.5, requires_grad=True)
    y = op(x)
    assert torch.equal(y, x.sin()) and seen == [("x", "dim")]
    y.backward()
    torch.testing.assert_close(x.grad, 2 * x.detach().cos())


@pytest.mark.parametrize(
    "result, words",
    [
        (lambda g: g, "to be a dict"),
        (lambda g: {"x": g, "dim": None}, "non-Tensor-like types"),
        (lambda g: {}, "to have keys {'x'}"),
        (lambda g: {"x": (g,)}, "either None or a Tensor"),
    ],
)
def test_gradients_of_another_form_are_refused(result, words):
    op = sine(lambda ctx, saved, grad: result(grad))
    with pytest.raises(RuntimeError, match=words):
        op(torch.ones((), requires_grad=True)).backward()


@pytest.mark.parametrize("result, words", [([None] * 2, "3 gradients but got 2"), ([None, None, (1,)], "None or Tensor"), (None, "list of gradients")])
def test_gradients_of_lists(result, words):
    custom_ops.custom_op(NAME, "(Tensor[] xs) -> Tensor")
    custom_ops.impl(NAME, func=lambda xs: xs[0].sin())
    custom_ops.impl_save_for_backward(NAME, func=lambda inputs, output: None)
    custom_ops.impl_backward(NAME, func=lambda ctx, saved, grad: {"xs": result})
    with pytest.raises(RuntimeError, match=words):
        torch.ops.older_ops.foo([torch.ones((), requires_grad=True) for _ in range(3)]).backward()


def test_half_a_gradient_and_none():
    op = sine(lambda ctx, saved, grad: {"x": grad}, save=None)
    with pytest.raises(RuntimeError, match="unable to find a 'save_for_backward'"):
        op(torch.ones((), requires_grad=True))
    custom_ops._destroy(NAME)
    op = sine(save=None)
    with pytest.raises(RuntimeError, match="Autograd has not been implemented"):
        op(torch.ones((), requires_grad=True))
    with torch.no_grad():
        assert op(torch.zeros((), requires_grad=True)).item() == 0


def test_results_that_are_not_differentiable():
    @custom_ops.custom_op(NAME)
    def foo(x: torch.Tensor) -> tuple[list[torch.Tensor], torch.Tensor]:
        raise NotImplementedError

    custom_ops.impl(NAME, func=lambda x: ([x.clone(), x.clone()], x.clone()))
    custom_ops.impl_save_for_backward(NAME, func=lambda inputs, output: [])
    custom_ops.impl_backward(NAME, output_differentiability=[False, True], func=lambda ctx, saved, g_list, g: {"x": g})
    [a, b], c = torch.ops.older_ops.foo(torch.ones(2, requires_grad=True))
    assert not a.requires_grad and not b.requires_grad and c.requires_grad
    for wrong in (True, [True]):
        with pytest.raises(RuntimeError, match="output_differentiability"):
            custom_ops.impl_backward(NAME, output_differentiability=wrong)


def test_calls_without_a_kernel():
    custom_ops.custom_op(NAME, "(Tensor[] xs) -> Tensor")
    op = torch.ops.older_ops.foo
    for tensors, words in (([torch.ones(1)], "no cpu impl registered"), ([torch.ones(1, device="meta")], "no fake impl or Meta kernel"), ([], "no Tensor inputs")):
        with pytest.raises(NotImplementedError, match=words):
            op(tensors)


@pytest.mark.parametrize(
    "name, schema, error, words",
    [
        (NAME, "(", AssertionError, "Invalid function schema: foo"),
        ("older_ops::foo.Tensor", "() -> ()", ValueError, "overload"),
        ("aten::foo", "(Tensor x) -> Tensor", ValueError, "is a reserved namespace"),
        (NAME, "(Tensor(a!) x) -> Tensor(a)", ValueError, "only supports functional"),
        (NAME, "(Tensor x) -> ()", ValueError, "only supports functional"),
        (NAME, "(Tensor self) -> ()", ValueError, "self"),
    ],
)
def test_definitions_that_are_refused(name, schema, error, words):
    with pytest.raises(error, match=words):
        custom_ops.custom_op(name, schema)


def test_a_name_is_taken_once_and_kernels_are_given_once():
    sine()
    with pytest.raises(RuntimeError, match="multiple times"):
        sine()
    with pytest.raises(RuntimeError, match="already has an implementation"):
        custom_ops.impl(NAME, func=print)
    with pytest.raises(ValueError, match="we only support device_type"):
        custom_ops.impl(NAME, device_types=["cpu", "hip"])
    with pytest.raises(ValueError, match="to have name 'foo'"):
        custom_ops.custom_op(NAME, lambda x: x)
    with pytest.raises(RuntimeError, match="constructor is private"):
        older.CustomOp(None, None, None, None, None)


@pytest.mark.parametrize(
    "schema, function, words",
    [
        ("(Tensor y) -> Tensor", lambda x: x, "signature to match"),
        ("(Tensor x, *, Tensor y) -> Tensor", lambda x, y: x, "signature to match"),
        ("(Tensor x) -> Tensor", lambda *x: x, "not supported"),
        ("(Tensor x) -> Tensor", lambda x=1: x, "default arguments"),
    ],
)
def test_signatures_that_do_not_fit(schema, function, words):
    function.__name__ = "foo"
    with pytest.raises(ValueError, match=words):
        older.custom_op(NAME, schema)(function)


@pytest.mark.parametrize(
    "schema, key, words",
    [
        ("(Tensor(a) x) -> Tensor(a)", None, "operator that returns views"),
        ("(Tensor(a!) x) -> Tensor", None, "non-functional"),
        ("(Tensor x) -> ()", None, "no returns"),
        *(("(Tensor x) -> Tensor", key, key) for key in ("CompositeImplicitAutograd", "Autograd", "AutogradCPU")),
    ],
)
def test_gradients_of_other_operators_that_are_refused(schema, key, words):
    with library._scoped_library("older_ops", "FRAGMENT") as lib:
        lib.define(f"bar{schema}")
        if key:
            lib.impl("bar", lambda x: x.sin(), key)
        for register in (custom_ops.impl_backward, custom_ops.impl_save_for_backward):
            with pytest.raises(RuntimeError, match=words):
                register("older_ops::bar", func=lambda *a: None)
        custom_ops._destroy("older_ops::bar")


# --- custom_op ------------------------------------------------------------------------------------------------------------------


def test_names_with_overloads_and_keyword_tensors():
    calls = []

    @library.custom_op("older_ops::f", mutates_args=())
    def f(x: torch.Tensor) -> torch.Tensor:
        calls.append(1)
        return x.clone()

    @library.custom_op("older_ops::f.overload", mutates_args=())
    def f2(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        calls.append(2)
        return x.clone()

    x = torch.ones(1)
    torch.ops.older_ops.f(x), torch.ops.older_ops.f(x, x)
    assert calls == [1, 2] and torch.ops.older_ops.f.overloads() == ["default", "overload"]
    with pytest.raises(NotImplementedError, match="kwarg-only Tensor args"):

        @library.custom_op("older_ops::g", mutates_args=())
        def g(x: torch.Tensor, *, z: torch.Tensor) -> torch.Tensor:
            return x.clone()


def test_operators_without_tensors_run_by_their_device():
    @library.custom_op("older_ops::made", mutates_args={}, device_types="cpu")
    def made(device: torch.device) -> torch.Tensor:
        return torch.ones(3)

    assert made(device="cpu").sum() == 3
    with pytest.raises(RuntimeError, match="made does not have a kernel registered for cuda"):
        made("cuda")
    with pytest.raises(ValueError, match="required to have a `device: torch.device` argument"):

        @library.custom_op("older_ops::made2", mutates_args={}, device_types="cpu")
        def made2() -> torch.Tensor:
            return torch.ones(3)


def test_turning_a_kernel_off_says_so(caplog):
    @library.custom_op("older_ops::h", mutates_args=())
    def h(x: torch.Tensor) -> torch.Tensor:
        return x + 1

    with h.set_kernel_enabled("gpu", enabled=False):
        assert "no kernel was registered for this device type" in caplog.text
    h.register_kernel("cpu", lambda x: x + 2)
    with h.set_kernel_enabled("cpu", enabled=True):
        assert "already enabled" in caplog.text
    with h.set_kernel_enabled("cpu", enabled=False), h.set_kernel_enabled("cpu", enabled=False):
        assert "already disabled" in caplog.text and h(torch.zeros(1)) == 1


def test_what_is_registered_can_be_asked():
    with library._scoped_library("older_ops", "FRAGMENT") as lib:
        lib.define("k(Tensor x) -> Tensor")
        lib.impl("k", lambda x: x.clone(), "CPU")
        assert "older_ops/k/CPU" in library._impls and torch.ops.older_ops.k.default._defined_in_python
        library.register_fake("older_ops::k", lambda x: x.clone(), lib=lib)
        assert "test_older_custom_ops.py" in torch._library.simple_registry.singleton.find("older_ops::k").fake_impl.kernel.source
        with pytest.raises(RuntimeError, match="no such|already a kernel"):
            lib.impl("k", print, "CPU", allow_override=False)
    assert "older_ops/k/CPU" not in library._impls
    assert not torch.ops.aten.sin.default._defined_in_python and torch.Tag.pt2_compliant_tag in torch.ops.aten.sin.default.tags


def test_schema_words():
    with library._scoped_library("older_ops", "FRAGMENT") as lib:
        for schema, words in (("f12(int64_t a) -> Tensor", "Use `SymInt` or `int`"), ("f12(double a) -> Tensor", "Use `float`"), ("f12(asdf a) -> Tensor", "unknown type specifier")):
            with pytest.raises(RuntimeError, match=words):
                lib.define(schema)
    assert [str(s) for s in torch._C._jit_get_schemas_for_operator("aten::relu")] and torch._C._jit_get_schemas_for_operator("aten::relu")[0].overload_name == ""


def test_schema_check_mode():
    from cresset._subclasses.schema_check_mode import SchemaCheckMode

    with library._scoped_library("older_ops", "FRAGMENT") as lib:
        lib.define("alias(Tensor x) -> Tensor")
        lib.impl("alias", lambda x: x[:], "CompositeExplicitAutograd")
        lib.define("write(Tensor x) -> Tensor")
        lib.impl("write", lambda x: x.add_(1).clone(), "CompositeExplicitAutograd")
        mode = SchemaCheckMode()
        with mode:
            torch.ones(2).view(2, 1).add_(1)
            torch.unsafe_split(torch.ones(4), 2)  # its pieces are declared as no views, in PyTorch too
            with pytest.raises(RuntimeError, match="Argument x is not defined to alias output but was aliasing"):
                torch.ops.older_ops.alias(torch.ones(2))
            with pytest.raises(RuntimeError, match="Argument x is not defined as mutable but was mutated"):
                torch.ops.older_ops.write(torch.ones(2))
        assert mode.mutated[0] == ("aten::add_", "self") and mode.aliasing[0] == ("aten::view", "self", "output_0") and "aten::ones" in mode.ops


def test_schemas_of_graphs_are_checked():
    check = torch._C._jit_check_alias_annotation
    with library._scoped_library("older_ops", "FRAGMENT") as lib:
        lib.define("half(Tensor x) -> Tensor")
        lib.impl("half", lambda x: x[:1], "CompositeExplicitAutograd")
        x = torch.ones(2, requires_grad=True)
        check(torch._C.parse_ir("graph(%x : Tensor):\n  %y : Tensor = aten::sin_(%x)\n  return (%y)"), (x,), "sin_")
        assert x.tolist() == [1, 1]  # copies are written
        graph = torch._C.parse_ir("graph(%x : Tensor):\n  %y : Tensor = older_ops::half(%x)\n  return (%y)")
        with pytest.raises(RuntimeError, match="Argument x is not defined to alias output but was aliasing"):
            check(graph, (x,), "half")


def test_cross_reference_of_fake_tensors():
    from cresset._subclasses import CrossRefFakeMode

    with library._scoped_library("older_ops", "FRAGMENT") as lib:
        lib.define("other(Tensor x) -> Tensor")
        lib.impl("other", lambda x: x.sum(), "CPU")
        lib.impl("other", lambda x: x.clone(), "Meta")
        with CrossRefFakeMode(), pytest.raises(RuntimeError, match=r"Shapes torch.Size\(\[\]\) and|Shapes"):
            torch.ops.older_ops.other(torch.ones(2))
        with CrossRefFakeMode():
            torch.ones(2, 3) @ torch.ones(3, 2)


def test_schemas_print_as_they_are_read():
    @library.custom_op("older_ops::defaults", mutates_args={"w"})
    def defaults(x: torch.Tensor, w: list[torch.Tensor | None], i: torch.device = torch.device("cpu:0"), j: torch.device = "cpu") -> None:
        seen.append((i, j))

    seen = []
    defaults(torch.ones(1), [None, torch.ones(1)])
    schema = torch.ops.older_ops.defaults.default._schema
    assert str(schema) == 'older_ops::defaults(Tensor x, Tensor(a1!)?[] w, Device i="cpu:0", Device j="cpu") -> ()'
    assert torch._C.parse_schema(str(schema)) == schema and seen == [(torch.device("cpu:0"), torch.device("cpu"))]
    with library._scoped_library("older_ops", "FRAGMENT") as lib:
        lib.define("keyword(Tensor x, *, Tensor y) -> Tensor")
        with pytest.raises(NotImplementedError, match="kwarg-only Tensor args"):
            library.register_vmap("older_ops::keyword", lambda info, in_dims, x, *, y: (x, 0), lib=lib)


def test_tables_of_registrations():
    from cresset._python_dispatcher import PythonDispatcher

    dispatcher = PythonDispatcher()
    dispatcher.register(["Lazy", "XLA", "FPGA", "CPU", "CompositeImplicitAutograd"])
    assert [line.split()[0] for line in dispatcher.registrations().splitlines()[4:]] == ["FPGA", "CPU", "XLA", "Lazy", "CompositeImplicitAutograd[alias]"]
    assert "Lazy            fn_Lazy [kernel]" in dispatcher.dispatchTable() and "AutogradLazy " in dispatcher.dispatchTable()


def test_pieces_of_memory_that_nobody_else_has_may_be_shared():
    from cresset._subclasses.schema_check_mode import SchemaCheckMode

    x = torch.arange(3)
    with SchemaCheckMode():  # reshape of what cannot be a view copies first
        assert torch.cartesian_prod(x, x).shape == (9, 2)
