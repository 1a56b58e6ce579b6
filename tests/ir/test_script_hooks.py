"""Forward hooks of scripted modules: around calls, in archives, through copies, and what does not fit."""

import io

import pytest

import cresset
from cresset import jit, nn


class Inner(nn.Module):
    def forward(self, text: str):
        return text + "_inner"

    def other(self, text: str):
        return text


class Outer(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = Inner()

    def forward(self, text: str):
        return self.inner(text) + "_outer"


def before(self, input: tuple[str]) -> tuple[str]:
    return (input[0] + "_before",)


def before_bare(self, input: tuple[str]) -> str:
    return input[0] + "_bare"


def before_nothing(self, input: tuple[str]) -> None:
    print(input[0])


def behind(self, input: tuple[str], output: str):
    return output + "_behind(" + input[0] + ")"


def behind_nothing(self, input: tuple[str], output: str):
    print(output)


HOOKS = {
    "none": ((), (), (), ()),
    "outer before": ((before,), (), (), ()),
    "outer behind": ((), (behind,), (), ()),
    "inner before": ((), (), (before,), ()),
    "inner behind": ((), (), (), (behind,)),
    "all": ((before,), (behind,), (before,), (behind,)),
    "twice": ((before, before), (behind, behind), (before, before), (behind, behind)),
    "several": ((before_nothing, before, before_bare), (behind_nothing, behind), (before_bare, before), (behind, behind_nothing)),
}


def hooked(case):
    outer_before, outer_behind, inner_before, inner_behind = HOOKS[case]
    module = Outer()
    for owner, register, hooks in (
        (module, "register_forward_pre_hook", outer_before), (module, "register_forward_hook", outer_behind),
        (module.inner, "register_forward_pre_hook", inner_before), (module.inner, "register_forward_hook", inner_behind),
    ):  # fmt: skip
        for hook in hooks:
            getattr(owner, register)(hook)
    return module


def saved_and_loaded(module):
    buffer = io.BytesIO()
    jit.save(module, buffer)
    return jit.load(io.BytesIO(buffer.getvalue()))


class Around(nn.Module):
    def __init__(self, module):
        super().__init__()
        self.module = module

    def forward(self, text: str):
        return self.module(text)


def embedded(module):
    return jit.script(Around(module))


@pytest.mark.parametrize("way", [lambda m: m, saved_and_loaded, lambda m: saved_and_loaded(saved_and_loaded(m)), embedded,
                                 lambda m: embedded(saved_and_loaded(m)), lambda m: saved_and_loaded(embedded(m))],
                         ids=["script", "loaded", "loaded twice", "embedded", "loaded, then embedded", "embedded, then loaded"])  # fmt: skip
@pytest.mark.parametrize("case", HOOKS)
def test_hooks_run_around_calls(case, way, capfd):
    expected = hooked(case)("x")
    printed = capfd.readouterr().out
    scripted = way(jit.script(hooked(case)))
    assert scripted("x") == expected
    assert capfd.readouterr().out == printed


def test_forward_alone_runs_no_hooks_of_its_own():
    scripted = jit.script(hooked("outer before"))
    assert scripted.forward("x") == Outer()("x") != scripted("x")
    assert scripted.get_methods() == ["forward"]


def test_a_clone_keeps_hooks():
    scripted = jit.script(hooked("all"))
    clone = jit._recursive.wrap_module(scripted._c.clone())
    assert clone("x") == scripted("x")


def other(self, input: tuple[str]) -> tuple[str]:
    return input


def no_tuple(self, input: int) -> tuple[str]:
    return ("x",)


def two_parts(self, input: tuple[str, str]) -> tuple[str]:
    return ("x",)


def other_part(self, input: tuple[int]) -> tuple[str]:
    return ("x",)


def three(self, input: tuple[str], more: str) -> tuple[str]:
    return ("x",)


def number(self, input: tuple[str]) -> int:
    return 1


def numbers(self, input: tuple[str]) -> tuple[int]:
    return (1,)


def unannotated(self, input: tuple[str]):
    return ("x",)


def behind_two(self, input: tuple[str]):
    return "x"


def behind_number(self, input: tuple[str], output: int):
    return output


REFUSED = [
    (True, no_tuple, "Pre-hook 'no_tuple' on module 'Inner' expected the input argument to be typed as a Tuple but found type: 'int' instead."),
    (True, two_parts, "has the wrong number of contained types for the input argument's Tuple. Received type: 'Tuple[str, str]'."),
    (True, other_part, "has the wrong inner types for the input tuple argument. Received type: 'Tuple[int]'."),
    (True, three, "was expected to only have exactly 2 inputs but it had 3 inputs."),
    (True, number, "returned the wrong type of: 'int'."),
    (True, numbers, "The returned tuple contains the wrong inner types."),
    (True, unannotated, "is missing a return annotation. Return annotations are required, please add one."),
    (False, behind_two, "Hook 'behind_two' on module 'Inner' was expected to only have exactly 3 inputs but it had 2 inputs."),
    (False, behind_number, "has the wrong type for the output argument. Received type: 'int'. Expected type: 'str'."),
    (True, other, "Can't define hook: other on class: __torch__."),
]


@pytest.mark.parametrize(("pre", "hook", "words"), REFUSED, ids=[hook.__name__ for _, hook, _ in REFUSED])
def test_hooks_that_do_not_fit(pre, hook, words):
    module = Inner()
    (module.register_forward_pre_hook if pre else module.register_forward_hook)(hook)
    with pytest.raises(RuntimeError) as error:
        jit.script(module)
    assert words in str(error.value)


def test_two_hooks_of_one_name():
    module = Inner()
    module.register_forward_pre_hook(before)

    def another():
        def before(self, input: tuple[str]) -> tuple[str]:
            return ("other",)

        return before

    module.register_forward_pre_hook(another())
    with pytest.raises(RuntimeError, match="Pre-hook 'before' on Inner has at least two different python definitions."):
        jit.script(module)


def test_hooks_see_tensors_and_attributes():
    class Scaled(nn.Module):
        def __init__(self):
            super().__init__()
            self.factor = 3.0

        def forward(self, x):
            return x + 1

    def scale(self, input: tuple[cresset.Tensor]) -> tuple[cresset.Tensor]:
        return (input[0] * self.factor,)

    module = Scaled()
    module.register_forward_pre_hook(scale)
    loaded = saved_and_loaded(jit.script(module))
    assert cresset.equal(loaded(cresset.ones(2)), cresset.full((2,), 4.0))
