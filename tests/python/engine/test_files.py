"""Engine files: bytes of a method, and what readers refuse."""

import struct

import cresset
import pytest
from cresset import nn

X = cresset.randn(2, 3, 8, 8)


class Two(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(3, 4, 3)
        self.register_buffer("scale", cresset.full((), 2.0))
        self.register_buffer("empty", cresset.empty(0, 3, dtype=cresset.int64))
        self.register_buffer("low", cresset.ones(4, 1, 1, dtype=cresset.bfloat16))

    def forward(self, x, y):
        z = self.conv(x).relu() * self.scale * self.low
        return z, z.mean() + y + self.empty.sum()


MODULE = Two().eval()
BYTES = cresset.engine.convert_method_to_engine(MODULE)


def same(a, b):
    return len(a) == len(b) and all(cresset.allclose(x, y, atol=1e-6) for x, y in zip(a, b))


def test_files_hold_the_whole(tmp_path):
    assert BYTES.startswith(b"CRESSET ENGINE\n") and isinstance(BYTES, bytes)
    module = cresset.engine.embed_engine_in_new_module(BYTES, name="Mine")
    module.save(str(tmp_path / "out.cre"))
    for made in (module, cresset.jit.load(str(tmp_path / "out.cre"))):
        for x in (X, X[:1]):
            with cresset.no_grad():
                assert same(made(x, X), MODULE(x, X))
    assert module.original_name == "Mine" and "execute_engine" in str(module.graph)
    again = cresset.engine.convert_method_to_engine(MODULE)
    assert again == BYTES


def sealed(data):
    """The bytes with a checksum that fits."""
    out = 0xCBF29CE484222325
    whole = len(data) // 8 * 8
    for (word,) in struct.iter_unpack("<Q", data[:whole]):
        out = (out ^ word) * 0x100000001B3 % 2**64
        out ^= out >> 29
    for byte in data[whole:]:
        out = (out ^ byte) * 0x100000001B3 % 2**64
    return data + struct.pack("<Q", out)


def fields(data):
    at, out = 23, []
    for _ in range(struct.unpack_from("<Q", data, 15)[0]):
        (size,) = struct.unpack_from("<Q", data, at)
        out.append(data[at + 8 : at + 8 + size])
        at += 8 + size
    return out


def joined(parts):
    return sealed(b"CRESSET ENGINE\n" + struct.pack("<Q", len(parts)) + b"".join(struct.pack("<Q", len(p)) + p for p in parts))


def changed(index, value):
    parts = fields(BYTES)
    parts[index] = value
    return joined(parts)


def test_the_format_is_as_written_down():
    parts = fields(BYTES)
    assert [p.decode() for p in parts[:5]] == ["1", cresset.__version__.partition("+")[0], "cpu", "any", "engine_0"] and len(parts) == 9
    assert joined(parts) == BYTES and b"aten::" in parts[7]


@pytest.mark.parametrize("data, words", [
    (b"PK\x03\x04", "engine file: this is none: it does not begin with 'CRESSET ENGINE'"),
    (b"", "this is none"),
    (b"CRESSET ENGINE\n", "it ends too early"),
    (changed(0, b"2"), "ABI '1' was required; this one is of '2'. Compile the module again with this version"),
    (joined(fields(BYTES)[:-1]), "9 fields were required; this one has 8"),
    (joined([*fields(BYTES), b""]), "9 fields were required; this one has 10"),
    (BYTES[:-20], "the checksum does not fit: bytes of it were lost or changed"),
    (BYTES + b"x", "the checksum does not fit"),
    (changed(2, b"mine"), "no backend 'mine' builds engines; there are: .*cpu"),
    (changed(3, b"avx9"), "engine 'engine_0' is for the target 'avx9' of 'cpu'; here it is 'any'. Compile the module here"),
    (changed(8, struct.pack("<Q", 2**60)), "a length goes beyond the end"),
    (changed(8, fields(BYTES)[8] + b"12345678"), "a field is longer than what is in it"),
    (changed(8, fields(BYTES)[8].replace(b"float32", b"floot32")), "'floot32' is no dtype"),
    (changed(7, b"graph(%x : Tensor):\n  return (%y)"), "y"),
])  # fmt: skip
def test_refusals(data, words):
    with pytest.raises((ValueError, RuntimeError), match=words):
        cresset.engine.embed_engine_in_new_module(data)


def test_flipped_bits_are_seen():
    for at in range(0, len(BYTES), 97):
        broken = bytearray(BYTES)
        broken[at] ^= 1 << at % 8
        with pytest.raises(ValueError, match="engine file: "):
            cresset.engine.embed_engine_in_new_module(bytes(broken))


def test_the_whole_is_required():
    class Sorts(nn.Module):
        def forward(self, x, n: int):
            return [x.relu(), x + n]

    with pytest.raises(ValueError, match="require_full_compilation: the engine 'cpu' cannot have the whole of forward"):
        cresset.engine.convert_method_to_engine(Sorts().eval())


def test_keywords_of_compile(tmp_path, capsys):
    with pytest.raises(ValueError, match="enabled_precisions: engines of 'cpu' compute in .*float32.*; got int4|'int4' is no dtype"):
        cresset.engine.compile(MODULE, enabled_precisions={"int4"})
    with pytest.raises(ValueError, match="require_full_compilation: one backend was required; got 'cpu,cpu'"):
        cresset.engine.compile(MODULE, backend="cpu,cpu", require_full_compilation=True)
    compiled = cresset.engine.compile(MODULE, enabled_precisions={cresset.float32}, truncate_long_and_double=True)
    assert same(compiled(X, X), MODULE(X, X))
    same_module = cresset.engine.compile(MODULE, dryrun=True)
    assert "segment 0: engine" in capsys.readouterr().out and "execute_engine" not in str(same_module.graph)
    cresset.engine.compile(MODULE, dryrun=str(tmp_path / "report.txt"))
    assert "segment 0: engine" in (tmp_path / "report.txt").read_text()
    several = cresset.compile(MODULE, inputs=[cresset.engine.Input((-1, 3, 8, 8)), X], backend="cpu,cpu")
    assert same(several(X, X), MODULE(X, X)) and cresset.compile_report(several).startswith("cpu\nsegment 0: engine")
