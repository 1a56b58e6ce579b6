"""FlopCounterMode: how many floating-point operations (a multiplication and an addition are two) matrix products, convolutions and attention take."""

import functools
import math
from collections import defaultdict

import cresset
from cresset.utils._python_dispatch import TorchDispatchMode
from cresset.utils._pytree import tree_map
from cresset.utils.module_tracker import ModuleTracker

__all__ = ["FlopCounterMode", "register_flop_formula"]

aten = cresset.ops.aten
flop_registry = {}


def _shape(value):
    return value.shape if isinstance(value, cresset.Tensor) else value


def register_flop_formula(targets, get_raw=False):
    """A decorator: the function counts the operators (overload packets) `targets`.

    It is called with the call's arguments and `out_val=result`; unless `get_raw` with shapes in place of tensors, and `out_shape=`.
    """

    def register(formula):
        if get_raw:
            counted = formula
        else:

            @functools.wraps(formula)
            def counted(*args, out_val=None, **kwargs):
                args, kwargs, out_shape = tree_map(_shape, (args, kwargs, out_val))
                return formula(*args, out_shape=out_shape, **kwargs)

        for target in targets if isinstance(targets, (list, tuple)) else [targets]:
            if not isinstance(target, cresset._ops.OpOverloadPacket):
                raise ValueError(
                    "register_flop_formula(targets): expected each target to be OpOverloadPacket (i.e. torch.ops.mylib.foo), got "
                    f"{target} which is of type {type(target)}"
                )
            if target in flop_registry:
                raise RuntimeError(f"duplicate registrations for {target}")
            flop_registry[target] = counted
        return formula

    return register


# --- formulas -------------------------------------------------------------------------------------------------------------------


@register_flop_formula(aten.mm)
def mm_flop(a_shape, b_shape, *args, out_shape=None, **kwargs):
    """[m, k] times [k, n]: 2 m n k."""
    m, k = a_shape
    k2, n = b_shape
    assert k == k2, f"mm: inner dimensions must match; got {k} and {k2}"
    return m * n * 2 * k


@register_flop_formula(aten.addmm)
def addmm_flop(self_shape, a_shape, b_shape, out_shape=None, **kwargs):
    """As mm."""
    return mm_flop(a_shape, b_shape)


@register_flop_formula(aten.bmm)
def bmm_flop(a_shape, b_shape, out_shape=None, **kwargs):
    """[b, m, k] times [b, k, n]: 2 b m n k."""
    b, m, k = a_shape
    b2, k2, n = b_shape
    assert b == b2 and k == k2, f"bmm: batches and inner dimensions must match; got {tuple(a_shape)} and {tuple(b_shape)}"
    return b * m * n * 2 * k


@register_flop_formula(aten.baddbmm)
def baddbmm_flop(self_shape, a_shape, b_shape, out_shape=None, **kwargs):
    """As bmm."""
    return bmm_flop(a_shape, b_shape)


def conv_flop_count(x_shape, w_shape, out_shape, transposed=False):
    """2 for each weight and each position: of the output, or of the input where it is transposed."""
    positions = (x_shape if transposed else out_shape)[2:]
    c_out, c_in, *kernel = w_shape
    return math.prod(positions) * math.prod(kernel) * x_shape[0] * c_out * c_in * 2


@register_flop_formula([aten.convolution, aten._convolution, aten.convolution_overrideable])
def conv_flop(x_shape, w_shape, _bias, _stride, _padding, _dilation, transposed, *args, out_shape=None, **kwargs):
    """See conv_flop_count."""
    return conv_flop_count(x_shape, w_shape, out_shape, transposed=transposed)


@register_flop_formula(aten.convolution_backward)
def conv_backward_flop(
    grad_out_shape, x_shape, w_shape, _bias, _stride, _padding, _dilation, transposed, _output_padding, _groups, output_mask, out_shape=None, **kwargs
):  # fmt: skip
    """What the gradients that are asked for take: each is a convolution."""
    swap = lambda shape: [shape[1], shape[0], *shape[2:]]  # noqa: E731
    count = 0
    if output_mask[0]:
        count += conv_flop_count(grad_out_shape, w_shape, x_shape, not transposed)
    if output_mask[1]:
        if transposed:
            count += conv_flop_count(swap(grad_out_shape), swap(x_shape), swap(w_shape), False)
        else:
            count += conv_flop_count(swap(x_shape), swap(grad_out_shape), swap(w_shape), False)
    return count


def sdpa_flop_count(query_shape, key_shape, value_shape):
    """Both products of an attention; heads of key and value may be shared."""
    b, h, s_q, d_q = query_shape
    s_k, d_v = key_shape[2], value_shape[3]
    return bmm_flop((b * h, s_q, d_q), (b * h, d_q, s_k)) + bmm_flop((b * h, s_q, s_k), (b * h, s_k, d_v))


def sdpa_backward_flop_count(grad_out_shape, query_shape, key_shape, value_shape):
    """The scores once more, and four products for the gradients."""
    b, h, s_q, d_q = query_shape
    s_k, d_v = key_shape[2], value_shape[3]
    n = b * h
    return (
        bmm_flop((n, s_q, d_q), (n, d_q, s_k)) + bmm_flop((n, s_q, d_v), (n, d_v, s_k)) + bmm_flop((n, s_k, s_q), (n, s_q, d_v))
        + bmm_flop((n, s_q, s_k), (n, s_k, d_q)) + bmm_flop((n, d_q, s_q), (n, s_q, s_k))
    )  # fmt: skip


def _attentions(names):
    return [getattr(aten, name) for name in names if hasattr(aten, name)]


_FORWARD = (
    "_scaled_dot_product_efficient_attention", "_scaled_dot_product_flash_attention", "_scaled_dot_product_cudnn_attention",
    "_scaled_dot_product_flash_attention_for_cpu", "_scaled_dot_product_fused_attention_overrideable",
)  # fmt: skip
for _target in _attentions(_FORWARD):

    @register_flop_formula(_target)
    def sdpa_flop(query_shape, key_shape, value_shape, *args, out_shape=None, **kwargs):
        """See sdpa_flop_count."""
        return sdpa_flop_count(query_shape, key_shape, value_shape)


for _target in _attentions([f"{name}_backward" for name in _FORWARD]):

    @register_flop_formula(_target)
    def sdpa_backward_flop(grad_out_shape, query_shape, key_shape, value_shape, *args, out_shape=None, **kwargs):
        """See sdpa_backward_flop_count."""
        return sdpa_backward_flop_count(grad_out_shape, query_shape, key_shape, value_shape)


# --- the mode ---------------------------------------------------------------------------------------------------------------------

_SUFFIXES = ("", "K", "M", "B", "T")


def get_suffix_str(number):
    """K, M, B or T, so that a number has up to three digits in front of the point."""
    return _SUFFIXES[max(0, min(len(_SUFFIXES) - 1, (len(str(number)) - 2) // 3))]


def convert_num_with_suffix(number, suffix):
    """The number in units of the suffix, three digits behind the point."""
    return f"{number / 1000 ** _SUFFIXES.index(suffix):.3f}{suffix}"


def convert_to_percent_str(num, denom):
    """num / denom in percent."""
    return "0%" if denom == 0 else f"{num / denom:.2%}"


def _table(rows, header):
    """Text as the package tabulate writes it, numbers at the right."""
    widths = [max(len(header[i]) + (2 if i == 0 else 2), *(len(row[i]) for row in rows)) for i in range(len(header))]
    lines = ["  ".join(h.ljust(w) if i == 0 else h.rjust(w) for i, (h, w) in enumerate(zip(header, widths))), "  ".join("-" * w for w in widths)]
    lines += ["  ".join(c.ljust(w) if i == 0 else c.rjust(w) for i, (c, w) in enumerate(zip(row, widths))) for row in rows]
    return "\n".join(line.rstrip() for line in lines)


class FlopCounterMode:
    """A context that counts: `get_total_flops()`, `get_flop_counts()` by module and operator, `get_table()`.

    Modules that are called are found by themselves. `depth` of the table, which is printed at the end unless `display` is False; `custom_mapping` gives or
    replaces formulas by operator: `f(*args, out_shape=…)` with shapes, or with tensors where `f._get_raw` is true.
    """

    def __init__(self, mods=None, depth=2, display=True, custom_mapping=None):
        self.flop_counts = defaultdict(lambda: defaultdict(int))
        self.depth, self.display = depth, display
        if mods is not None:
            import warnings

            warnings.warn("mods argument is not needed anymore, you can stop passing it", stacklevel=2)
        self.mod_tracker = ModuleTracker()
        self._custom = dict(custom_mapping or {})
        self.flop_registry = {**flop_registry, **{op: f if getattr(f, "_get_raw", False) else _by_shapes(f) for op, f in self._custom.items()}}
        self._mode = None

    def get_total_flops(self):
        """All operations."""
        return sum(self.flop_counts["Global"].values())

    def get_flop_counts(self):
        """{module: {operator: operations}}; "Global" is everything."""
        return {module: dict(counts) for module, counts in self.flop_counts.items()}

    def get_table(self, depth=None):
        """A text: operations and percentage of modules up to `depth`, and of their operators."""
        depth = self.depth if depth is None else depth
        total = self.get_total_flops()
        unit, shares_all = get_suffix_str(total), False

        def rows_of(name, level):
            nonlocal shares_all
            count = sum(self.flop_counts[name].values())
            shares_all |= count >= total
            pad = " " * level
            rows = [[pad + name, convert_num_with_suffix(count, unit), convert_to_percent_str(count, total)]]
            return rows + [[f"{pad} - {op}", convert_num_with_suffix(n, unit), convert_to_percent_str(n, total)] for op, n in self.flop_counts[name].items()]

        rows = []
        for name in sorted(self.flop_counts):
            level = name.count(".") + 1
            if name != "Global" and level <= depth:
                rows += rows_of(name, level - 1)
        # What is not in a module is shown; a module that did everything stands for the whole.
        if "Global" in self.flop_counts and not shares_all:
            rows = rows_of("Global", 0) + [[" " + r[0], *r[1:]] for r in rows]
        return _table(rows or [["Global", "0", "0%"]], ["Module", "FLOP", "% Total"])

    def __enter__(self):
        self.flop_counts.clear()
        self.mod_tracker.__enter__()
        self._mode = _FlopCounterMode(self)
        self._mode.__enter__()
        return self

    def __exit__(self, *error):
        self._mode.__exit__(*error)
        self._mode = None
        self.mod_tracker.__exit__()
        if self.display:
            print(self.get_table(self.depth))

    def _count(self, packet, out, args, kwargs):
        formula = self.flop_registry.get(packet)
        if formula is not None:
            flops = formula(*args, **kwargs, out_val=out)
            for module in set(self.mod_tracker.parents):
                self.flop_counts[module][packet] += flops
        return out


def _by_shapes(formula):
    def counted(*args, out_val=None, **kwargs):
        args, kwargs, out_shape = tree_map(_shape, (args, kwargs, out_val))
        return formula(*args, out_shape=out_shape, **kwargs)

    return counted


class _FlopCounterMode(TorchDispatchMode):
    def __init__(self, counter):
        super().__init__()
        self.counter = counter

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        packet = func._overloadpacket
        if packet not in self.counter.flop_registry:
            with self:
                made_of = func.decompose(*args, **kwargs)
            if made_of is not NotImplemented:
                return made_of
        return self.counter._count(packet, func(*args, **kwargs), args, kwargs)
