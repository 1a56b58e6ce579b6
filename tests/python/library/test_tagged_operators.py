"""Custom operators with Tag.inplace and Tag.out: schemas, results, fakes, gradients, refusals. Words and values of PyTorch 2.13."""

import itertools
import warnings

import pytest

import cresset as torch
from cresset import library
from cresset._subclasses.fake_tensor import FakeTensorMode
from cresset.library import custom_op, opcheck

INPLACE, OUT = torch.Tag.inplace, torch.Tag.out
_names = itertools.count()


def made(function, mutates, tags, schema=None):
    return custom_op(f"tagged::f{next(_names)}", function, mutates_args=mutates, tags=tags, schema=schema)


def sin_(x: torch.Tensor) -> torch.Tensor:
    x.numpy()[:] = 2
    return x


def two_(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    return x


def none_(x: torch.Tensor) -> None:
    pass


def list_(x: list[torch.Tensor]) -> torch.Tensor:
    return x[0]


def named_(*, x: torch.Tensor) -> torch.Tensor:
    return x


def fresh(x: torch.Tensor) -> torch.Tensor:
    return x.clone()


def sin_out(x: torch.Tensor, *, out: torch.Tensor) -> torch.Tensor:
    out.numpy()[:] = x.numpy() + 1
    return out


def both_out(x: torch.Tensor, *, a: torch.Tensor, b: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    a.copy_(x), b.copy_(x + 1)
    return a, b


def swapped_out(x: torch.Tensor, *, a: torch.Tensor, b: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    return b, a


def scaled_out(x: torch.Tensor, *, y: torch.Tensor, k: float = 1.5, out: torch.Tensor) -> torch.Tensor:
    return out.copy_(x * y * k)


def positional_out(x: torch.Tensor, out: torch.Tensor) -> torch.Tensor:
    return out


def optional_out(x: torch.Tensor, *, out: torch.Tensor | None) -> torch.Tensor:
    return x


def none_out(x: torch.Tensor, *, out: torch.Tensor) -> None:
    pass


@pytest.mark.parametrize(
    ("function", "mutates", "tag", "schema"),
    [
        (sin_, {"x"}, INPLACE, "(Tensor(a0!) x) -> Tensor(a0!)"),
        (two_, ["x"], [INPLACE, torch.Tag.pt2_compliant_tag], "(Tensor(a0!) x, Tensor y) -> Tensor(a0!)"),
        (sin_out, {"out"}, OUT, "(Tensor x, *, Tensor(a1!) out) -> Tensor(a1!)"),
        (both_out, {"a", "b"}, (OUT,), "(Tensor x, *, Tensor(a1!) a, Tensor(a2!) b) -> (Tensor(a1!), Tensor(a2!))"),
        (scaled_out, {"out"}, OUT, "(Tensor x, *, Tensor y, float k=1.5, Tensor(a3!) out) -> Tensor(a3!)"),
    ],
)
def test_schemas(function, mutates, tag, schema):
    op = made(function, mutates, tag)._opoverload
    assert str(op._schema).endswith(schema) and len(op.tags) == 2


@pytest.mark.parametrize(
    ("function", "mutates", "tag", "words"),
    [
        (sin_, "unknown", INPLACE, "torch.Tag.inplace requires mutates_args to contain exactly the first positional argument, got unknown. Got func"),
        (sin_, (), INPLACE, "torch.Tag.inplace requires mutates_args to contain exactly the first positional argument, got (). Got func"),
        (two_, {"y"}, INPLACE, "torch.Tag.inplace requires mutates_args to contain exactly the first positional argument, got ('y',). Got func"),
        (two_, {"x", "y"}, INPLACE, "torch.Tag.inplace requires mutates_args to contain exactly the first positional argument, got ('x', 'y'). Got func"),
        (none_, {"x"}, INPLACE, "torch.Tag.inplace requires the return annotation to be torch.Tensor. Got func"),
        (list_, {"x"}, INPLACE, "torch.Tag.inplace requires the first positional argument to be a Tensor. Got func"),
        (named_, {"x"}, INPLACE, "torch.Tag.inplace requires a positional Tensor argument. Got func"),
        (sin_out, (), OUT, "torch.Tag.out requires at least one mutable keyword-only Tensor argument. Got func"),
        (sin_out, "unknown", OUT, "torch.Tag.out requires mutable arguments to be keyword-only. Got func"),
        (positional_out, {"out"}, OUT, "torch.Tag.out requires mutable arguments to be keyword-only. Got func"),
        (optional_out, {"out"}, OUT, "torch.Tag.out only supports mutable keyword-only Tensor arguments. Got func"),
        (both_out, {"a"}, OUT, "torch.Tag.out requires the return annotation to match the mutable keyword-only Tensor arguments ('a',). Got func"),
        (none_out, {"out"}, OUT, "torch.Tag.out requires the return annotation to match the mutable keyword-only Tensor arguments ('out',). Got func"),
    ],
)
def test_functions_that_do_not_fit(function, mutates, tag, words):
    with pytest.raises(ValueError) as raised:
        made(function, mutates, tag)
    assert str(raised.value).startswith(f"infer_schema(func): {words} with signature (")


@pytest.mark.parametrize(
    ("tag", "schema", "words"),
    [
        (INPLACE, "(Tensor x) -> Tensor", "Schema tagged with torch.Tag.inplace requires the first positional argument to be mutable (e.g., Tensor(a!))"),
        (INPLACE, "(Tensor(a!) x) -> Tensor", "Schema tagged with torch.Tag.inplace must return the first mutable argument (return must alias the first argument)"),
        (INPLACE, "(Tensor(a!) x) -> ()", "Schema tagged with torch.Tag.inplace must return exactly one value (the first argument). Got 0 returns"),
        (INPLACE, "(Tensor(a!) x, Tensor(b!) y) -> Tensor(a!)", "Schema tagged with torch.Tag.inplace must only mutate the first positional argument. Found additional mutable args: ['y']"),
        (OUT, "(Tensor x, *, Tensor out) -> Tensor", "Schema tagged with torch.Tag.out must have at least one mutable argument"),
        (OUT, "(Tensor x, *, Tensor(a!) out) -> Tensor", "Return 0 of schema tagged with torch.Tag.out must alias mutable arg 'out'"),
        (OUT, "(Tensor x, Tensor(a!) out) -> Tensor(a!)", "Schema tagged with torch.Tag.out requires all mutable arguments to be keyword-only (after the *). Found mutable positional args: ['out']"),
        (OUT, "(Tensor x, *, Tensor(a!)[] out) -> Tensor(a!)[]", "Schema tagged with torch.Tag.out only supports Tensor mutable arguments. Found unsupported mutable args: ['out']"),
        (OUT, "(Tensor x, *, Tensor(a!) out) -> ()", "Schema tagged with torch.Tag.out must return all mutable arguments (got 1 mutable args but 0 returns)"),
    ],
)  # fmt: skip
def test_schemas_that_do_not_fit(tag, schema, words):
    with pytest.raises(ValueError) as raised:
        custom_op("tagged::given", sin_, mutates_args=(), tags=tag, schema=schema)
    assert str(raised.value) == f"{words}. Got: given{schema}"


def test_calls_return_what_they_write():
    x, out = torch.zeros(2), torch.zeros(2)
    op = made(sin_, {"x"}, INPLACE)
    assert op(x) is x and x.tolist() == [2, 2] and x._version == 1
    assert made(sin_, {"x"}, INPLACE, "(Tensor(a!) x) -> Tensor(a!)")(x) is x
    assert made(sin_out, {"out"}, OUT)(x, out=out) is out and out.tolist() == [3, 3] and out._version == 1
    other = torch.zeros(2)
    first, second = made(both_out, {"a", "b"}, OUT)(x, a=out, b=other)
    assert first is out and second is other and other.tolist() == [3, 3]
    assert made(scaled_out, {"out"}, OUT)(x, y=x, out=out).tolist() == [6, 6]
    with pytest.raises(RuntimeError, match="An operator tagged with torch.Tag.inplace must return its first argument"):
        made(fresh, {"x"}, INPLACE)(x)
    with pytest.raises(RuntimeError, match="An operator tagged with torch.Tag.out must return its mutable keyword-only arguments"):
        made(swapped_out, {"a", "b"}, OUT)(x, a=out, b=other)
    op.register_kernel("cpu", lambda x: x + 1)
    with pytest.raises(RuntimeError, match="must return its first argument"):
        op(x)
    with pytest.raises(AssertionError, match="torch.Tag.inplace and torch.Tag.out are mutually exclusive"):
        made(sin_, {"x"}, (INPLACE, OUT))
    with pytest.raises(NotImplementedError, match="custom_op with kwarg-only Tensor args"):
        made(sin_out, {"out"}, None)


def test_fakes_come_with_the_tag():
    inplace, out, both = made(sin_, {"x"}, INPLACE), made(sin_out, {"out"}, OUT), made(both_out, {"a", "b"}, OUT)
    meta = torch.ones(2, device="meta")
    assert inplace(meta) is meta and out(meta, out=meta) is meta
    with FakeTensorMode():
        x, y = torch.ones(2), torch.ones(3)
        assert inplace(x) is x and out(x, out=y) is y
        assert [t.shape[0] for t in both(x, a=x, b=y)] == [2, 3]
    for op, tag in ((inplace, "inplace"), (out, "out")):
        with pytest.warns(UserWarning, match=f"Custom ops tagged with torch.Tag.{tag} already get an autogenerated fake kernel. The provided fake impl will be used instead."):
            op.register_fake(lambda x, out=None: x)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert set(opcheck(made(sin_, {"x"}, INPLACE), (torch.ones(2),)).values()) == {"SUCCESS"}
        assert set(opcheck(made(sin_out, {"out"}, OUT), (torch.ones(2),), {"out": torch.ones(2)}).values()) == {"SUCCESS"}


def test_gradients():
    leaf = torch.ones(2, requires_grad=True)
    inplace, out = made(sin_, {"x"}, INPLACE), made(sin_out, {"out"}, OUT)
    result = inplace(leaf * 1)
    with pytest.raises(RuntimeError, match="no autograd formula was registered"):
        result.sum().backward()
    with torch.no_grad():
        assert inplace(leaf) is leaf
        assert out(leaf, out=torch.empty(2)).tolist() == [3, 3]
    words = r"\(\): functions with out=\.\.\. arguments don't support automatic differentiation, but one of the arguments requires grad\."
    with pytest.raises(RuntimeError, match=words):
        out(leaf, out=torch.empty(2))
    with pytest.raises(RuntimeError, match=words):
        out(torch.ones(2), out=torch.empty(2, requires_grad=True))
    with pytest.raises(RuntimeError, match="Cannot register autograd formula for non-functional operator"):
        inplace.register_autograd(lambda ctx, grad: grad)
    with pytest.raises(RuntimeError, match="Cannot register autograd formula for operator tagged with torch.Tag.out: .* Out variants do not support autograd."):
        out.register_autograd(lambda ctx, grad: grad)


def test_what_registrations_return():
    op = made(fresh, (), None)
    rule = lambda info, in_dims, x: (x, 0)
    assert op.register_vmap(rule) is None and op.register_vmap()(rule) is None
    assert library.register_vmap(op, rule) is None and library.register_vmap(op)(rule) is None
    assert callable(op.register_autocast("cpu", torch.float16)) and callable(library.register_autocast(op, "cpu", torch.float16))
