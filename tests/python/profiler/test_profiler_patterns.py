"""Habits that cost time, found in profiles: each with cases that have it and cases that do not."""

import json

import pytest

import cresset
from cresset import nn
from cresset.profiler import _pattern_matcher as patterns
from cresset.profiler import profile


def count(kind, function):
    with profile(with_stack=True, record_shapes=True) as prof:
        function()
    return len(kind(prof).matched_events())


def fill_places(x):
    for i in range(20):
        x[i] = i


def add_places(x):
    total = 0
    for i in range(20):
        total += x[i]


def multiply(x):
    for _ in range(20):
        x = x @ x


def two_places(x):
    x[0] = x[1]


@pytest.mark.parametrize(("function", "expected"), [(fill_places, 1), (add_places, 1), (multiply, 0), (two_places, 0)])
def test_loops_over_places(function, expected):
    assert count(patterns.ForLoopIndexingPattern, lambda: function(cresset.ones(20, 20))) == expected


@pytest.mark.parametrize("kind", [cresset.optim.SGD, cresset.optim.Adam])
@pytest.mark.parametrize("foreach", [None, False, True])
def test_optimizers_that_go_one_by_one(kind, foreach):
    model = nn.Linear(3, 3)
    model(cresset.ones(3)).sum().backward()
    assert count(patterns.OptimizerSingleTensorPattern, kind(model.parameters(), lr=0.1, foreach=foreach).step) == (0 if foreach else 1)


def test_loaders_without_workers():
    data = cresset.rand(10, 3)
    assert count(patterns.SynchronizedDataLoaderPattern, lambda: next(iter(cresset.utils.data.DataLoader(data)))) == 1
    assert count(patterns.SynchronizedDataLoaderPattern, lambda: next(iter(cresset.utils.data.DataLoader(data, num_workers=1)))) == 0


@pytest.mark.parametrize(("to_none", "expected"), [(True, 0), (False, 1)])
def test_gradients_filled_with_zeros(to_none, expected):
    model = nn.Linear(3, 3)
    optimizer = cresset.optim.SGD(model.parameters(), lr=0.1)
    for thing in (model, optimizer):
        model(cresset.ones(3)).sum().backward()
        assert count(patterns.GradNotSetToNonePattern, lambda: thing.zero_grad(set_to_none=to_none)) == expected


@pytest.mark.parametrize(
    ("model", "expected"),
    [
        (nn.Sequential(nn.Conv2d(3, 3, 3), nn.BatchNorm2d(3)), 1),
        (nn.Sequential(nn.Conv2d(3, 3, 3, bias=False), nn.BatchNorm2d(3)), 0),
        (nn.Sequential(nn.Conv2d(3, 3, 3), nn.ReLU(), nn.BatchNorm2d(3)), 0),
        (nn.Conv2d(3, 3, 3), 0),
    ],
)
def test_biases_in_front_of_batch_norms(model, expected):
    assert count(patterns.Conv2dBiasFollowedByBatchNorm2dPattern, lambda: model(cresset.randn(1, 3, 8, 8))) == expected


def test_names_and_neighbours():
    x = cresset.ones(4, 4)
    with profile() as prof:
        for _ in range(3):
            x = x @ x
            x = x + x
    assert [e.name for e in patterns.NamePattern(prof, "aten::mm").matched_events()] == ["aten::mm"] * 3
    roots = prof.profiler.kineto_results.experimental_event_tree()
    pattern = patterns.Pattern(prof)
    assert pattern.siblings_of(roots[0]) == ([], roots[1:]) and pattern.next_of(roots[0]) is roots[1] and pattern.prev_of(roots[1]) is roots[0]
    assert pattern.next_of(roots[-1]) is None and pattern.prev_of(roots[0]) is None
    assert pattern.root_of(roots[0].children[0]) is roots[0]
    assert pattern.go_up_until(roots[0].children[0], lambda e: e.name == "aten::matmul") is roots[0]


def test_report(tmp_path, capsys):
    model = nn.Linear(3, 3)
    optimizer = cresset.optim.SGD(model.parameters(), lr=0.1)
    with profile(with_stack=True, record_shapes=True) as prof:
        model(cresset.ones(3)).sum().backward()
        optimizer.step()
        fill_places(cresset.zeros(20, 2))
    patterns.report_all_anti_patterns(prof, json_report_dir=str(tmp_path))
    said = capsys.readouterr().out
    assert "ForLoopIndexingPattern: 1 events matched." in said and "OptimizerSingleTensorPattern: 1 events matched." in said
    report = json.loads((tmp_path / "torchtidy_report.json").read_text())
    (entries,) = [v for k, v in report.items() if k.endswith("test_profiler_patterns.py")]
    assert {e["name"] for e in entries} == {"ForLoopIndexingPattern", "OptimizerSingleTensorPattern"}
    assert all(sorted(e) == ["line_number", "message", "name", "url"] for e in entries)


def test_patterns_that_need_stacks_are_skipped_without():
    with profile() as prof:
        cresset.ones(1)
    assert patterns.GradNotSetToNonePattern(prof).skip and patterns.GradNotSetToNonePattern(prof).matched_events() == []
    with pytest.raises(NotImplementedError):
        patterns.Pattern(prof).matched_events()
