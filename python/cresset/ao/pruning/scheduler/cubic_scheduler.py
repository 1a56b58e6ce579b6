"""The level rises by a cubic curve."""

from .base_scheduler import BaseScheduler

__all__ = ["CubicSL"]


def _clamp(x, lo, hi):
    return max(lo, min(hi, x))


class CubicSL(BaseScheduler):
    """s = s_f + (s_0 - s_f) (1 - (t - t_0) / (n dt))³ from epoch t_0 on, with s_f the level at the beginning (arXiv 1710.01878).

    s_0 is `init_sl`, t_0 `init_t`, dt `delta_t`, n `total_t`; each is a number, or a list with one for each group. Before t_0 the level is 0 if `initially_zero`, else s_0.
    """

    def __init__(self, sparsifier, init_sl=0.0, init_t=0, delta_t=10, total_t=100, initially_zero=False, last_epoch=-1, verbose=False):
        self.sparsifier = sparsifier
        self.init_sl = self._make_sure_a_list(init_sl)
        self.init_t = self._make_sure_a_list(init_t)
        self.delta_t = self._make_sure_a_list(delta_t)
        self.total_t = self._make_sure_a_list(total_t)
        self.initially_zero = self._make_sure_a_list(initially_zero)
        super().__init__(sparsifier, last_epoch, verbose)

    @staticmethod
    def sparsity_compute_fn(s_0, s_f, t, t_0, dt, n, initially_zero=False):
        """The level at step `t`."""
        if initially_zero and t < t_0:
            return 0
        return _clamp(s_f + (s_0 - s_f) * (1.0 - (t - t_0) / (dt * n)) ** 3, s_0, s_f)

    def get_sl(self):
        self._warn_outside_of_step()
        rows = zip(self.init_sl, self.base_sl, self.init_t, self.delta_t, self.total_t, self.initially_zero)
        return [self.sparsity_compute_fn(s_0, s_f, self.last_epoch, t_0, dt, n, zero) for s_0, s_f, t_0, dt, n, zero in rows]
