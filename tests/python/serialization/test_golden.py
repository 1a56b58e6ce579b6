"""Files of other writers: PyTorch 2.13's formats (tests/golden/record_checkpoints.py made them), a tar file, older versions of Cresset."""

import collections
import io
import tarfile
import time
import warnings
from pathlib import Path

import cresset
import pytest
from cresset import nn, serialization
from cresset.serialization._safetensors import write_safetensors

FOLDER = Path(__file__).parents[2] / "golden/checkpoints"


@pytest.mark.parametrize("name", ["zip.pt", "legacy.pt"])
@pytest.mark.parametrize("weights_only", [True, False])
def test_files_of_pytorch(name, weights_only):
    state = cresset.load(FOLDER / name, weights_only=weights_only)
    x = state["x"]
    assert x.tolist() == [[0, 1, 2], [3, 4, 5]] and state["t"].stride() == (1, 3) and state["row"].tolist() == [3, 4, 5]
    assert x.untyped_storage() is state["t"].untyped_storage() is state["row"].untyped_storage()
    assert type(state["parameter"]) is nn.Parameter and state["parameter"].tag == "kept" and state["parameter"].requires_grad
    assert state["half"].dtype == cresset.bfloat16 and state["half"].tolist() == [1.5, -2]
    assert state["conjugate"].resolve_conj().tolist() == [1 - 2j] and state["meta"].is_meta and state["od"] == collections.OrderedDict(a=1)
    assert state["facts"] == [cresset.float16, cresset.device("cpu"), cresset.Size([2, 3]), cresset.strided]
    assert state["storage"].tolist() == [1, 2] and state["set"] == {1} and state["bytes"] == b"ab"


def test_a_module_of_pytorch():
    module = cresset.load(FOLDER / "module.pt", weights_only=False)
    assert type(module) is nn.LSTM and module(cresset.ones(3, 1, 2))[0].shape == (3, 1, 1)


def test_a_tar_file():
    with pytest.raises(RuntimeError, match="Cannot use ``weights_only=True`` with files saved in the legacy .tar format"):
        cresset.load(FOLDER / "old.tar")
    state = cresset.load(FOLDER / "old.tar", weights_only=False)
    assert state["x"].tolist() == [[0, 1, 2], [3, 4, 5]] and state["row"].tolist() == [3, 4, 5]
    assert state["x"].untyped_storage() is state["row"].untyped_storage()


def test_damaged_tar_files():
    data = (FOLDER / "old.tar").read_bytes()
    members = {m.name: tarfile.open(FOLDER / "old.tar").extractfile(m).read() for m in tarfile.open(FOLDER / "old.tar")}
    for name, change in (("tensors", lambda d: d[:-8]), ("storages", lambda d: d.replace(b"\6" + bytes(7), b"\6" + bytes(6) + b"\1")), ("pickle", lambda d: d[:-3])):
        out = io.BytesIO()
        with tarfile.open(fileobj=out, mode="w") as tar:
            for other, content in members.items():
                content = change(content) if other == name else content
                info = tarfile.TarInfo(other)
                info.size = len(content)
                tar.addfile(info, io.BytesIO(content))
        with pytest.raises((serialization.FileError, EOFError)):
            cresset.load(io.BytesIO(out.getvalue()), weights_only=False)
    with pytest.raises(serialization.FileError, match="a tar file of tensors was required"):
        cresset.load(io.BytesIO(data[:1024]), weights_only=False)


def test_what_older_versions_wrote_under_any_name(tmp_path):
    path = tmp_path / "model.pt"
    with open(path, "wb") as f:
        write_safetensors({"w": cresset.ones(2), "n": [1, None]}, f.write)
    state = cresset.load(path)
    assert state["w"].tolist() == [1, 1] and state["n"] == [1, None]


@pytest.mark.parametrize("weights_only", [True, False])
def test_values_of_cpp(weights_only):
    # pickle_save of {"epoch": 3} names the types of containers
    f = io.BytesIO()
    data = b"\x80\x02ctorch.jit._pickle\nrestore_type_tag\n}X\x05\0\0\0epochK\x03sX\x0e\0\0\0Dict[str, int]\x86R."
    with serialization._open_zipfile_writer(f) as writer:
        writer.write_record("data.pkl", data, len(data))
    f.seek(0)
    assert cresset.load(f, weights_only=weights_only) == {"epoch": 3}


def test_a_header_like_one_of_safetensors_is_not_read_as_a_pickle():
    with pytest.raises(serialization.FileError, match="a safetensors file was required"):
        cresset.load(io.BytesIO(b"\x10" + bytes(7) + b"{" + b" " * 20))


def test_sources_of_modules_are_compared(tmp_path, monkeypatch):
    source = tmp_path / "changing_net.py"
    text = "from cresset import nn\n\n\nclass Net(nn.Module):\n    def forward(self, x):\n        return x + {}\n"
    source.write_text(text.format(1))
    monkeypatch.syspath_prepend(tmp_path)
    import changing_net

    f = io.BytesIO()
    cresset.save(changing_net.Net(), f, _use_new_zipfile_serialization=False)
    f.seek(0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        cresset.load(f, weights_only=False)
    time.sleep(0.01)
    source.write_text(text.format(22))
    import linecache

    linecache.clearcache()
    f.seek(0)
    with pytest.warns(serialization.SourceChangeWarning, match="source code of class 'changing_net.Net' has changed"):
        cresset.load(f, weights_only=False)
