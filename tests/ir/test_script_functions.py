"""Python functions as scripts: names from Python, operators, functions of the package; expected is what Python gives."""

import io
import math
import types
import warnings
from typing import Any, Dict, Final, List, Optional, Tuple, Union

import cresset
import cresset as torch
import cresset.nn.functional as F
import pytest
from cresset import Tensor
from cresset.nn import functional

jit = cresset.jit


def loosely_equal(actual, expected):
    """Equal up to what scripts do not have: sizes are lists, dtypes are ints, tuples of operators' lists are lists."""
    if isinstance(expected, Tensor):
        return actual.dtype == expected.dtype and torch.allclose(actual, expected, equal_nan=True)
    if isinstance(expected, (tuple, list)):
        return len(actual) == len(expected) and all(map(loosely_equal, actual, expected))
    if isinstance(expected, dict):
        return actual.keys() == expected.keys() and all(loosely_equal(actual[k], expected[k]) for k in expected)
    if isinstance(expected, torch.dtype):
        return isinstance(actual, int)
    return actual == expected


def activations(x):
    return [
        F.relu(x), F.relu6(x), F.elu(x, alpha=0.5), F.gelu(x), F.leaky_relu(x, 0.2), F.hardtanh(x, -1, 1), F.glu(x), F.softplus(x),
        F.silu(x), F.mish(x), F.tanhshrink(x), F.softsign(x), F.hardswish(x), F.selu(x), F.celu(x), F.threshold(x, 0.1, 2.0),
        F.softmin(x, 1), F.logsigmoid(x), F.tanh(x), F.sigmoid(x), F.hardsigmoid(x), F.rrelu(x), F.softmax(x, dim=0), F.log_softmax(x, 1),
    ]  # fmt: skip


def images(x):
    y = x[None, None]
    return [
        F.conv2d(y, torch.ones(1, 1, 2, 2), padding=1), F.conv_transpose2d(y, torch.ones(1, 1, 2, 2)), F.max_pool2d(y, 2),
        F.max_pool2d(y, (2, 1), stride=1), F.avg_pool2d(y, 2), F.adaptive_avg_pool2d(y, 1), F.adaptive_max_pool2d(y, (1, 2)),
        F.interpolate(y, scale_factor=2.0), F.interpolate(y, size=[3, 3], mode="bilinear"), F.interpolate(y, size=3), F.pad(y, [1, 1]),
        F.pixel_unshuffle(y, 2), F.unfold(y, 2), F.lp_pool2d(y, 2.0, 2), functional.normalize(x), F.local_response_norm(y, 2),
        F.grid_sample(y, torch.zeros(1, 2, 2, 2), align_corners=False), F.affine_grid(torch.ones(1, 2, 3), [1, 1, 2, 2], align_corners=False),
    ]  # fmt: skip


def losses(x):
    target = torch.tensor([0, 1])
    return [
        F.cross_entropy(x, target), F.nll_loss(x, target), F.mse_loss(x, x + 1), F.l1_loss(x, x + 2, reduction="sum"), F.huber_loss(x, x + 3),
        F.smooth_l1_loss(x, x + 3), F.kl_div(x, x.exp(), reduction="batchmean"), F.binary_cross_entropy(x.sigmoid(), x.sigmoid()),
        F.binary_cross_entropy_with_logits(x, x.sigmoid()), F.cosine_similarity(x, x), F.multi_margin_loss(x, target),
        F.triplet_margin_loss(x, x + 1, x + 2), F.poisson_nll_loss(x, x + 5), F.cross_entropy(x, target, label_smoothing=0.1),
    ]  # fmt: skip


def layers(x):
    return [
        F.linear(x, x), F.bilinear(x, x, torch.ones(1, 2, 2)), F.layer_norm(x, [2]), F.group_norm(x, 1), F.batch_norm(x, None, None, training=True),
        F.embedding(torch.tensor([0, 1]), x), F.one_hot(torch.tensor([0, 1])), F.dropout(x, 0.5, False), F.scaled_dot_product_attention(x, x, x),
        F.rms_norm(x, [2]),
    ]  # fmt: skip


def namespaces(x):
    return (
        math.pi * x + math.sqrt(2.0) + math.floor(2.5), torch.linalg.norm(x), torch.fft.fft(x).real, torch.special.expit(x),
        torch.ops.aten.relu(x), torch.ops.aten.add.Tensor(x, x), torch.nn.functional.relu(x), torch.inf, torch.float32,
    )  # fmt: skip


def creation(x):
    return (
        torch.zeros(2, 3, dtype=torch.int64), torch.ones([2], device=torch.device("cpu")), torch.tensor([1, 2, 3]), torch.tensor(2.5),
        torch.arange(5), torch.full((2, 2), 3.0), torch.eye(2), torch.zeros_like(x), x.new_ones([2]), torch.linspace(0, 1, 3),
    )  # fmt: skip


def rearranging(x):
    return (
        torch.cat([x, x], dim=1), torch.stack((x, x)), torch.split(x, 1), torch.chunk(x, 2), x.unbind(0), torch.einsum("ij,jk->ik", x, x),
        torch.tensordot(x, x, 1), torch.tensordot(x, x, [[0], [1]]),
        torch.functional.tensordot(x, x, 1, out=None), torch.tensordot(x, x, 2, out=torch.zeros(())),
        torch.meshgrid(x[0], x[1], indexing="ij"), torch.unique(x),
        torch.broadcast_tensors(x, x[0]), torch.norm(x), torch.max(x, dim=0), torch.where(x > 0, x, torch.zeros_like(x)), x.masked_fill(x > 0, 5.0),
    )  # fmt: skip


def properties(x):
    return x.shape, x.size(0), x.dim(), x.dtype, x.device, x.is_cuda, x.requires_grad, torch.is_tensor(x), torch.numel(x), x.T, x.is_floating_point()


def language(x):
    y = torch.jit.annotate(List[float], [])
    for i in range(x.size(0)):
        y.append(float(x[i, 0]))
    return y, f"{x.size(0)}-{1.5}", "{} {}".format(1, 2), [i * 2 for i in range(3) if i > 0], int(2.5), bool(0), torch.jit.isinstance(x, Tensor)


def optional(x: Optional[Tensor] = None, y: "Optional[Tensor]" = None) -> Tensor:
    if x is None:
        return torch.zeros(1) if y is None else y
    return x


def union(x: Union[int, str]) -> int:
    if isinstance(x, int):
        return x + 1
    return len(x)


def containers(x: Dict[str, Tensor], n: List[int], t: Tuple[int, str], a: Any):
    return x["k"] + x.get("z", torch.ones(1)), sum(n), max(n), sorted(n), t[1] * t[0], list(x.keys()), isinstance(a, str)


def helper(x: Tensor, times: int = 2) -> Tensor:
    return x * times


def calls(x):
    future = torch.jit.fork(helper, x, 3)
    return helper(x) + helper(x, times=5) + torch.jit.wait(future)


def gradients_off(x):
    with torch.no_grad():
        y = x * 2
    return y


X = torch.tensor([[1.0, -2.0], [0.5, 4.0]])
PROGRAMS = [
    *((f, (X,)) for f in (activations, images, losses, layers, namespaces, creation, rearranging, properties, language, calls, gradients_off)),
    (optional, ()), (optional, (X,)), (optional, (None, X)), (union, (3,)), (union, ("abc",)),
    (containers, ({"k": X}, [3, 1, 2], (2, "ab"), "x")),
]  # fmt: skip


@pytest.mark.parametrize("function, args", PROGRAMS, ids=[f"{f.__name__}{i}" for i, (f, _) in enumerate(PROGRAMS)])
def test_programs(function, args):
    script = jit.script(function)
    assert loosely_equal(script(*args), function(*args))
    assert jit.script(function) is script


def two_rows(x: Tensor, size: jit.annotations.BroadcastingList2[int]) -> int:
    torch._assert(x.size(0) == 2, "two rows, please")
    return 10 * size[0] + size[1]


def test_one_number_for_a_list_of_two():
    @jit.script
    def calls(x: Tensor) -> Tuple[int, int]:
        return two_rows(x, 3), two_rows(x, [1, 2])

    x = torch.ones(2)
    assert calls(x) == (33, 12)
    assert jit.script(two_rows)(x, 4) == 44
    assert "int[2] size" in str(jit.script(two_rows).schema)
    with pytest.raises(jit.Error, match="AssertionError: two rows, please"):
        calls(torch.ones(3))


def test_larger_of_two_tensors():
    """Not max(a, out=b), whose node has the same inputs."""

    @jit.script
    def extremes(a: Tensor, b: Tensor) -> Tuple[Tensor, Tensor, Tensor]:
        return torch.max(a[:, :2], b[:, 1:]), a.min(b), torch.max(a)

    a, b = torch.tensor([[1.0, 5, 3]]), torch.tensor([[4.0, 2, 6]])
    for _ in range(3):
        assert [t.tolist() for t in extremes(a, b)] == [[[2, 6]], [[1, 2, 3]], 5]
    assert (a.tolist(), b.tolist()) == ([[1, 5, 3]], [[4, 2, 6]])


def test_largest_into_out_is_refused():
    def into(a: Tensor, b: Tensor) -> Tensor:
        return torch.max(a, out=b)

    with pytest.raises(RuntimeError, match=r"max\.unary_out.* cannot be called in a script: a graph does not tell it from aten::max\.other"):
        jit.script(into)


def test_numbers_repeated():
    from cresset.nn.modules.utils import _pair, _quadruple, _single, _triple

    @jit.script
    def lists(a: int, b: List[int], c: float) -> Tuple[List[int], List[int], List[int], List[float], List[int]]:
        return _single(a), _pair(a), _pair(b), _triple(c), _quadruple(a)

    assert lists(3, [1, 2], 2.5) == ([3], [3, 3], [1, 2], [2.5] * 3, [3] * 4)
    assert (_pair(3), _pair([1, 2])) == ((3, 3), (1, 2))


def test_gradients():
    x = X.clone().requires_grad_()
    jit.script(lambda_free)(x).sum().backward()
    expected = X.clone().requires_grad_()
    lambda_free(expected).sum().backward()
    cresset.testing.assert_close(x.grad, expected.grad)


def lambda_free(x):
    y = F.gelu(x) * x
    if bool(y.sum() > 0):
        y = y * 2
    return y


def test_function_objects():
    script = jit.script(helper)
    assert script.name == script.__name__ == "helper" and script.qualified_name.endswith(".helper")
    assert str(script.schema) == "helper(Tensor x, int times=2) -> Tensor" and "aten::mul" in str(script.graph) and "torch.mul" in script.code
    assert script(X, times=3).tolist() == (X * 3).tolist() and script(x=X).tolist() == (X * 2).tolist()
    buffer = io.BytesIO()
    script.save(buffer)
    buffer.seek(0)
    assert jit.load(buffer)(X, 4).tolist() == (X * 4).tolist()


def test_custom_operators():
    @cresset.library.custom_op("script_functions::twice", mutates_args=())
    def twice(x: Tensor) -> Tensor:
        return x * 2

    def uses(x):
        return twice(x) + torch.ops.script_functions.twice(x)

    assert jit.script(uses)(X).tolist() == (X * 4).tolist()


def test_python_functions_stay_in_python():
    seen = []

    @jit.ignore
    def remember(x: Tensor, n: int = 1) -> int:
        seen.append(n)
        return n + 1

    def uses(x):
        return remember(x) + remember(x, n=5)

    assert jit.script(uses)(X) == 8 and seen == [1, 5]

    @jit.ignore
    def raises(x: Tensor) -> Tensor:
        raise KeyError("from Python")

    def uses_raises(x):
        return raises(x)

    # PyTorch raises a RuntimeError, whatever the function raised; here it is of that kind, too, and has it as its cause.
    with pytest.raises(RuntimeError, match="KeyError: 'from Python'\nThe following operation failed in the TorchScript interpreter.") as failure:
        jit.script(uses_raises)(X)
    assert isinstance(failure.value, KeyError) and type(failure.value.__cause__) is KeyError

    class Own(Exception):
        pass

    @jit.ignore
    def raises_other(x: Tensor, interrupt: bool) -> Tensor:
        raise KeyboardInterrupt if interrupt else Own("of a class of its own")

    def uses_raises_other(x, interrupt: bool):
        return raises_other(x, interrupt)

    with pytest.raises(RuntimeError, match="Own: of a class of its own") as failure:
        jit.script(uses_raises_other)(X, False)
    assert type(failure.value) is RuntimeError and type(failure.value.__cause__) is Own
    with pytest.raises(KeyboardInterrupt):
        jit.script(uses_raises_other)(X, True)

    @jit.ignore
    def lies(x: Tensor) -> int:
        return "text"

    def uses_lies(x):
        return lies(x)

    with pytest.raises(TypeError, match="lies\\(\\) expected value of type int for return value but instead got value of type str"):
        jit.script(uses_lies)(X)


def raises_value_error(x):
    if x.dim() == 2:
        raise ValueError("two dimensions")
    return x


def asserts(x):
    assert x.dim() == 1, "one dimension"
    return x


def test_exceptions():
    with pytest.raises(jit.Error, match="two dimensions") as info:
        jit.script(raises_value_error)(X)
    assert 'raise ValueError("two dimensions")' in str(info.value)
    with pytest.raises(jit.Error, match="AssertionError: one dimension"):
        jit.script(asserts)(X)


def test_compilation_units_and_small_words():
    unit = jit.CompilationUnit("def f(x):\n    return x + 1\n\ndef g(x):\n    return f(x) * 2\n")
    assert unit.g(X).tolist() == ((X + 1) * 2).tolist()
    with pytest.raises(AttributeError, match="'CompilationUnit' has no attribute 'h'"):
        unit.h
    assert not jit.is_scripting() and not jit.is_tracing() and jit.annotate(int, 3) == 3
    assert jit.isinstance([1, 2], List[int]) and not jit.isinstance(["a"], List[int]) and jit.isinstance({"a": 1}, (Dict[str, int], str))
    assert jit.wait(jit.fork(helper, X, 2)).tolist() == (X * 2).tolist()
    assert jit.set_fusion_strategy(jit.set_fusion_strategy([])) == [] and jit.script(jit.script(helper)) is jit.script(helper)
    with jit.optimized_execution(True):
        pass

    @jit.script_if_tracing
    def plain(x):
        return x + 1

    assert plain(1) == 2


NUMBER = 3
FINAL: Final[int] = 3


def uses_global(x):
    return x + NUMBER


def uses_final(x):
    return x + FINAL


def uses_unknown(x):
    return nowhere(x)  # noqa: F821


def uses_missing_attribute(x):
    return torch.nowhere(x)


def recursive(n: int) -> int:
    return recursive(n - 1) if n > 0 else 0


def wrong_default(x, y=1):
    return x


def unknown_type(x, y: "Nowhere"):  # noqa: F821
    return x


def no_contents(x: list):
    return x


def variable(x, *rest):
    return x


def calls_wrongly(x):
    return helper(x, "two")


ERRORS = [
    (uses_global, "python value of type 'int' cannot be used as a value. Perhaps it is a closed over global variable"),
    (uses_final, "python value of type 'int' cannot be used as a value"),
    (uses_unknown, "undefined value nowhere"),
    (uses_missing_attribute, "object has no attribute nowhere"),
    (recursive, "function 'recursive' is called recursively. Recursive calls are not supported"),
    (wrong_default, "it is assumed to be type 'Tensor'"),
    (unknown_type, "Unknown type name 'Nowhere'"),
    (no_contents, "Attempted to use list without a contained type"),
    (variable, "Compiled functions can't take variable number of arguments"),
    (calls_wrongly, "Expected a value of type 'int' for argument 'times' but instead found type 'str'"),
    (lambda x: x, "Expected a single top-level function"),
    (3, "<class 'int'> is a built-in class"),
    (len, "is currently not supported in Torchscript"),
]  # fmt: skip


@pytest.mark.parametrize("function, message", ERRORS, ids=range(len(ERRORS)))
def test_errors(function, message):
    with pytest.raises((RuntimeError, TypeError), match=message):
        jit.script(function)


# {function of nn.functional: words of the error}
NOT_COMPILED = {
    "triplet_margin_with_distance_loss": "distance_function",  # a Python function as an argument has no type
    "grouped_mm": "Set aren't supported",  # Python code that asks offsets for their values
}


@pytest.mark.parametrize("name", [n for n in F.__all__ if isinstance(getattr(F, n), torch._C.overridable)])
def test_every_function_of_nn_functional_compiles(name):
    function = getattr(F, name)
    variants = getattr(function, "_script_choice", (name, function))[1:]
    if name in NOT_COMPILED:
        with pytest.raises(RuntimeError, match=NOT_COMPILED[name]):
            jit.script(function)
        return
    for variant in variants:
        assert jit.script(variant).graph is not None


def with_indices(x: Tensor):
    values, indices = F.max_pool2d(x, 2, return_indices=True)
    return values, indices, F.max_pool2d(x, 2), F.adaptive_max_pool2d(x, 1, True)


def undecided(x: Tensor, both: bool):
    return F.max_pool2d(x, 2, return_indices=both)


def test_an_argument_decides_the_type_of_the_result():
    assert loosely_equal(jit.script(with_indices)(X[None]), with_indices(X[None]))
    with pytest.raises(RuntimeError, match="'return_indices' decides the type of the result: it must be known while the script is compiled"):
        jit.script(undecided)


def warns(x: Tensor):
    warnings.warn(f"{x.dim()} dimensions", stacklevel=2)
    return F.softmax(x)


def test_warnings():
    with pytest.warns(UserWarning) as caught:
        jit.script(warns)(X)
    assert [str(w.message)[:30] for w in caught] == ["2 dimensions", "Implicit dimension choice for "]


settings = types.ModuleType("settings")
settings.HAS_PACKAGE = False  # what a module has is known while compiling
package = object  # stands in for a module that is not installed


def behind_a_known_return(x):
    if not settings.HAS_PACKAGE:
        return x + 1
    return package.ops.add(x)


def behind_a_decided_condition(x):
    if x.dim() > 1 and settings.HAS_PACKAGE:
        return package.ops.add(x)
    if x.dim() > 1 or not settings.HAS_PACKAGE:
        return x + 1
    return package.ops.add(x)


def behind_both_arms(x):
    if x.dim() > 1:
        return x
    else:
        return x * 2
    return package.ops.add(x)


def behind_a_raise(x):
    if x.dim() > 3:
        raise ValueError("too many dimensions")
        x = package.ops.add(x)
    return x * 3


def behind_with(x):
    with torch.no_grad():
        return x * 4
    return package.ops.add(x)


@pytest.mark.parametrize("function", [behind_a_known_return, behind_a_decided_condition, behind_both_arms, behind_a_raise, behind_with])
def test_what_is_never_reached_is_not_compiled(function):
    x = torch.arange(3.0)
    assert torch.equal(jit.script(function)(x), function(x))


def test_what_may_be_reached_is_compiled():
    def sometimes(x):
        if x.dim() > 1:
            return x
        return package.ops.add(x)

    with pytest.raises(RuntimeError, match="attribute lookup is not defined on Python builtin object"):
        jit.script(sometimes)


def test_a_condition_that_changes_nothing_keeps_what_is_known():
    """Arms that know a variable more exactly leave what was known in front of them."""
    def which(x: Tensor, p: Optional[Union[Tensor, List[int]]]) -> Tensor:
        if p is not None:
            if isinstance(p, list) and x.dim() > 5:
                return x
            if isinstance(p, list):
                return x + len(p)
            else:
                return x + p
        return x

    script, x = jit.script(which), torch.arange(3.0)
    for p in (None, [1, 2], torch.ones(3)):
        assert torch.equal(script(x, p), which(x, p))


def test_functions_of_tensors_that_do_not_exist_here():
    """Compiled, and refused when it runs."""
    def maybe_packed(x: Tensor, packed: bool) -> Tensor:
        if packed:
            return torch.fbgemm_pack_gemm_matrix_fp16(x)
        return x

    script = jit.script(maybe_packed)
    assert script(torch.ones(2), False).tolist() == [1.0, 1.0]
    with pytest.raises(jit.Error, match="NotImplementedError: fbgemm_pack_gemm_matrix_fp16: .* are not part of Cresset."):
        script(torch.ones(2), True)


def test_pinned_memory():
    def pinned(x: Tensor, pin: bool) -> bool:
        return (x.pin_memory() if pin else x).is_pinned()

    script = jit.script(pinned)
    assert not script(torch.ones(2), False)
    with pytest.raises(RuntimeError) as scripted:
        script(torch.ones(2), True)
    with pytest.raises(RuntimeError) as eager:
        torch.ones(2).pin_memory()
    assert str(eager.value).splitlines()[0] in str(scripted.value)


@jit.script
class Amount:
    def __init__(self, value: int):
        self.value = value

    def like(self, other: "Amount") -> bool:
        return isinstance(other, self.__class__) and other.value == self.value

    def __eq__(self, other) -> bool:  # without an annotation a tensor
        return isinstance(other, self.__class__)


def test_the_class_of_an_object():
    def likes(a: int, b: int):
        x = Amount(a)
        return x.like(Amount(b)), x == torch.ones(1)

    assert jit.script(likes)(1, 1) == (True, False) and jit.script(likes)(1, 2) == (False, False)
