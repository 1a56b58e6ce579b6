"""What raises while an archive is loaded says where it comes from in the program."""

import io
from typing import Tuple

import pytest

import cresset


class Refused(cresset.nn.Module):
    def forward(self, x):
        return x

    @cresset.jit.export
    def __getstate__(self):
        return (1, self.training)

    @cresset.jit.export
    def __setstate__(self, state: Tuple[int, bool]) -> None:
        self.training = state[1]
        if state[0] > 0:
            raise Exception("cannot be loaded")  # the line of the program


def test_a_setstate_that_raises():
    buffer = io.BytesIO()
    cresset.jit.save(cresset.jit.script(Refused()), buffer)
    buffer.seek(0)
    with pytest.raises(Exception, match="cannot be loaded") as caught:
        cresset.jit.load(buffer)
    assert 'raise Exception("cannot be loaded")' in str(caught.value) and "test_state_errors.py" in str(caught.value)
