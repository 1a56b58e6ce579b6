"""Operators and kernels registered from Python, cresset.ops, queries of the dispatcher."""

import gc
import subprocess
import sys
import threading

import pytest

import cresset as torch
from cresset import library
from cresset.library import Library, define, fallthrough_kernel, impl


@pytest.fixture
def lib():
    made = Library("pylib", "DEF")
    yield made
    made._destroy()


def test_define_and_impl(lib):
    assert lib.define("scale(Tensor x, float by=2.0, *, ScalarType? dtype=None) -> Tensor") == "scale"
    seen = []
    lib.impl("scale", lambda x, by, dtype: seen.append((by, dtype)) or x * by, "CPU")
    lib.impl("scale", lambda x, by, dtype: x.new_empty(x.shape), "Meta")
    op = torch.ops.pylib.scale
    assert op(torch.ones(2)).tolist() == [2.0, 2.0]
    assert op(torch.ones(2), by=3, dtype=torch.float64).tolist() == [3.0, 3.0]
    assert seen == [(2.0, None), (3.0, torch.float64)]
    assert op(torch.empty(2, device="meta")).is_meta
    assert str(op.default._schema) == "pylib::scale(Tensor x, float by=2., *, ScalarType? dtype=None) -> Tensor"
    assert [a.name for a in op.default._schema.arguments] == ["x", "by", "dtype"]
    assert op.overloads() == ["default"] and op.default.name() == "pylib::scale" and repr(op.default) == "<OpOverload(op='pylib.scale', overload='default')>"


@pytest.mark.parametrize(
    "call, error, words",
    [
        (lambda op: op(), RuntimeError, "is missing value for argument 'x'"),
        (lambda op: op(torch.ones(1), "a"), RuntimeError, "Expected a value of type 'int' for argument 'n' but instead found type 'str'"),
        (lambda op: op(torch.ones(1), 1, q=1), RuntimeError, r"expected at most 2 argument\(s\) but received 3"),
        (lambda op: op(torch.ones(1), 1, 2), RuntimeError, r"expected at most 2 argument\(s\) but received 3"),
        (lambda op: op.foo, AttributeError, "has no overload name 'foo'"),
        (lambda op: torch.ops.pylib.repet, AttributeError, "has no attribute 'repet'"),
        (lambda op: op(torch.empty(1, device="meta"), 1), NotImplementedError, "pylib::repeat: attempted to run this operator with Meta tensors"),
    ],
)
def test_call_errors(lib, call, error, words):
    lib.define("repeat(Tensor x, int n) -> Tensor[]")
    lib.impl("repeat", lambda x, n: [x.clone() for _ in range(n)], "CPU")
    assert [t.tolist() for t in torch.ops.pylib.repeat(torch.ones(1), 2)] == [[1.0], [1.0]]
    with pytest.raises(error, match=words):
        call(torch.ops.pylib.repeat)


def test_overloads_are_tried_in_order(lib):
    lib.define("f.Tensor(Tensor x) -> str")
    lib.define("f.int(int x, int[2] y=3) -> str")
    lib.impl("f.Tensor", lambda x: "tensor", "CompositeExplicitAutograd")
    lib.impl("f.int", lambda x, y: f"int {y}", "CompositeExplicitAutograd")
    assert torch.ops.pylib.f(torch.ones(1)) == "tensor" and torch.ops.pylib.f(1) == "int [3, 3]" and torch.ops.pylib.f(1, [4, 5]) == "int [4, 5]"
    with pytest.raises(RuntimeError, match="failed to match any schema"):
        torch.ops.pylib.f("text")


def test_all_kinds_of_arguments(lib):
    lib.define(
        "kinds(Tensor? t, Tensor?[] ts, Scalar s, bool b, str name, Device d, Layout l, MemoryFormat m, int[]? ints=None, float[] fs=[1.5], Generator? g=None) -> (int, str)"
    )
    seen = []
    lib.impl("kinds", lambda *args: seen.append(args) or (1, "x"), "CompositeExplicitAutograd")
    given = (None, [None, torch.ones(1)], 2.5, True, "n", torch.device("cpu"), torch.strided, torch.channels_last)
    assert torch.ops.pylib.kinds(*given) == (1, "x")
    assert seen[0][:1] == (None,) and seen[0][2:] == (2.5, True, "n", torch.device("cpu"), torch.strided, torch.channels_last)
    assert seen[0][1][0] is None


def test_kernels_get_no_defaults_that_they_have_themselves(lib):
    lib.define("d(Tensor x, int n=2, *, bool b=True, str s='q') -> Tensor")
    seen = []
    lib.impl("d", lambda x, *args, **kwargs: seen.append((args, kwargs)) or x, "CPU")
    x, d = torch.ones(1), torch.ops.pylib.d
    d(x), d(x, 3), d(x, 2, b=True), d(x, b=False), d(x, n=2, s="r")
    assert seen == [((), {}), ((3,), {}), ((), {}), ((), {"b": False}), ((), {"s": "r"})]
    lib.define("e(Tensor x, int n=2, *, bool b=True, str s='q') -> Tensor")
    lib.impl("e", lambda x, n, m=0, *, s, b=None: seen.append((n, m, s, b)) or x, "CPU")
    torch.ops.pylib.e(x)
    assert seen[-1] == (2, 0, "q", None)
    with library._scoped_library("aten", "IMPL") as aten:
        aten.impl("rsub.Tensor", lambda a, b: a * 100, "AutogradCPU")  # alpha is not asked for
        assert torch.rsub(x, x).item() == 100.0


def test_wrong_results_are_refused(lib):
    lib.define("bad(Tensor x) -> Tensor")
    lib.impl("bad", lambda x: "text", "CPU")
    with pytest.raises(RuntimeError, match="Unable to cast the Python kernel's result of type str"):
        torch.ops.pylib.bad(torch.ones(1))
    lib.define("pair(Tensor x) -> (Tensor, Tensor)")
    lib.impl("pair", lambda x: (x, x, x), "CPU")
    with pytest.raises(RuntimeError, match="must return 2 values; it returned 3"):
        torch.ops.pylib.pair(torch.ones(1))


def test_exceptions_of_kernels_keep_their_type(lib):
    class Mine(Exception):
        pass

    def kernel(x):
        raise Mine("inside")

    lib.define("fails(Tensor x) -> Tensor")
    lib.impl("fails", kernel, "CPU")
    with pytest.raises(Mine, match="inside"):
        torch.ops.pylib.fails(torch.ones(1))


def test_mutation(lib):
    lib.define("inc_(Tensor(a!) x) -> Tensor(a!)")
    lib.impl("inc_", lambda x: x.add_(1), "CPU")
    x = torch.zeros(2)
    assert torch.ops.pylib.inc_(x) is x and x.tolist() == [1.0, 1.0]


@pytest.mark.filterwarnings("ignore:Overriding a previously registered kernel")
def test_registered_kernels_of_existing_operators_are_undone():
    x = torch.ones(3)
    override = Library("aten", "IMPL")
    override.impl("sgn", lambda self: self * 42, "CPU")
    assert torch.sgn(x).tolist() == [42.0] * 3
    del override
    gc.collect()
    assert torch.sgn(x).tolist() == [1.0] * 3


def test_removal():
    made = Library("pygone", "DEF")
    made.define("f(Tensor x) -> Tensor")
    made.impl("f", lambda x: x * 2, "CPU")
    overload = torch.ops.pygone.f.default
    made._destroy()
    with pytest.raises(AttributeError, match="has no attribute 'f'"):
        torch.ops.pygone.f
    with pytest.raises(RuntimeError):
        overload(torch.ones(1))
    again = Library("pygone", "DEF")
    again.define("f(Tensor x) -> Tensor")
    again.impl("f", lambda x: x * 3, "CPU")
    assert torch.ops.pygone.f(torch.ones(1)).item() == 3.0
    again._destroy()


def test_kernels_are_released():
    import weakref

    def kernel(x):
        return x

    ref = weakref.ref(kernel)
    made = Library("pyrel", "DEF")
    made.define("f(Tensor x) -> Tensor")
    made.impl("f", kernel, "CPU")
    del kernel
    assert ref() is not None
    made._destroy()
    gc.collect()
    assert ref() is None


@pytest.mark.parametrize(
    "call, error, words",
    [
        (lambda lib: Library("pylib", "DEF"), RuntimeError, "Only a single TORCH_LIBRARY can be used to register the namespace pylib"),
        (lambda lib: Library("pylib", "OTHER"), ValueError, "Unsupported kind: OTHER"),
        (lambda lib: Library("prim", "DEF"), ValueError, "prim is a reserved namespace"),
        (lambda lib: [lib.define("g(Tensor x) -> Tensor"), lib.define("g(Tensor x) -> Tensor")], RuntimeError, "with the same name and overload name multiple times"),
        (lambda lib: lib.define("g(Tensr x) -> Tensor"), RuntimeError, "unknown type specifier"),
        (lambda lib: lib.define("g(Tensor x) -> Tensor", "FOO"), RuntimeError, "Invalid alias_analysis type FOO"),
        (lambda lib: lib.impl("g", 3, "CPU"), TypeError, "Input function is required to be a callable"),
        (lambda lib: lib.impl("g", print, "Foo"), RuntimeError, "could not parse dispatch key: Foo"),
        (lambda lib: Library("pylib", "IMPL").define("g(Tensor x) -> Tensor"), RuntimeError, "inside of a TORCH_LIBRARY_IMPL block"),
        (lambda lib: lib.fallback(print, "CPU"), RuntimeError, "namespace \"_\""),
        (lambda lib: define("noname", "(Tensor x) -> Tensor"), ValueError, "to be of the form"),
        (lambda lib: define("pylib::h", "Tensor x"), ValueError, "expected schema to look like"),
        (lambda lib: impl("pylib::h", "gpu", print), RuntimeError, "Expected one of cpu, cuda, .*gpu"),
    ],
)
def test_registration_errors(lib, call, error, words):
    with pytest.raises(error, match=words):
        call(lib)
    lib.define("fine(Tensor x) -> Tensor")  # nothing is left half done


def test_functions_of_the_module():
    with library._scoped_library("pyfun", "FRAGMENT") as lib:
        define("pyfun::twice", "(Tensor x) -> Tensor", lib=lib, tags=("pt2_compliant_tag",))

        @impl("pyfun::twice", ("cpu", "meta"), lib=lib)
        def twice(x):
            return x * 2

        assert torch.ops.pyfun.twice(torch.ones(1)).item() == 2.0
        assert torch.ops.pyfun.twice(torch.empty(1, device="meta")).is_meta
        assert "pt2_compliant_tag" in torch.ops.pyfun.twice.default.tags
        assert twice(torch.ones(1)).item() == 2.0
    assert not torch._C._dispatch_has_kernel("pyfun::twice")


def test_keyset_and_redispatch(lib):
    lib.define("keys(Tensor x) -> Tensor")
    seen = []

    def autograd(keyset, x):
        seen.append("autograd")
        return torch.ops.pylib.keys.default.redispatch(keyset & torch._C._dispatch_keyset_full_after("AutogradOther"), x)

    lib.impl("keys", autograd, "Autograd", with_keyset=True)
    lib.impl("keys", lambda x: seen.append("cpu") or x * 2, "CPU")
    assert torch.ops.pylib.keys(torch.ones(1)).item() == 2.0 and seen == ["autograd", "cpu"]
    lib.define("through(Tensor x) -> Tensor")
    lib.impl("through", fallthrough_kernel, "Autograd")
    lib.impl("through", lambda x: x + 1, "CPU")
    assert torch.ops.pylib.through(torch.zeros(1)).item() == 1.0


def test_fallbacks_get_numbers_as_numbers():
    """What passes calls on must not make a tensor of the 1 in x + 1: the result's type follows from it."""
    seen, key = [], "TESTING_ONLY_GenericWrapper"
    with library._scoped_library("_", "IMPL") as everything:

        def fallback(op, *args, **kwargs):
            seen.append(args[1])
            torch._C._dispatch_tls_set_dispatch_key_included(key, False)
            try:
                return op(*args, **kwargs)
            finally:
                torch._C._dispatch_tls_set_dispatch_key_included(key, True)

        everything.fallback(fallback, key)
        x = torch.ones(2, dtype=torch.float16)
        torch._C._dispatch_tls_set_dispatch_key_included(key, True)
        try:
            results = x + 1, x * 2.5
        finally:
            torch._C._dispatch_tls_set_dispatch_key_included(key, False)
    assert seen == [1, 2.5] and [type(n) for n in seen] == [int, float]
    assert [r.dtype for r in results] == [torch.float16] * 2


def test_fallback():
    with library._scoped_library("_", "IMPL") as everything:
        seen = []

        def fallback(op, *args, **kwargs):
            seen.append((str(op), len(args), sorted(kwargs)))
            return args[0]

        everything.fallback(fallback, "PrivateUse3")
        with library._scoped_library("pyfall", "DEF") as lib:
            lib.define("f(Tensor x, int n, *, float by=1.5) -> Tensor")
            one = torch.ones(1)
            with torch._C._IncludeDispatchKeyGuard(torch._C.DispatchKeySet("PrivateUse3")):
                x = torch.ops.pyfall.f(one, 3)
            assert x.item() == 1.0 and seen == [("pyfall.f.default", 2, [])]
    with pytest.raises(RuntimeError, match='namespace "_"'):
        Library("pyfall2", "IMPL").fallback(print, "CPU")
    with pytest.raises(RuntimeError, match="dispatch key is required"):
        Library("_", "IMPL").fallback(print)


def test_gradients_flow_through_composites(lib):
    lib.define("sq(Tensor x) -> Tensor")
    lib.impl("sq", lambda x: x * x, "CompositeImplicitAutograd")
    x = torch.tensor([3.0], requires_grad=True)
    torch.ops.pylib.sq(x).backward()
    assert x.grad.item() == 6.0


def test_tables(lib):
    lib.define("t(Tensor x) -> Tensor")
    lib.impl("t", lambda x: x, "CPU")
    lib.impl("t", lambda x: x, "CompositeImplicitAutograd")
    assert "schema: pylib::t(Tensor x) -> Tensor" in torch._C._dispatch_dump("pylib::t")
    table = torch._C._dispatch_dump_table("pylib::t")
    assert "CPU: registered at" in table and "[math kernel]" in table
    assert torch._C._dispatch_has_kernel_for_dispatch_key("pylib::t", "CPU") and not torch._C._dispatch_has_kernel_for_dispatch_key("pylib::t", "Meta")
    assert torch._C._dispatch_has_computed_kernel_for_dispatch_key("pylib::t", "Meta")
    torch._C._dispatch_check_invariants("pylib::t")
    torch._C._dispatch_check_all_invariants()
    assert "CPU" in torch._C._dispatch_explain("aten::add.Tensor", [torch.ones(1), torch.ones(1)])
    with pytest.raises(RuntimeError, match="could not parse dispatch key"):
        torch._C._dispatch_get_registrations_for_dispatch_key("Nonsense")


def test_key_sets_and_guards():
    keys = torch._C._dispatch_keys(torch.ones(1))
    assert keys.has("CPU") and keys.has("AutogradCPU") and not keys.has("Meta")
    assert not keys.remove("AutogradCPU").has("AutogradCPU")
    key = torch._C.DispatchKey.CPU
    assert keys.has(key) and key.name == "CPU" and repr(key) == "DispatchKey.CPU" and torch._C.DispatchKey.__members__["CPU"] is key
    assert torch._C.DispatchKeySet(key) == torch._C.DispatchKeySet("CPU")
    w = torch.ones(1, requires_grad=True)
    with torch._C._ExcludeDispatchKeyGuard(torch._C.DispatchKeySet("AutogradCPU")):
        assert torch._C._dispatch_tls_is_dispatch_key_excluded("AutogradFunctionality")
        assert not (w * 2).requires_grad
    assert (w * 2).requires_grad


@pytest.mark.filterwarnings("ignore:Overriding a previously registered kernel")
def test_registration_while_others_call():
    stop, errors = threading.Event(), []

    def caller():
        x = torch.ones(4)
        try:
            while not stop.is_set():
                assert torch.neg(x)[0].item() == -1.0
        except Exception as error:  # noqa: BLE001
            errors.append(error)

    threads = [threading.Thread(target=caller) for _ in range(2)]
    for t in threads:
        t.start()
    for _ in range(100):
        made = Library("pystress", "DEF")
        made.define("f(Tensor x) -> Tensor")
        made.impl("f", lambda x: x, "CPU")
        override = Library("aten", "IMPL")
        override.impl("sgn", lambda self: self, "CPU")
        override._destroy()
        made._destroy()
    stop.set()
    for t in threads:
        t.join()
    assert not errors


def test_what_overloads_tell(lib):
    aten = torch.ops.aten
    key = torch._C.DispatchKey
    add = aten.add.Tensor
    assert add.has_kernel_for_dispatch_key(key.CPU) and add.has_kernel_for_dispatch_key("CPU") and not add.has_kernel_for_dispatch_key(key.XLA)
    assert add.has_kernel_for_any_dispatch_key(torch._C.DispatchKeySet(key.CPU, key.XLA)) and not add.has_kernel_for_any_dispatch_key(torch._C.DispatchKeySet("XLA"))
    assert aten.view.default.is_view and not add.is_view and not aten.add_.Tensor.is_view and add.op is add and aten.add.op is aten.add
    assert set(aten.add._schemas) == set(aten.add.overloads()) and str(aten.add._schemas["Tensor"]) == str(add._schema)
    assert aten.__file__ == "cresset.ops" and dir(aten.add).count("Tensor") == 1 and "sin" in dir(aten) and "aten" in dir(torch.ops)
    assert torch.Tag.pointwise in add.tags
    alias = aten.add_.Tensor._schema.arguments[0].alias_info
    assert alias.is_write and alias.before_set == {"a"} and add._schema.arguments[0].alias_info is None


def test_py_impl(lib):
    lib.define("pi(Tensor x) -> Tensor")
    op = torch.ops.pylib.pi.default

    @op.py_impl(torch._C.DispatchKey.CPU)
    def kernel(x):
        return x * 9

    assert torch.ops.pylib.pi(torch.ones(1)).item() == 9.0 and op.py_kernels == {torch._C.DispatchKey.CPU: kernel}
    with pytest.raises(RuntimeError, match="Trying to override a python impl for DispatchKey.CPU on operator pylib::pi"):
        op.py_impl("CPU")(kernel)
    op._dispatch_cache.clear()
    del op.py_kernels[torch._C.DispatchKey.CPU]
    with pytest.raises(NotImplementedError, match="pylib::pi"):
        op(torch.ones(1))
    op.py_impl(torch._C.DispatchKey.CPU)(torch.library.fallthrough_kernel)
    assert torch._C.DispatchKey.CPU in op._fallthrough_keys()


def test_packets_follow_definitions():
    def values():
        return [torch.ops.pylive.f(torch.ones(1)).item(), torch.ops.pylive.f.overloads()]

    with library._scoped_library("pylive", "DEF") as lib:
        lib.define("f(Tensor x) -> Tensor")
        lib.impl("f", lambda x: x + 1, "CPU")
        packet = torch.ops.pylive.f
        assert values() == [2.0, ["default"]]
        with library._scoped_library("pylive", "FRAGMENT") as more:
            more.define("f.text(str x) -> int")
            more.impl("f.text", len, "CompositeExplicitAutograd")
            assert packet("abc") == 3 and values()[0] == 2.0 and "text" in packet.overloads()
        with pytest.raises(RuntimeError, match="Expected a value of type 'Tensor' for argument 'x' but instead found type 'str'"):
            packet("abc")
    with pytest.raises(AttributeError, match="operator pylive::f is not defined any more"):
        packet(torch.ones(1))


def test_libraries_of_another_namespace(lib):
    with pytest.raises(RuntimeError, match="The operator belongs to the namespace 'aten', the library to 'pylib'"):
        library.register_fake("aten::sin", lambda x: x, lib=lib)


def test_a_renamed_backend_is_called_by_its_own_name():
    code = "import cresset; cresset.utils.rename_privateuse1_backend('foochip'); cresset.empty(2, device='foochip')"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert "Could not run 'aten::empty.memory_format' with arguments from the 'foochip' backend" in done.stderr
    assert "Register one with CRESSET_LIBRARY_IMPL(aten, PrivateUse1, m)" in done.stderr


def test_guards_and_key_sets_of_pytorchs_tests():
    x = torch.ones(2, requires_grad=True)
    guard = torch._C._AutoDispatchBelowAutograd()
    assert not (x * 2).requires_grad
    del guard
    with torch._C._AutoDispatchBelowAutograd():
        assert not (x * 2).requires_grad
    assert (x * 2).requires_grad
    keys = torch._C._after_autograd_keyset
    assert keys.has("CPU") and keys.has("ADInplaceOrView") and not keys.has("AutogradCPU")
    assert [torch._C._vmapmode_increment_nesting(), torch._C._vmapmode_increment_nesting(), torch._C._vmapmode_decrement_nesting()] == [1, 2, 1]
    with pytest.raises(RuntimeError, match="do not yet support calling random operations inside of vmap"):
        torch.rand(2)
    assert (x + 1).tolist() == [2.0, 2.0] and torch._C._vmapmode_decrement_nesting() == 0 and torch.rand(2).shape == (2,)
    with pytest.raises(RuntimeError, match="no level to leave"):
        torch._C._vmapmode_decrement_nesting()


@pytest.mark.parametrize("order", [(0, 1, 2, 3), (3, 2, 1, 0), (2, 0, 3, 1)])
def test_small_libraries_of_pytorchs_tests(order):
    """`_C._dispatch_library`: the state is the same whichever order the registrations come and go in."""
    registrations = [
        lambda m: m.def_("foo(Tensor x) -> Tensor"), lambda m: m.impl_t_t("foo", debug="fn_math"), lambda m: m.impl_t_t("foo", dispatch="CPU", debug="fn_cpu"),
        lambda m: m.impl_t_t("foo", "Autograd", debug="fn_autograd"),
    ]  # fmt: skip
    libraries = {}
    for i in order:
        libraries[i] = torch._C._dispatch_library("FRAGMENT", "__small__", "")
        registrations[i](libraries[i])
    assert torch._C._dispatch_dump("__small__::foo") == (
        "name: __small__::foo\nschema: __small__::foo(Tensor x) -> Tensor\ndebug: registered at /dev/null:0\nalias analysis kind: FROM_SCHEMA\n"
        "CPU: fn_cpu :: (Tensor _0) -> Tensor _0 [ boxed unboxed ]\nAutograd[alias]: fn_autograd :: (Tensor _0) -> Tensor _0 [ boxed unboxed ]\n"
        "CompositeImplicitAutograd[alias]: fn_math :: (Tensor _0) -> Tensor _0 [ boxed unboxed ]\n"
    )
    table = dict(line.split(": ", 1) for line in torch._C._dispatch_dump_table("__small__::foo").splitlines())
    assert [table[key] for key in ("Undefined", "CPU", "XLA", "AutogradCPU", "AutogradXLA")] == [
        "fn_math [math kernel]", "fn_cpu [kernel]", "fn_math [math kernel]", "fn_autograd [autograd kernel]", "fn_math [math kernel]",
    ]  # fmt: skip
    for i in reversed(order):
        del libraries[i]
        torch._C._dispatch_check_invariants("__small__::foo")
    assert torch._C._dispatch_dump("__small__::foo") == ""


def test_python_dispatcher():
    from cresset._python_dispatcher import PythonDispatcher

    dispatcher = PythonDispatcher()
    dispatcher.register(["CPU", "FPGA", "CompositeImplicitAutograd"])
    assert dispatcher.registrations().endswith(
        "FPGA            fn_FPGA\nCPU             fn_CPU\nCompositeImplicitAutograd[alias] fn_CompositeImplicitAutograd\n"
    )
    table = dispatcher.dispatchTable()
    assert "AutogradOther   ambiguous_autogradother [ambiguous autogradother]\nAutogradCPU     [backend fallback]\n" in table
    with pytest.raises(RuntimeError, match="Overriden is not allowed"):
        PythonDispatcher().register(["CPU", "CPU"])
    with pytest.raises(RuntimeError, match="Registration to both CompositeImplicitAutograd and CompositeExplicitAutograd is not allowed"):
        PythonDispatcher().register(["CompositeExplicitAutograd", "CompositeImplicitAutograd"])
