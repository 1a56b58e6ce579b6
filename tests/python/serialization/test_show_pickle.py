"""show_pickle: what a pickle holds, without running it. The texts are those of PyTorch 2.13 for the same values."""

import io
import os
import pickle
import subprocess
import sys

import cresset
import pytest
from cresset.utils import show_pickle


class Command:
    def __init__(self, words):
        self.words = words

    def __reduce__(self):
        return os.system, (self.words,)


class Stateful:
    def __init__(self):
        self.number = 3


def shown(value):
    out = io.StringIO()
    show_pickle.DumpUnpickler.dump(io.BytesIO(pickle.dumps(value)), out)
    return out.getvalue()


def test_checkpoints(tmp_path):
    cresset.save({"a": cresset.ones(2), "b": [None, True, 2.5]}, tmp_path / "s.pt")
    out = io.StringIO()
    show_pickle.main(["", f"{tmp_path}/s.pt@*/data.pkl"], output_stream=out)
    tensor = "torch._utils._rebuild_tensor_v2(pers.obj(('storage', torch.FloatStorage, '0', 'cpu', 2)), 0, (2,), (1,), False, collections.OrderedDict())"
    assert out.getvalue() == f"{{'a': {tensor},\n 'b': [None, True, 2.5]}}\n"


def test_nothing_that_is_named_runs(tmp_path):
    file = tmp_path / "ran"
    assert shown(Command(f"touch {file}")).startswith(f"{os.system.__module__}.system('touch ") and not file.exists()
    assert shown(Stateful()) == f"{__name__}.Stateful()(state={{'number': 3}})\n"


def test_scripts_from_the_command_line(tmp_path):
    cresset.jit.save(cresset.jit.script(cresset.nn.Linear(2, 1)), tmp_path / "m.pt")
    run = [sys.executable, "-m", "cresset.utils.show_pickle", f"{tmp_path}/m.pt@*/data.pkl"]
    text = subprocess.run(run, capture_output=True, text=True, check=True).stdout
    assert text.startswith("__torch__.torch.nn.modules.linear.Linear()(state={'weight': torch._utils._rebuild_tensor_v2(pers.obj(")


@pytest.mark.parametrize(("argument", "error", "words"), [
    ([""], ValueError, "one argument was required"), (["", "{}/s.pt"], ValueError, r"is an archive; name a member as .*/s.pt@\*/data.pkl"),
    (["", "{}/s.pt@*/none.pkl"], FileNotFoundError, "has no member"),
])  # fmt: skip
def test_errors(tmp_path, argument, error, words):
    cresset.save([1], tmp_path / "s.pt")
    with pytest.raises(error, match=words):
        show_pickle.main([a.format(tmp_path) for a in argument])
