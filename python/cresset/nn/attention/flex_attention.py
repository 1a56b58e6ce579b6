"""Attention whose scores a function changes: `flex_attention`, computed as the functions say, over all positions at once by vmap.

A BlockMask says which blocks of (query, key) positions are looked at, and a function which positions inside of them. The result has the values that the
definition gives; blocks that are left out save no time here.
"""

import math
from typing import Any, NamedTuple, TypedDict

import cresset

__all__ = [
    "BlockMask", "flex_attention", "AuxOutput", "AuxRequest", "FlexKernelOptions", "create_block_mask", "create_mask", "or_masks", "and_masks", "noop_mask",
]  # fmt: skip

_DEFAULT_SPARSE_BLOCK_SIZE = 128


class FlexKernelOptions(TypedDict, total=False):
    """Options of PyTorch's fused kernels: accepted, and without effect on what is computed."""

    BLOCK_M: int
    BLOCK_N: int
    PRESCALE_QK: bool
    ROWS_GUARANTEED_SAFE: bool
    BLOCKS_ARE_CONTIGUOUS: bool
    WRITE_DQ: bool
    FORCE_USE_FLEX_ATTENTION: bool
    BACKEND: str
    num_warps: int
    num_stages: int


class AuxRequest(NamedTuple):
    """What is asked for besides the attention: the logarithm of the sums of exponentials, the largest scores."""

    lse: bool = False
    max_scores: bool = False


class AuxOutput(NamedTuple):
    """What an AuxRequest asked for, each [B, Hq, L]; None where it did not."""

    lse: Any = None
    max_scores: Any = None


def noop_mask(batch, head, token_q, token_kv):
    """Every position is looked at."""
    return batch.new_ones(size=(), dtype=cresset.bool)


def _combined(name, operation, functions, neutral):
    if not all(callable(f) for f in functions):
        raise RuntimeError(f"All inputs should be callable mask_mods: {functions}")

    def combined(b, h, q_idx, kv_idx):
        result = b.new_full((), neutral, dtype=cresset.bool)
        for function in functions:
            result = operation(result, function(b, h, q_idx, kv_idx))
        return result

    combined.__name__ = name
    return combined


def and_masks(*mask_mods):
    """A mask function that is true where all of these are."""
    return _combined("and_mask", lambda a, b: a & b, mask_mods, True)


def or_masks(*mask_mods):
    """A mask function that is true where any of these is."""
    return _combined("or_mask", lambda a, b: a | b, mask_mods, False)


def _over_positions(function, with_score):
    """`function([score,] b, h, q, kv)` of scalars, as a function of [B, H, L, S] scores and vectors of indices."""
    for place in ((None, None, None, 0), (None, None, 0, None), (None, 0, None, None), (0, None, None, None)):
        function = cresset.vmap(function, in_dims=((0,) if with_score else ()) + place, out_dims=0)
    return function


def _takes_score(function):
    import inspect

    try:
        given = [p for p in inspect.signature(function).parameters.values() if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD) and p.default is p.empty]
    except (TypeError, ValueError):
        return False
    if len(given) == 5:
        return True
    if len(given) == 4:
        return False
    raise AssertionError(f"create_mask: a function of (b, h, q_idx, kv_idx), or of those behind a score, was required; given {len(given)} arguments.")


def create_mask(mod_fn, B, H, Q_LEN, KV_LEN, device=None):
    """The mask [B, H, Q_LEN, KV_LEN] of a mask function: bools. Of a score function: the scores that it makes of zeros."""
    B, H = (1 if n is None else n for n in (B, H))
    indices = [cresset.arange(n, device=device) for n in (B, H, Q_LEN, KV_LEN)]
    if _takes_score(mod_fn):
        changed = _over_positions(mod_fn, True)(cresset.zeros(B, H, Q_LEN, KV_LEN, device=device), *indices)
        return cresset.where(cresset.isneginf(changed), False, True)
    return _over_positions(mod_fn, False)(*indices).expand(B, H, Q_LEN, KV_LEN)


# --- blocks -----------------------------------------------------------------------------------------------------------------------


def _ordered(dense):
    """(how many, which first) of the columns of each row that are one."""
    dense = dense.to(cresset.int32)
    return dense.sum(-1).to(cresset.int32), cresset.argsort(dense, dim=-1, descending=True, stable=True).to(cresset.int32)


def _dense(count, indices, columns):
    """The blocks of (count, indices) as zeros and ones; `columns` of them, and more where indices have more."""
    width = max(columns, indices.shape[-1])
    used = cresset.arange(indices.shape[-1], device=indices.device) < count.unsqueeze(-1)
    made = cresset.zeros(*indices.shape[:-1], width + 1, dtype=cresset.int32, device=indices.device)
    return made.scatter_(-1, cresset.where(used, indices.long(), width), 1)[..., :columns]


class BlockMask:
    """Which blocks of BLOCK_SIZE (queries, keys) are looked at: `kv_indices[b, h, row]` begins with `kv_num_blocks[b, h, row]` columns whose positions
    `mask_mod` chooses; those of `full_kv_indices` are looked at whole. `q_…` say the same by columns.
    """

    _TENSOR_ATTRS = (
        "kv_num_blocks", "kv_indices", "full_kv_num_blocks", "full_kv_indices", "q_num_blocks", "q_indices", "full_q_num_blocks", "full_q_indices",
    )  # fmt: skip

    def __init__(
        self, seq_lengths, kv_num_blocks, kv_indices, full_kv_num_blocks, full_kv_indices, q_num_blocks, q_indices, full_q_num_blocks, full_q_indices,
        BLOCK_SIZE=(_DEFAULT_SPARSE_BLOCK_SIZE, _DEFAULT_SPARSE_BLOCK_SIZE), mask_mod=noop_mask,
    ):  # fmt: skip
        if kv_indices.dim() < 2:
            raise RuntimeError("BlockMask must have at least 2 dimensions")
        for name, first, second in (("full_kv", full_kv_num_blocks, full_kv_indices), ("full_q", full_q_num_blocks, full_q_indices)):
            if (first is None) != (second is None):
                raise AssertionError(f"{name}_num_blocks and {name}_indices must be both provided or omitted")
        self.seq_lengths = seq_lengths
        self.kv_num_blocks, self.kv_indices = kv_num_blocks, kv_indices
        self.full_kv_num_blocks, self.full_kv_indices = full_kv_num_blocks, full_kv_indices
        self.q_num_blocks, self.q_indices = q_num_blocks, q_indices
        self.full_q_num_blocks, self.full_q_indices = full_q_num_blocks, full_q_indices
        self.BLOCK_SIZE, self.mask_mod = BLOCK_SIZE, mask_mod

    @classmethod
    def from_kv_blocks(
        cls, kv_num_blocks, kv_indices, full_kv_num_blocks=None, full_kv_indices=None, BLOCK_SIZE=_DEFAULT_SPARSE_BLOCK_SIZE, mask_mod=None,
        seq_lengths=None, compute_q_blocks=True,
    ):  # fmt: skip
        """A BlockMask of blocks by rows; those by columns follow, unless `compute_q_blocks` is False. `seq_lengths`: by default those of all blocks."""
        if kv_indices.dim() < 2:
            raise RuntimeError("BlockMask must have at least 2 dimensions")
        if (full_kv_num_blocks is None) != (full_kv_indices is None):
            raise AssertionError("full_kv_num_blocks and full_kv_indices must be both provided or omitted")
        size = (BLOCK_SIZE, BLOCK_SIZE) if isinstance(BLOCK_SIZE, int) else tuple(BLOCK_SIZE)
        if seq_lengths is None:
            seq_lengths = (kv_indices.shape[-2] * size[0], kv_indices.shape[-1] * size[1])
        columns = max(kv_indices.shape[-1], -(-seq_lengths[1] // size[1]))
        by_columns = [None] * 4
        if compute_q_blocks:
            by_columns[:2] = _ordered(_dense(kv_num_blocks, kv_indices, columns).mT)
            if full_kv_indices is not None:
                by_columns[2:] = _ordered(_dense(full_kv_num_blocks, full_kv_indices, columns).mT)
        return cls(
            tuple(seq_lengths), kv_num_blocks, kv_indices, full_kv_num_blocks, full_kv_indices, *by_columns, BLOCK_SIZE=size, mask_mod=mask_mod or noop_mask
        )  # fmt: skip

    @property
    def shape(self):
        """(…, queries, keys)."""
        return tuple(self.kv_indices.shape[:-2]) + tuple(self.seq_lengths)

    def as_tuple(self, flatten=True):
        """What the constructor takes, in its order."""
        size = tuple(self.BLOCK_SIZE) if flatten else (self.BLOCK_SIZE,)
        lengths = tuple(self.seq_lengths) if flatten else (self.seq_lengths,)
        return (*lengths, *(getattr(self, name) for name in self._TENSOR_ATTRS), *size, self.mask_mod)

    def numel(self):
        """Number of (query, key) positions."""
        return math.prod(self.shape)

    def to_dense(self):
        """[…, rows, columns] of blocks: 1 where one is looked at, in part or whole."""
        columns = max(self.kv_indices.shape[-1], -(-self.seq_lengths[1] // self.BLOCK_SIZE[1]))
        dense = _dense(self.kv_num_blocks, self.kv_indices, columns)
        if self.full_kv_indices is not None:
            dense = dense | _dense(self.full_kv_num_blocks, self.full_kv_indices, columns)
        return dense

    def sparsity(self):
        """Percentage of positions in blocks that are left out."""
        blocks = self.kv_num_blocks.sum() + (0 if self.full_kv_num_blocks is None else self.full_kv_num_blocks.sum())
        return 100 * (1 - blocks.item() * self.BLOCK_SIZE[0] * self.BLOCK_SIZE[1] / self.numel())

    def to(self, device):
        """The same on another device."""
        moved = {n: None if getattr(self, n) is None else getattr(self, n).to(device) for n in self._TENSOR_ATTRS}
        return BlockMask(self.seq_lengths, **moved, BLOCK_SIZE=self.BLOCK_SIZE, mask_mod=self.mask_mod)

    def __getitem__(self, index):
        """The mask of some batches, heads or rows of blocks. Its `mask_mod` has to be set: the function would see indices of what is left."""
        index = index if isinstance(index, tuple) else (index,)
        index = tuple(slice(i + self.kv_num_blocks.shape[k], i + 1 + self.kv_num_blocks.shape[k]) if isinstance(i, int) and i < 0
                      else slice(i, i + 1) if isinstance(i, int) else i for k, i in enumerate(index))  # fmt: skip
        picked = {n: None if getattr(self, n) is None else getattr(self, n)[index] for n in self._TENSOR_ATTRS[:4]}
        return BlockMask.from_kv_blocks(
            **picked, BLOCK_SIZE=self.BLOCK_SIZE, mask_mod=_sliced_mask_mod_error, compute_q_blocks=self.q_indices is not None,
            seq_lengths=(picked["kv_indices"].shape[-2] * self.BLOCK_SIZE[0] if len(index) > 2 else self.seq_lengths[0], self.seq_lengths[1]),
        )  # fmt: skip

    def _adjust(self, new_q_len, new_kv_len):
        """The same blocks for shorter or equally padded sequences."""
        rows, columns = -(-new_q_len // self.BLOCK_SIZE[0]), -(-new_kv_len // self.BLOCK_SIZE[1])
        parts = {}
        for name in ("", "full_"):
            indices = getattr(self, f"{name}kv_indices")
            if indices is None:
                parts[f"{name}kv_num_blocks"] = parts[f"{name}kv_indices"] = None
                continue
            dense = _dense(getattr(self, f"{name}kv_num_blocks"), indices, max(columns, indices.shape[-1]))
            parts[f"{name}kv_num_blocks"], parts[f"{name}kv_indices"] = _ordered(dense[..., :rows, :columns])
        return BlockMask.from_kv_blocks(**parts, BLOCK_SIZE=self.BLOCK_SIZE, mask_mod=self.mask_mod, seq_lengths=(new_q_len, new_kv_len))

    def to_string(self, grid_size=(20, 20), limit=4):
        """A picture: █ for whole blocks, ░ for blocks in part, blanks for those that are left out; of the first `limit` batches and heads."""
        dense = self.to_dense()
        whole = cresset.zeros_like(dense) if self.full_kv_indices is None else _dense(self.full_kv_num_blocks, self.full_kv_indices, dense.shape[-1])
        *leading, rows, columns = dense.shape
        rows_at, columns_at = rows, columns
        if grid_size != -1:
            rows_at, columns_at = min(rows, grid_size[0]), min(columns, grid_size[1])
        down, right = -(-rows // rows_at), -(-columns // columns_at)

        def picture(picked, full):
            lines = []
            for r in range(0, rows, down):
                cells = []
                for c in range(0, columns, right):
                    part = picked[r : r + down, c : c + right]
                    n = int(part.sum())
                    everything = n == part.numel() and (grid_size != -1 or bool(full[r : r + down, c : c + right].all()))
                    cells.append("██" if everything else "░░" if n else "  ")
                lines.append("".join(cells))
            return "\n".join(lines) + "\n"

        import itertools

        shown = []
        for k, where in enumerate(itertools.product(*(range(n) for n in leading))):
            if k == limit:
                shown.append(
                    "...\nTo print out more, set BlockMask.to_string(limit=N)\n"
                    "You can also index (BlockMask[batch, head]) to choose a specific batch or head\n"
                )
                break
            shown.append(f"{where}\n{picture(dense[where], whole[where])}")
        return "\n".join(shown)

    def __repr__(self):
        names = "kv_num_blocks kv_indices full_kv_num_blocks full_kv_indices q_num_blocks q_indices full_q_num_blocks full_q_indices".split()
        tensors = ((name, getattr(self, name)) for name in names)
        lines = [f"{name}={None if t is None else t.shape}" for name, t in tensors]
        lines += [f"BLOCK_SIZE={self.BLOCK_SIZE}", f"shape={self.shape}", f"sparsity={self.sparsity():.2f}%"]
        lines.append(f"mask_mod={getattr(self.mask_mod, '__name__', self.mask_mod)}")
        return "BlockMask(\n    " + ",\n    ".join(lines) + "\n)"

    def __str__(self):
        return f"BlockMask(shape={self.shape}, sparsity={self.sparsity():.2f}%, \n{self.to_string()})"


def _sliced_mask_mod_error(*indices):
    """The function of a mask that was cut out of another one."""
    raise RuntimeError(
        "Cannot use mask_mod from a sliced BlockMask. When you slice a BlockMask using [], the mask_mod attribute is reset. You must set it "
        "from the original BlockMask's mask_mod: sliced = mask[:, :, row]; sliced.mask_mod = a function of the slice's indices."
    )


def create_block_mask(
    mask_mod, B, H, Q_LEN, KV_LEN, device=None, BLOCK_SIZE=_DEFAULT_SPARSE_BLOCK_SIZE, _compile=False, separate_full_blocks=True
):  # fmt: skip
    """The BlockMask of a mask function `(b, h, q_idx, kv_idx) -> bool`; B or H is None where the function does not look at it.

    BLOCK_SIZE: one number or (queries, keys). Without `separate_full_blocks` whole blocks count as blocks in part.
    """
    if _takes_score(mask_mod):
        raise AssertionError(f"create-block_mask requires a mask_mod function! Got {mask_mod}")
    size = (BLOCK_SIZE, BLOCK_SIZE) if isinstance(BLOCK_SIZE, int) else tuple(BLOCK_SIZE)
    mask = create_mask(mask_mod, B, H, Q_LEN, KV_LEN, device)
    rows, columns = -(-Q_LEN // size[0]), -(-KV_LEN // size[1])
    padded = cresset.nn.functional.pad(mask.to(cresset.int32), (0, columns * size[1] - KV_LEN, 0, rows * size[0] - Q_LEN))
    counts = padded.reshape(*mask.shape[:2], rows, size[0], columns, size[1]).sum((3, 5))
    some = counts > 0
    if separate_full_blocks:
        # A block over the end is never whole: the function decides about its positions.
        whole = counts == size[0] * size[1]
        full = _ordered(whole)
        some = some & ~whole
    else:
        full = (None, None)
    return BlockMask.from_kv_blocks(*_ordered(some), *full, BLOCK_SIZE=size, mask_mod=mask_mod, seq_lengths=(Q_LEN, KV_LEN))


def _allowed(mask, scores):
    """Bools [B or 1, H or 1, L, S]: positions that a BlockMask lets through."""
    B, H, L, S = scores.shape
    size = mask.BLOCK_SIZE

    def spread(count, indices):
        dense = _dense(count, indices, -(-S // size[1])).bool()
        return dense.repeat_interleave(min(size[0], L), -2).repeat_interleave(min(size[1], S), -1)[..., :L, :S]

    partly = spread(mask.kv_num_blocks, mask.kv_indices)
    indices = [cresset.arange(n, device=scores.device) for n in (B, H, L, S)]
    allowed = partly & _over_positions(mask.mask_mod, False)(*indices)
    if mask.full_kv_indices is not None:
        allowed = allowed | spread(mask.full_kv_num_blocks, mask.full_kv_indices)
    return allowed


def _check(query, key, value, enable_gqa, block_mask):
    if any(t.dim() != 4 for t in (query, key, value)):
        raise ValueError("Expected query, key, and value to be 4 dimensional, but got query.dim(): "
                         f"{query.dim()}, key.dim(): {key.dim()} and value.dim(): {value.dim()} instead.")  # fmt: skip
    if query.dtype != key.dtype or query.dtype != value.dtype:
        raise ValueError(
            "Expected query, key, and value to have the same dtype, "
            f"but got query.dtype: {query.dtype}, key.dtype: {key.dtype}, and value.dtype: {value.dtype} instead."
        )
    if query.device != key.device or query.device != value.device:
        raise ValueError(
            "Expected query, key, and value to have the same device type, "
            f"but got query.device: {query.device}, key.device: {key.device}, and value.device: {value.device} instead."
        )
    if not enable_gqa and query.size(-3) != key.size(-3):
        raise ValueError(
            f"Expect query and key/value to have the same number of heads but got Hq={query.size(-3)} and Hkv={key.size(-3)}. Try setting enable_gqa=True for GQA."
        )
    if enable_gqa and query.size(1) % key.size(1) != 0:
        raise ValueError(
            f"Expect number of query heads to be a multiple of kv heads for GQA but got Hq={query.size(1)} and Hkv={key.size(1)}."
        )
    if query.size(0) != key.size(0) and block_mask is not None and block_mask.kv_num_blocks.size(0) != 1:
        raise ValueError("Expect query and key/value to have the same batch size, or a block_mask that is the same for all batches.")
    if block_mask is not None:
        for name, have, want, block in zip(("query", "key"), block_mask.shape[-2:], (query.size(-2), key.size(-2)), block_mask.BLOCK_SIZE):
            if want > have and -(-want // block) > -(-have // block):
                raise ValueError(
                    f"block_mask was created for block_mask.shape={block_mask.shape} but got {'q_len' if name == 'query' else 'kv_len'}={want}. As the block mask "
                    "was created for a smaller length than you're using it for, you likely need to create a new block mask."
                )


def flex_attention(
    query, key, value, score_mod=None, block_mask=None, scale=None, enable_gqa=False, return_lse=False, kernel_options=None, *, return_aux=None
):  # fmt: skip
    """softmax(score_mod(query keyᵀ scale, b, h, q_idx, kv_idx)) value over the positions of `block_mask`.

    query [B, Hq, L, E], key [B, Hkv, S, E], value [B, Hkv, S, Ev]; Hq a multiple of Hkv with `enable_gqa`. `scale` is 1/sqrt(E) by default. A query that
    looks at nothing gives zeros. With `return_aux` (an AuxRequest) a pair with an AuxOutput; with `return_lse` a pair with the logarithm of the sums of
    exponentials. ValueError for shapes, dtypes and devices that do not fit.
    """
    _check(query, key, value, enable_gqa, block_mask)
    if return_lse and return_aux is not None:
        raise ValueError("return_lse and return_aux cannot both be specified. Use return_aux=AuxRequest(lse=True) instead.")
    groups = query.size(1) // key.size(1)
    if enable_gqa and groups > 1:
        key, value = key.repeat_interleave(groups, 1), value.repeat_interleave(groups, 1)
    wide = cresset.float64 if query.dtype == cresset.float64 else cresset.float32
    scores = (query @ key.transpose(-2, -1)).to(wide) * (1.0 / math.sqrt(query.size(-1)) if scale is None else scale)
    if score_mod is not None:
        indices = [cresset.arange(n, device=query.device, dtype=cresset.int32) for n in scores.shape]
        scores = _over_positions(score_mod, True)(scores, *indices).to(wide)
    if block_mask is not None:
        scores = cresset.where(_allowed(block_mask, scores), scores, -math.inf)
    lse = scores.logsumexp(-1)
    nothing = cresset.isneginf(lse)
    weights = (scores - cresset.where(nothing, 0.0, lse).unsqueeze(-1)).exp()
    result = weights.to(query.dtype) @ value
    if return_aux is not None:
        return result, AuxOutput(lse if return_aux.lse else None, scores.amax(-1) if return_aux.max_scores else None)
    return (result, lse) if return_lse else result
