"""Tags of operators against PyTorch's, and against what the operators do."""

import tomllib
from pathlib import Path

import cresset
import op_samples
import pytest
from cresset._subclasses.fake_tensor import DataDependentOutputException, DynamicOutputShapeException, FakeTensorMode
from cresset.utils import _pytree as pytree

RECORDED = tomllib.loads((Path(__file__).parent / "recorded_tags.toml").read_text())
# An out form of its own in PyTorch, which is derived here; core operators are functional.
NOT_CORE = {"atan2.out"}
# Composites that look at values to choose or to check, and whose results do not depend on it.
LOOKS_AT_VALUES = {"cov", "ctc_loss.IntList", "narrow.Tensor"}


@pytest.mark.parametrize("tag", sorted(RECORDED))
def test_operators_have_the_tags_of_pytorch(tag):
    missing = []
    for name in RECORDED[tag]:
        packet, _, overload = name.partition(".")
        if tag not in getattr(getattr(cresset.ops.aten, packet), overload or "default").tags:
            missing.append(name)
    assert set(missing) - (NOT_CORE if tag == "core" else set()) == set()


def test_every_tag_of_pytorch_is_one_here():
    assert set(RECORDED) <= set(cresset.Tag.__members__)
    assert repr(cresset.Tag.core) == "<Tag.core: 0>" and str(cresset.Tag.core) == "Tag.core" and cresset.Tag("pointwise") is cresset.Tag.pointwise


def asks_for_values(row):
    for _, call in row.calls():
        mode = FakeTensorMode()
        args, kwargs = pytree.tree_map_only(cresset.Tensor, lambda t: mode.from_tensor(t.detach()), (list(call.args), dict(call.kwargs)))
        try:
            with mode:
                row.op()(*args, **kwargs)
        except (DataDependentOutputException, DynamicOutputShapeException):
            return True
        except Exception:
            pass  # other tests see what does not run on fake tensors
    return False


@pytest.mark.filterwarnings("ignore")
def test_what_needs_values_says_so():
    silent = {row.id for row in op_samples.rows() if not {"dynamic_output_shape", "data_dependent_output"} & set(row["tags"]) and asks_for_values(row)}
    assert silent == LOOKS_AT_VALUES
