"""Run passes in an order that constraints allow."""

import inspect
from functools import wraps
from queue import Queue

from cresset._logging import logger_of

from ....nn import Module
from ...graph_module import GraphModule
from .pass_base import PassResult

__all__ = ["pass_result_wrapper", "this_before_that_pass_constraint", "PassManager"]
logger = logger_of(__name__)


def pass_result_wrapper(fn):
    """fn(module) that gives None, or nothing of note, as a pass that gives a PassResult."""
    if fn is None:
        return None

    @wraps(fn)
    def wrapped(gm):
        result = fn(gm)
        if result is None:
            return PassResult(gm, True)
        if isinstance(result, PassResult):
            return result
        if isinstance(result, Module):
            return PassResult(result, True)
        return None

    if not inspect.isfunction(fn):
        wrapped.__name__ = type(fn).__name__
    return wrapped


def _validate_pass_schedule_constraint(constraint, passes):
    for at, first in enumerate(passes):
        for later in passes[at + 1 :]:
            if not constraint(first, later):
                raise RuntimeError(
                    f"pass schedule constraint violated. Expected {first} before {later} but found {first} at index {at} and {later} at index "
                    f"{passes.index(later)} in pass list."
                )


def _topological_sort_passes(passes, constraints):
    """The passes in an order that the constraints allow; RuntimeError when there is none."""
    if not constraints:
        return passes
    after = {p: [] for p in passes}
    waiting = dict.fromkeys(passes, 0)
    ready, done = Queue(), {}
    for first in passes:
        for later in passes:
            if first is not later and any(not c(first, later) for c in constraints):
                after[later].append(first)
                waiting[first] += 1
    for p in passes:
        if not waiting[p]:
            ready.put(p)
    ordered = []
    while not ready.empty():
        p = ready.get()
        done[p] = True
        ordered.append(p)
        for later in after[p]:
            waiting[later] -= 1
            if not waiting[later] and later not in done:
                ready.put(later)
    cycle = [p for p in passes if waiting[p]]
    if cycle:
        raise RuntimeError(f"Circular dependency detected within the following passes: {cycle}")
    return ordered


def this_before_that_pass_constraint(this, that):
    """The constraint that `this` runs before `that`."""

    def holds(a, b):
        return not (a == that and b == this)

    return holds


class PassManager:
    """Runs passes `steps` times, or until nothing changes; checks run after each pass (run_checks_after_each_pass) or at the end."""

    passes: list = []
    constraints: list = []
    _validated = False
    steps = 1

    def __init__(self, passes=None, constraints=None, steps=None, run_checks_after_each_pass=False, suppress_check_failures=False):
        self.passes, self.constraints = passes or [], constraints or []
        if steps:
            self.steps = steps
        self.run_checks_after_each_pass, self.suppress_check_failures = run_checks_after_each_pass, suppress_check_failures

    def add_pass(self, _pass):
        """Append a pass."""
        self.passes.append(_pass)
        self._validated = False

    def add_constraint(self, constraint):
        """constraint(a, b): may a run before b?"""
        self.constraints.append(constraint)
        self._validated = False

    def validate_constraints(self):
        """RuntimeError unless the order of the passes obeys the constraints."""
        if not self._validated:
            for constraint in self.constraints:
                _validate_pass_schedule_constraint(constraint, self.passes)
            self._validated = True

    def solve_constraints(self):
        """Put the passes into an order that obeys the constraints."""
        self.passes = _topological_sort_passes(self.passes, self.constraints)
        self._validated = True

    def add_checks(self, check):
        """check(module) is called after passes; TypeError unless it takes one argument, ValueError for another signature."""
        parameters = list(inspect.signature(check).parameters)
        if len(parameters) != 1:
            raise TypeError("PassManager check function should only take in one variable, a module")
        self.check = check

    def check(self, module):
        """What add_checks replaces."""

    def __call__(self, module):
        if not self._validated:
            self.solve_constraints()
        self.check(module)
        overall = False
        for _ in range(self.steps):
            modified = False
            for at, fn in enumerate(self.passes):
                name = fn.__name__ if inspect.isfunction(fn) else type(fn).__name__
                logger.debug("Running pass '%s'", name)
                try:
                    result = fn(module)
                    if not isinstance(result, PassResult) and not hasattr(result, "graph_module"):
                        raise TypeError(f"The result of the pass {name} should be type PassResult." + "Please wrap it with pass_result_wrapper()")
                    module, modified = result.graph_module, modified or result.modified
                    if isinstance(module, GraphModule):
                        module.recompile()
                    if self.run_checks_after_each_pass:
                        self.check(module)
                except Exception as error:
                    before = [p.__name__ if inspect.isfunction(p) else type(p).__name__ for p in self.passes[:at]]
                    raise Exception(f"An error occurred when running the '{name}' pass after the following passes: {before}") from error  # noqa: TRY002
            overall = overall or modified
            if not modified:
                break
        return PassResult(module, overall)
