"""Habits that cost time, found in the events of a profile: `report_all_anti_patterns(prof)` says where."""

import json
import os

from cresset._profiler_c import _EventType, _ExtraFields_PyCall

from ._utils import source_code_location, traverse_bfs, traverse_dfs

__all__ = [
    "Conv2dBiasFollowedByBatchNorm2dPattern", "ForLoopIndexingPattern", "GradNotSetToNonePattern", "NamePattern", "OptimizerSingleTensorPattern",
    "Pattern", "SynchronizedDataLoaderPattern", "report_all_anti_patterns",
]  # fmt: skip

_TUNING = "https://pytorch.org/tutorials/recipes/recipes/tuning_guide.html"


class Pattern:
    """What is looked for in a finished profile. A subclass has `match(event)` and, for reports, `description` and `url`; `skip` is true where
    the profile lacks what it needs."""

    description, url = "", ""
    needs_stack = False

    def __init__(self, prof, should_benchmark=False):
        self.prof, self.should_benchmark = prof, should_benchmark
        self.name = type(self).__name__
        self.event_tree = prof.profiler.kineto_results.experimental_event_tree()
        self._by_thread = {}
        for event in self.event_tree:
            self._by_thread.setdefault(event.start_tid, []).append(event)

    @property
    def skip(self):
        """Does the profile lack what the pattern needs?"""
        return self.needs_stack and not self.prof.with_stack

    def match(self, event):
        """Is it this event?"""
        raise NotImplementedError(f"{self.name}.match")

    def eventTreeTraversal(self):
        """The events in the order in which they are looked at."""
        return traverse_dfs(self.event_tree)

    def matched_events(self):
        """The events that match, none when the pattern is skipped."""
        return [] if self.skip else [event for event in self.eventTreeTraversal() if self.match(event)]

    def report(self, event):
        """A line about a match."""
        return f"{self.description}\n[Source Code Location] {source_code_location(event)}"

    def summary(self, events):
        """A line about all matches."""
        return f"{self.name}: {len(events)} events matched."

    def benchmark_summary(self, events):
        """What mending the matches would save: the time that they took, as nothing less is measured."""
        total = sum(event.duration_time_ns for event in events)
        return f"{self.name}: {len(events)} events matched, which took {total / 1000:.0f} us."

    def root_of(self, event):
        """The outermost event around this one."""
        while event.parent is not None:
            event = event.parent
        return event

    def siblings_of(self, event):
        """(those in front of it, those behind it) with the same parent, or among the roots of its thread."""
        family = event.parent.children if event.parent is not None else self._by_thread[event.start_tid]
        at = next(i for i, e in enumerate(family) if e is event)
        return family[:at], family[at + 1 :]

    def next_of(self, event):
        """The next sibling, or None."""
        behind = self.siblings_of(event)[1]
        return behind[0] if behind else None

    def prev_of(self, event):
        """The sibling in front of it, or None."""
        before = self.siblings_of(event)[0]
        return before[-1] if before else None

    def go_up_until(self, event, predicate):
        """The innermost event, this one or around it, for which predicate is true; None without one."""
        while event is not None and not predicate(event):
            event = event.parent
        return event


class NamePattern(Pattern):
    """Events of a name."""

    def __init__(self, prof, name, should_benchmark=False):
        super().__init__(prof, should_benchmark)
        self.wanted, self.description = name, f"Matched Name Event: {name}"

    def match(self, event):
        return event.name.find(self.wanted) >= 0


class ForLoopIndexingPattern(Pattern):
    """A loop over the places of a tensor, `for i in range(n): x[i] = i`: aten::select and what follows it, again and again."""

    description = "For loop indexing detected. Vectorization recommended."
    url = ""
    repetitions = 10

    def __init__(self, prof, should_benchmark=False):
        super().__init__(prof, should_benchmark)
        self._seen = set()

    def eventTreeTraversal(self):
        return traverse_bfs(self.event_tree)

    def match(self, event):
        if event.name != "aten::select" or id(event) in self._seen:
            return False
        behind = [event, *self.siblings_of(event)[1]]
        names = [e.name for e in behind]
        if "aten::select" not in names[1:]:
            return False
        length = names.index("aten::select", 1)
        rounds = 1
        while names[rounds * length : (rounds + 1) * length] == names[:length]:
            rounds += 1
        if rounds < self.repetitions:
            return False
        self._seen.update(id(e) for e in behind[: (rounds + 1) * length])
        return True


class OptimizerSingleTensorPattern(Pattern):
    """Steps of optimizers that go through the parameters one by one, where operators on lists or one pass would do."""

    description = "Detected optimizer running with single tensor implementation. Please enable multi tensor implementation by passing foreach=True."
    together = ("aten::_foreach", "aten::_fused")

    def match(self, event):
        if not event.name.startswith("Optimizer.step#"):
            return False
        return not any(e.name.startswith(self.together) for e in traverse_dfs(event.children))


class SynchronizedDataLoaderPattern(Pattern):
    """Data loaders without workers: the program waits for each batch."""

    description = "Detected DataLoader running with synchronized implementation. Please enable asynchronous dataloading by setting num_workers > 0."
    url = _TUNING + "#enable-async-data-loading-and-augmentation"
    needs_stack = True

    def match(self, event):
        if not _is_function(event, "_get_iterator", "utils/data/dataloader.py"):
            return False
        return not any(_is_function(e, "check_worker_number_rationality") for e in event.children)


class GradNotSetToNonePattern(Pattern):
    """Gradients that are filled with zeros where they could be dropped: zero_grad(set_to_none=False)."""

    description = "Detected gradient set to zero instead of None. Please add 'set_to_none=True' when calling zero_grad()."
    url = _TUNING + "#disable-gradient-calculation-for-validation-or-inference"
    needs_stack = True

    def match(self, event):
        return _is_function(event, "zero_grad") and any(
            e.name == "aten::zero_" and (e.parent is None or e.parent.name != "aten::zeros") for e in traverse_dfs(event.children)
        )


class Conv2dBiasFollowedByBatchNorm2dPattern(Pattern):
    """A convolution with a bias in front of a batch norm, which takes the mean away again."""

    description = "Detected bias enabled in Conv2d that is followed by BatchNorm2d. Please set 'bias=False' in Conv2d."
    url = _TUNING + "#disable-bias-for-convolutions-directly-followed-by-a-batch-norm"

    @property
    def skip(self):
        """Does the profile lack what the pattern needs?"""
        return not (self.prof.with_stack and self.prof.record_shapes)

    def match(self, event):
        if event.name != "aten::conv2d":
            return False
        inputs = event.extra_fields.inputs
        if len(inputs) < 3 or inputs[2] is None:
            return False
        module = self.go_up_until(event, lambda e: e.name.startswith("nn.Module: Conv2d"))
        if module is None:
            return False
        following = (e for e in self.siblings_of(module)[1] if e.name.startswith("nn.Module:"))
        return next((e.name.startswith("nn.Module: BatchNorm2d") for e in following), False)


def _is_function(event, function, file=""):
    return event.tag is _EventType.PyCall and isinstance(event.extra_fields, _ExtraFields_PyCall) and event.extra_fields.callsite.function_name == function \
        and event.extra_fields.callsite.file_name.endswith(file)  # fmt: skip


_ALL = (
    ForLoopIndexingPattern, OptimizerSingleTensorPattern, SynchronizedDataLoaderPattern, GradNotSetToNonePattern, Conv2dBiasFollowedByBatchNorm2dPattern,
)  # fmt: skip


def report_all_anti_patterns(prof, should_benchmark=False, print_enable=True, json_report_dir=None):
    """Look for all patterns of this module in a profile with stacks and shapes. They are printed, and written to `torchtidy_report.json` in
    json_report_dir: {file: [{line_number, name, url, message}]}, added to what is there."""
    found, lines, summaries = {}, [], []
    for kind in _ALL:
        pattern = kind(prof, should_benchmark)
        events = pattern.matched_events()
        if not events:
            continue
        summaries.append(pattern.benchmark_summary(events) if should_benchmark else pattern.summary(events))
        for event in events:
            lines.append(pattern.report(event))
            file, _, line = source_code_location(event).rpartition(":")
            if file and line.isdigit():
                found.setdefault(file, []).append({"line_number": int(line), "name": pattern.name, "url": pattern.url, "message": pattern.description})
    if json_report_dir is not None:
        path = os.path.join(json_report_dir, "torchtidy_report.json")
        known = {}
        if os.path.exists(path):
            with open(path) as file:
                known = json.load(file)
        with open(path, "w") as file:
            json.dump(known | found, file)
    if print_enable:
        print("\n".join([f"{'-' * 40}TorchTidy Report{'-' * 40}", "Matched Events:", *lines, "Summary:", *summaries]))
