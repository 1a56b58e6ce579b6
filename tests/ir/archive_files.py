"""Pieces of archives made by hand: zip files entry by entry, pickles instruction by instruction."""

import io
import struct
import zipfile

CODE = """class M(Module):
  __parameters__ = []
  __buffers__ = []
  training : bool
  def forward(self: __torch__.M,
    x: Tensor) -> Tensor:
    return x
"""


def text(s):
    return b"X" + struct.pack("<I", len(s.encode())) + s.encode()


def glob(module, name):
    return f"c{module}\n{name}\n".encode()


def module(state=b"", cls="M"):
    """data.pkl of an object with these attributes (key and value pushed one after the other)."""
    return b"\x80\x02" + glob("__torch__", cls) + b")\x81}(" + state + b"ub."


TRAINING = text("training") + b"\x89"


def tensor(key="0", sizes=(2,), strides=(1,), offset=0, elements=2, kind="FloatStorage", grad=b"\x89", facts=b"", device="cpu"):
    def ints(values):
        return b"(" + b"".join(b"\x8a\x08" + struct.pack("<q", v) for v in values) + b"t"

    storage = b"(" + text("storage") + glob("torch", kind) + text(key) + text(device) + b"\x8a\x08" + struct.pack("<q", elements) + b"tQ"
    return (glob("torch._utils", "_rebuild_tensor_v2") + b"(" + storage + b"\x8a\x08" + struct.pack("<q", offset) + ints(sizes) + ints(strides) + grad
            + glob("collections", "OrderedDict") + b")R" + facts + b"tR")  # fmt: skip


def quantized(facts, kind="QUInt8Storage", sizes=(2, 4)):
    """A quantized tensor over the storage 0 of eight bytes; `facts`: its scheme and what belongs to it."""

    def ints(values):
        return b"(" + b"".join(b"\x8a\x08" + struct.pack("<q", v) for v in values) + b"t"

    storage = b"(" + text("storage") + glob("torch", kind) + text("0") + text("cpu") + b"K\x08tQ"
    return (glob("torch._utils", "_rebuild_qtensor") + b"(" + storage + b"K\x00" + ints(sizes) + ints((4, 1)) + b"(" + facts + b"t\x89"
            + glob("collections", "OrderedDict") + b")RtR")  # fmt: skip


def archive(data=None, code=CODE, files=(), drop=(), top="m", compress=zipfile.ZIP_STORED):
    """The bytes of an archive of one module; `files` replace or add entries, `drop` leaves some out."""
    entries = {
        "data.pkl": module(TRAINING) if data is None else data,
        "code/__torch__.py": code.encode(),
        "constants.pkl": b"\x80\x02).",
        "version": b"10\n",
        "byteorder": b"little",
    } | dict(files)
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", compress) as z:
        for name, content in entries.items():
            if name not in drop:
                z.writestr(f"{top}/{name}", content)
    return out.getvalue()
