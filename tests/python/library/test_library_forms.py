"""The forms in which libraries are written: decorators, dispatch keys in place of devices, blocks that refuse what is not theirs."""

import pytest

import cresset as torch
from cresset import library
from cresset._library.opcheck import OpCheckError
from cresset.library import Library, define, impl


@pytest.fixture
def lib():
    made = Library("libforms", "FRAGMENT")
    yield made
    made._destroy()


def test_define_as_a_decorator(lib):
    """The decorators of the guide to torch.library."""

    @define(lib, "double(Tensor x) -> Tensor")
    def double(x):
        return x * 2

    assert double(torch.ones(1)).item() == 2.0, "the function itself stays"
    x = torch.ones(2, requires_grad=True)
    torch.ops.libforms.double(x).sum().backward()
    assert x.grad.tolist() == [2.0, 2.0], "differentiable through its parts"
    assert torch.ops.libforms.double(torch.ones(1, device="meta")).is_meta
    assert torch.ops.libforms.double.default.has_kernel_for_dispatch_key("CompositeImplicitAutograd")

    @define(lib, "pure(Tensor x) -> Tensor", "PURE_FUNCTION")
    def pure(x):
        return x + 1

    @impl(lib, "pure", "CPU")
    def pure_cpu(x):
        return x + 2

    assert torch.ops.libforms.pure(torch.zeros(1)).item() == 2.0
    with pytest.raises(TypeError, match="alias_analysis"):
        define("libforms::f", "(Tensor x) -> Tensor", "PURE_FUNCTION", lib=lib)
    with pytest.raises(ValueError, match="expected qualname to be instance of str, got <class 'int'>"):
        define(3, "(Tensor x) -> Tensor")


@pytest.mark.parametrize("key", ["CPU", "Meta", "CompositeExplicitAutograd", "CompositeImplicitAutograd", "AutogradCPU", "Autograd", "PrivateUse1"])
def test_impl_takes_dispatch_keys(lib, key):
    lib.define("f(Tensor x) -> Tensor")
    impl("libforms::f", key, lambda x: x.clone(), lib=lib)
    assert torch.ops.libforms.f.default.has_kernel_for_dispatch_key(key)
    lib.define("g(Tensor x) -> Tensor")
    impl("libforms::g", ("cpu", key), lib=lib)(lambda x: x.clone())
    assert torch.ops.libforms.g.default.has_kernel_for_dispatch_key(key) and torch.ops.libforms.g.default.has_kernel_for_dispatch_key("CPU")


def test_impl_refuses_other_words(lib):
    with pytest.raises(RuntimeError, match="Expected one of cpu, cuda, .*nonsense"):
        impl("libforms::f", "nonsense", lambda x: x, lib=lib)
    with pytest.raises(ValueError, match='of the form "namespace::name", but got f'):
        impl("f", "cpu", lambda x: x, lib=lib)


def test_a_block_of_one_key_refuses_others(lib):
    lib.define("f(Tensor x) -> Tensor")
    with library._scoped_library("libforms", "IMPL", "CPU") as block:
        block.impl("f", lambda x: x + 1, "CPU")
        for key in ("CUDA", "Meta", "CompositeImplicitAutograd"):
            with pytest.raises(RuntimeError, match=rf"Explicitly provided dispatch key \({key}\) is inconsistent with the dispatch key of the enclosing "
                                                   r"TORCH_LIBRARY_IMPL block \(CPU\)"):  # fmt: skip
                block.impl("f", lambda x: x, key)
        assert torch.ops.libforms.f(torch.ones(1)).item() == 2.0
    with library._scoped_library("_", "IMPL", "PrivateUse3") as block, pytest.raises(RuntimeError, match="inconsistent with the dispatch key"):
        block.fallback(lambda op, *args: None, "PrivateUse2")


@pytest.mark.parametrize("namespace", ["aten", "cresset"])
def test_namespaces_of_the_table_are_taken(namespace):
    with pytest.raises(RuntimeError, match=f"Only a single TORCH_LIBRARY can be used to register the namespace {namespace}; .*TORCH_LIBRARY_FRAGMENT"):
        Library(namespace, "DEF")
    Library(namespace, "FRAGMENT")._destroy()


def test_opcheck_of_operators_that_only_write(lib):
    lib.define("inc_(Tensor(a!) x) -> ()")
    lib.impl("inc_", lambda x: x.add_(1) is None or None, "CPU")
    assert set(library.opcheck(torch.ops.libforms.inc_.default, (torch.ones(2),)).values()) == {"SUCCESS"}

    @library.custom_op("libforms::sin_", mutates_args=("x",))
    def sin_(x: torch.Tensor) -> None:
        x.sin_()

    assert set(library.opcheck(sin_, (torch.ones(2),)).values()) == {"SUCCESS"}

    @library.custom_op("libforms::sin", mutates_args=())
    def sin(x: torch.Tensor) -> torch.Tensor:
        return x.sin()

    with pytest.raises(OpCheckError, match="no fake impl registered"):
        library.opcheck(sin, (torch.ones(2),))


def test_kernels_get_numbers_that_were_given_in_the_place_of_tensors():
    """PyTorch's Python kernels get `1`, not a tensor, for x + 1."""
    seen = []
    library = torch.library.Library("aten", "IMPL")
    library.impl("add.Tensor", lambda self, other, *, alpha=1: seen.append(other) or self, "AutogradCPU")
    try:
        x = torch.ones(2)
        x + 1
        torch.ops.aten.add.Tensor(x, 2.5)
        torch.add(x, True)
        torch.add(x, torch.tensor(3))
    finally:
        library._destroy()
    assert [type(s) for s in seen] == [int, float, bool, torch.Tensor] and seen[:3] == [1, 2.5, True]


def test_define_gives_the_name_as_it_was_written(lib):
    """Values of PyTorch 2.13: with the namespace where one was written, without the overload. The decorator knows the overload all the same."""
    assert lib.define("libforms::named(Tensor x) -> Tensor") == "libforms::named"
    assert lib.define("named.over(Tensor x, int y) -> Tensor") == "named"
    assert lib.define("libforms::named.third (Tensor x, float y) -> Tensor") == "libforms::named"
    lib.impl("libforms::named", lambda x: x + 1, "CPU")
    assert torch.ops.libforms.named(torch.ones(1)).item() == 2

    @define(lib, "libforms::named.fourth(Tensor x, str y) -> Tensor")
    def fourth(x, y):
        return x + len(y)

    assert torch.ops.libforms.named(torch.ones(1), "ab").item() == 3
