"""How sparse tensors print."""

import cresset

from .. import _C
from .._tensor_str import _tensor_str

_DEFAULTS = (_C.int64, _C.bool)


def _part(name, value):
    """A part's values, without their type."""
    lead = f"{name}=tensor("
    if value.is_meta:
        return f"{lead}..., size={tuple(value.shape)}),"
    size = "" if value.numel() else f", size={tuple(value.shape)}"
    return f"{lead}{_tensor_str(value, len('tensor(') + len(lead))}{size}),"


def text(sparse):
    """`tensor(indices=…, values=…, size=…, nnz=…, layout=…)`"""
    coo = sparse.layout is _C.sparse_coo
    ours = sparse.detach()
    default = ours.dtype in (cresset.get_default_dtype(), *_DEFAULTS) or ours.dtype is _C.complex64
    if coo:
        parts = [("indices", ours._indices()), ("values", ours._values())]
    else:
        from ._tensor import _COMPRESSED

        plain, other = _COMPRESSED[ours.layout][:2]
        parts = [(plain, ours._p), (other, ours._o), ("values", ours._v)]
    lines = [_part(name, value) for name, value in parts]
    suffixes = [f"size={tuple(sparse.shape)}", *([] if sparse.is_meta else [f"nnz={sparse._nnz()}"])]
    if sparse.device.type != "cpu":
        suffixes.insert(0, f"device='{sparse.device}'")
    if not default:
        suffixes.append(f"dtype={sparse.dtype}")
    suffixes.append(f"layout={sparse.layout}")
    if sparse.grad_fn is not None:
        suffixes.append(f"grad_fn=<{sparse.grad_fn.name()}>")
    elif sparse.requires_grad:
        suffixes.append("requires_grad=True")
    body = ("\n" + " " * 7).join(lines) + ("\n" + " " * 7 if coo else " ")
    width = len(body) - body.rfind("\n") + (0 if coo else 1)  # as PyTorch counts, two more than there are
    for i, suffix in enumerate(suffixes):
        if i and width + len(suffix) + 2 > cresset.get_printoptions()["linewidth"]:
            body, width = body.rstrip() + "\n" + " " * 7, 7
        body += suffix + (")" if i == len(suffixes) - 1 else ", ")
        width += len(suffix) + 2
    return ("Parameter containing:\n" if getattr(sparse, "_is_param", False) else "") + "tensor(" + body
