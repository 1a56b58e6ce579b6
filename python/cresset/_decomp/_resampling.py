"""Images of another size, and windows of images as columns."""

import cresset

from ._rules import _LOW, aten, rule


def _nearest(self, output_size, scales, exact):
    """The element that is nearest, by the places where output elements fall; `exact` takes their middles."""
    offset, count = 0.5 if exact else 0.0, len(output_size)
    index = [None, None]
    for at, length in enumerate(output_size):
        source = self.shape[2 + at]
        step = source / (source * scales[at]) if scales[at] is not None else source / length
        places = cresset.arange(length, dtype=cresset.float32, device=self.device)
        places = ((places + offset) * step).to(cresset.int64)
        if exact:
            places = cresset.clamp(places, max=source - 1)
        index.append(places.view([-1] + [1] * (count - 1 - at)))
    return aten.index.Tensor(self, index)


def _nearest_rules(rank):
    def plain(self, output_size, *scales):
        return _nearest(self, output_size, [*scales, *[None] * (rank - len(scales))], False)

    def exact(self, output_size, *scales):
        return _nearest(self, output_size, [*scales, *[None] * (rank - len(scales))], True)

    names = {1: ("scales",), 2: ("scales_h", "scales_w"), 3: ("scales_d", "scales_h", "scales_w")}[rank]

    def named(function):
        return lambda self, output_size, *scales, **given: function(self, output_size, *(scales or [given.get(n) for n in names]))

    rule(f"upsample_nearest{rank}d")(named(plain))
    rule(f"_upsample_nearest_exact{rank}d")(named(exact))


for _rank in (1, 2, 3):
    _nearest_rules(_rank)


def _linear(self, output_size, align_corners, scales):
    """The mean of the two elements around, weighted by distance, along one dimension after the other (the last first)."""
    dtype = self.dtype
    x = self.to(cresset.float32) if dtype in _LOW else self
    count = len(output_size)
    for at in reversed(range(count)):
        dim, source = 2 + at, self.shape[2 + at]
        places = cresset.arange(output_size[at], device=self.device).to(x.dtype)
        if align_corners:
            places = places * ((source - 1) / (output_size[at] - 1) if output_size[at] > 1 else 0)
        else:
            step = 1 / scales[at] if scales[at] is not None else source / output_size[at]
            places = cresset.clamp((places + 0.5) * step - 0.5, min=0.0)
        low = places.to(cresset.int64)
        high = cresset.clamp(low + 1, max=source - 1)
        weight = cresset.clamp(places - low, 0.0, 1.0).view([-1] + [1] * (count - 1 - at))
        first, second = (aten.index.Tensor(x, [None] * dim + [i]) for i in (low, high))
        x = first + (second - first) * weight
    return x.to(dtype)


@rule("upsample_linear1d")
def upsample_linear1d(self, output_size, align_corners, scales=None):
    return _linear(self, output_size, align_corners, [scales])


@rule("upsample_bilinear2d", core=False)
def upsample_bilinear2d(self, output_size, align_corners, scales_h=None, scales_w=None):
    return _linear(self, output_size, align_corners, [scales_h, scales_w])


@rule("upsample_trilinear3d", core=False)
def upsample_trilinear3d(self, output_size, align_corners, scales_d=None, scales_h=None, scales_w=None):
    return _linear(self, output_size, align_corners, [scales_d, scales_h, scales_w])


def _windows(length, kernel, dilation, padding, stride, device):
    """(kernel, number of windows): the places of each window's elements in what is padded."""
    starts = cresset.arange(0, length + 2 * padding - dilation * (kernel - 1), stride, device=device).unsqueeze(0)
    return starts + cresset.arange(0, kernel * dilation, dilation, device=device).unsqueeze(-1)


@rule("im2col")
def im2col(self, kernel_size, dilation, padding, stride):
    batched = self.dim() == 4
    x = self if batched else self.unsqueeze(0)
    n, c, h, w = x.shape
    rows, columns = (_windows(s, k, d, p, t, self.device) for s, k, d, p, t in zip((h, w), kernel_size, dilation, padding, stride))
    padded = cresset.constant_pad_nd(x, (padding[1], padding[1], padding[0], padding[0]))
    found = aten.index.Tensor(padded, [None, None, rows.unsqueeze(-1).unsqueeze(-1), columns]).permute(0, 1, 2, 4, 3, 5)
    found = found.reshape([n, c * kernel_size[0] * kernel_size[1], rows.shape[1] * columns.shape[1]])
    return found if batched else found.squeeze(0)


@rule("col2im")
def col2im(self, output_size, kernel_size, dilation, padding, stride):
    batched = self.dim() == 3
    x = self if batched else self.unsqueeze(0)
    rows, columns = (_windows(s, k, d, p, t, self.device) for s, k, d, p, t in zip(output_size, kernel_size, dilation, padding, stride))
    n, channels = x.shape[0], x.shape[1] // (kernel_size[0] * kernel_size[1])
    x = x.reshape([n, channels, *kernel_size, rows.shape[1], columns.shape[1]]).permute(0, 1, 2, 4, 3, 5)
    padded = x.new_zeros([n, channels, output_size[0] + 2 * padding[0], output_size[1] + 2 * padding[1]])
    padded = aten.index_put.default(padded, [None, None, rows.unsqueeze(-1).unsqueeze(-1), columns], x, True)
    result = cresset.constant_pad_nd(padded, (-padding[1], -padding[1], -padding[0], -padding[0]))
    return result if batched else result.squeeze(0)
