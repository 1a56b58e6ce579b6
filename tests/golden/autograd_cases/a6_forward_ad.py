"""Forward mode: levels, duals, views and in-place."""

import weakref

from . import raised


def _ad(t):
    return t.autograd.forward_ad


def n01_errors(t):
    ad = _ad(t)
    x = t.ones(2)
    outside = raised(lambda: ad.make_dual(x, x), "Trying to create a dual Tensor for forward AD but no level")

    def nested():
        with ad.dual_level(), ad.dual_level():
            pass

    with ad.dual_level():
        d = ad.make_dual(x, t.ones(2))
        other = ad.make_dual(x, t.ones(2, dtype=t.float64))
        inside = (
            raised(lambda: ad.make_dual(x, t.ones(3)), "that has a different size than that of the original Tensor"),
            raised(lambda: ad.make_dual(t.ones(2, dtype=t.int64), x), "Expected primal to be floating point or complex"),
            raised(lambda: ad.make_dual(x, t.ones(2, dtype=t.int64)), "Expected tangent to be floating point or complex"),
            raised(lambda: ad.make_dual(d, t.ones(2)), "already has a forward gradient at the same level"),
            raised(lambda: ad.make_dual(t.ones(2), d), "that itself has a forward gradient at the same level"),
            str(ad.unpack_dual(other).tangent.dtype).rpartition(".")[2],
        )
    return outside, raised(nested, "Nested forward mode AD is not supported at the moment"), inside, raised(ad.exit_dual_level, "")


def n02_unpack(t):
    ad = _ad(t)
    x = t.ones(2)
    with ad.dual_level():
        d = ad.make_dual(x, t.full((2,), 5.0))
        p, g = ad.unpack_dual(d)
        plain = ad.unpack_dual(x)
        kind = type(plain).__name__, plain.tangent, p._is_view(), p.data_ptr() == x.data_ptr(), ad.unpack_dual(p).tangent
        text = repr(d)
    return kind, g, text, ad.unpack_dual(d).tangent, repr(d)


def n03_into_a_view(t):
    ad = _ad(t)
    out = []
    with ad.dual_level():
        base = t.zeros(4)
        base[1:3].copy_(ad.make_dual(t.ones(2), t.full((2,), 7.0)))
        out.append(ad.unpack_dual(base).tangent)
        dual = ad.make_dual(t.ones(3), t.ones(3))
        dual[:1].mul_(4)
        out.append(ad.unpack_dual(dual).tangent)
        view = dual[1:]
        out.append(ad.unpack_dual(view).tangent)
        view.mul_(3)
        out.append(ad.unpack_dual(dual).tangent)
        plain = t.ones(2)
        plain.mul_(ad.make_dual(t.ones(2), t.full((2,), 2.0)))
        out.append(ad.unpack_dual(plain).tangent)
        cut = t.zeros(3)
        part = cut.detach()
        part.copy_(ad.make_dual(t.ones(3), t.ones(3)))
        out.append(ad.unpack_dual(cut).tangent)
        filled = ad.make_dual(t.ones(2), t.ones(2))
        filled.zero_()
        out.append(ad.unpack_dual(filled).tangent)
        out.append(ad.unpack_dual(ad.make_dual(t.ones(2), t.ones(2)).detach()).tangent)
    return out


def n03_view_then_base(t):
    ad = _ad(t)
    with ad.dual_level():
        base = t.zeros(2, 2)
        view = base.t()
        base.copy_(ad.make_dual(t.ones(2, 2), t.arange(4.0).view(2, 2)))
        after = ad.unpack_dual(view).tangent
        nested = base[0][1:]
        return after, ad.unpack_dual(nested).tangent


def n04_out_and_missing_formulas(t):
    ad = _ad(t)

    class F(t.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

    with ad.dual_level():
        d = ad.make_dual(t.ones(2), t.ones(2))
        return (
            raised(lambda: t.add(d, d, out=t.zeros(2)), "Trying to use forward AD with add_out that does not support it because it is an out= function"),
            raised(lambda: F.apply(d), "jvp"),
        )


def n05_layout(t):
    ad = _ad(t)
    with ad.dual_level():
        tangent = t.ones(3, 2)
        same = ad.unpack_dual(ad.make_dual(t.ones(3, 2), tangent)).tangent.data_ptr() == tangent.data_ptr()
        turned = t.ones(2, 3).t()
        other = ad.unpack_dual(ad.make_dual(t.ones(3, 2), turned)).tangent
        z = t.ones(2, dtype=t.complex64)
        conj = ad.unpack_dual(ad.make_dual(z.conj(), t.full((2,), 1 + 2j))).tangent
        by_conj = ad.unpack_dual(ad.make_dual(z, t.full((2,), 1 + 2j)).conj()).tangent
        return same, other.stride() == (2, 1), other.data_ptr() == turned.data_ptr(), conj, by_conj


def n05_level_exit_frees(t):
    ad = _ad(t)
    with ad.dual_level():
        tangent = t.ones(2)
        ref = weakref.ref(tangent)
        dual = ad.make_dual(t.ones(2), tangent)
        del tangent
        alive = ref() is not None or ad.unpack_dual(dual).tangent is not None
    return alive, ref() is None


def n06_reverse_over_forward(t):
    ad = _ad(t)
    x = t.tensor([2.0, 3.0], dtype=t.float64, requires_grad=True)
    with ad.dual_level():
        y = ad.make_dual(x, t.ones(2, dtype=t.float64)) ** 3
        tangent = ad.unpack_dual(y).tangent
        (h,) = t.autograd.grad(tangent.sum(), x)
    return tangent, h


def n06_forward_over_reverse(t):
    ad = _ad(t)
    with ad.dual_level():
        x = ad.make_dual(t.tensor([2.0, 3.0], dtype=t.float64).requires_grad_(), t.ones(2, dtype=t.float64))
        (g,) = t.autograd.grad((x**3).sum(), x, create_graph=True)
        return ad.unpack_dual(g)


def n06_tangent_requires_grad(t):
    ad = _ad(t)
    v = t.ones(2, dtype=t.float64, requires_grad=True)
    with ad.dual_level():
        y = ad.make_dual(t.tensor([2.0, 3.0], dtype=t.float64), v).sin()
        (g,) = t.autograd.grad(ad.unpack_dual(y).tangent.sum(), v)
    return g


def n06_no_grad_and_modes(t):
    ad = _ad(t)
    with ad.dual_level():
        d = ad.make_dual(t.ones(2), t.ones(2))
        with t.no_grad():
            a = ad.unpack_dual(d * 2).tangent
        with ad._set_fwd_grad_enabled(False):
            b = ad.unpack_dual(d * 2).tangent
        return a, b


def n06_set_data_and_clone(t):
    ad = _ad(t)
    with ad.dual_level():
        d = ad.make_dual(t.ones(2), t.ones(2))
        return ad.unpack_dual(d.clone()).tangent, ad.unpack_dual(d.view(2, 1)).tangent, ad.unpack_dual(t.cat([d, t.zeros(1)])).tangent
