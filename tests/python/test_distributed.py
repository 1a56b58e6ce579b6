"""What programs ask before they talk to other processes."""

import pytest

import cresset as torch


def test_there_is_no_communication():
    import cresset.distributed as dist

    assert torch.distributed is dist and not dist.is_available() and not dist.is_initialized()
    with pytest.raises(AttributeError, match=r"^distributed.all_reduce: communication between processes is not part of Cresset. Ask distributed.is_available"):
        dist.all_reduce(torch.ones(1))
