"""Every module of nn as a script, as a trace, and both out of archives: results and state equal those of the Python module."""

import copy
import inspect
import io
import warnings

import cresset
import pytest
from cresset import nn
from script_cases import LAZY_MODULES, MODULES

jit = cresset.jit

# {class of nn: why it has no case}
WITHOUT_CASE = {
    "Module": "has no forward", "ModuleList": "has no forward", "ModuleDict": "has no forward", "ParameterList": "has no forward",
    "ParameterDict": "has no forward", "Container": "has no forward", "RNNBase": "is a base of layers", "RNNCellBase": "is a base of layers",
}  # fmt: skip
# {case: words of the error}
NO_SCRIPT = {
    "DataParallel": "variable number of arguments",
    "TripletMarginWithDistanceLoss": "distance_function",  # a Python function as an argument has no type
}
NO_TRACE = {
    "ConvTranspose2d size": "cannot be traced",  # a list of sizes as an input
}


def flat(value):
    return [x for v in value for x in flat(v)] if isinstance(value, (tuple, list)) else [value]


def run(module, inputs):
    cresset.manual_seed(7)
    return flat(module(*inputs))


def script(module, inputs):
    return jit.script(module)


def trace(module, inputs):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", jit.TracerWarning)
        made = jit.trace(module, inputs, check_trace=False)
    return made


def reloaded(made):
    buffer = io.BytesIO()
    jit.save(made, buffer)
    buffer.seek(0)
    return jit.load(buffer)


def assert_same(actual, expected):
    assert len(actual) == len(expected)
    for a, e in zip(actual, expected):
        assert a is None if e is None else cresset.testing.assert_close(a, e, equal_nan=True) is None


def test_every_class_has_a_case():
    classes = {name for name, c in vars(nn).items() if inspect.isclass(c) and issubclass(c, nn.Module)}
    cases = {type(module).__name__ for module, _ in MODULES.values()} | LAZY_MODULES.keys()
    assert classes - cases == WITHOUT_CASE.keys() and classes - WITHOUT_CASE.keys() <= cases


@pytest.mark.parametrize("name", MODULES)
@pytest.mark.parametrize("compiled, refused", [(script, NO_SCRIPT), (trace, NO_TRACE)], ids=["script", "trace"])
def test_equal_results(name, compiled, refused):
    module, inputs = copy.deepcopy(MODULES[name])
    if name in refused:
        with pytest.raises(RuntimeError, match=refused[name]):
            run(compiled(module, inputs), inputs)
        return
    before = copy.deepcopy(module.state_dict())
    made = compiled(copy.deepcopy(module), inputs)
    made.load_state_dict(before)  # tracing has called it
    again = reloaded(made)
    expected = run(module, inputs)
    for candidate in (made, again):
        assert_same(run(candidate, inputs), expected)
        # What the call changed (running statistics, renormalised rows) is equal too.
        for (e_name, e), (a_name, a) in zip(module.state_dict().items(), candidate.state_dict().items(), strict=True):
            assert e_name == a_name
            cresset.testing.assert_close(a, e)


@pytest.mark.parametrize("name", LAZY_MODULES)
@pytest.mark.filterwarnings("ignore:Initializing zero-element tensors", "ignore:Lazy modules are a new feature")
def test_lazy_modules_from_their_first_call_on(name):
    arguments, inputs = LAZY_MODULES[name]
    module = getattr(nn, name)(*arguments)
    with pytest.raises(RuntimeError, match=f"'{name}' has uninitialized parameters .*Did you forget to run a forward pass"):
        jit.script(module)
    module(*inputs)
    module.eval()
    for compiled in (script, trace):
        assert_same(run(compiled(module, inputs), inputs), run(module, inputs))
