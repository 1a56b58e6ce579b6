"""A call with tensors on the CPU and on meta has no numbers to give: it raises, or its results are on meta."""

import cresset
import pytest
from cresset.testing.samples import flat
from op_samples import Failure, check_samples, rows

# Results that depend on one tensor each, on no more than the sizes of the others, or not on all of them.
APART = {"broadcast_tensors", "expand_as", "reshape_as", "view_as", "_pack_padded_sequence", "_pad_packed_sequence",
         "_embedding_bag_dense_backward", "_embedding_bag_per_sample_weights_backward", "cummaxmin_backward", "gather_backward",
         "glu_backward_jvp", "unflatten_dense_tensors"}  # fmt: skip
ROWS = [row for row in rows() if row.id not in APART and not row.id.startswith("_foreach_")]


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.id)
def test_no_numbers_from_nowhere(row):
    def check(call):
        tensors = call.tensors()
        if len(tensors) < 2 or any(t.dim() == 0 for t in tensors):
            return False
        for place in range(len(tensors)):
            for one in ("meta", "cpu"):
                seen = iter(range(len(tensors)))

                def moved(t):
                    on_meta = (next(seen) == place) == (one == "meta")
                    return cresset.empty_strided(t.shape, t.stride(), dtype=t.dtype, device="meta") if on_meta else t.detach()

                mixed = call.map(moved)
                try:
                    results = flat(row.op()(*mixed.args, **mixed.kwargs))
                except (RuntimeError, NotImplementedError, TypeError, ValueError, IndexError):
                    continue
                if any(t.device.type == "cpu" and t.numel() for t in results):
                    raise Failure(f"tensor {place} on {one}, the others not: results on {[t.device.type for t in results]}")
        return True

    check_samples("mixed devices", row, check)
