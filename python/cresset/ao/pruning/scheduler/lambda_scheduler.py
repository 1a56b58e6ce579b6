"""The level times a function of the epoch."""

from .base_scheduler import BaseScheduler

__all__ = ["LambdaSL"]


class LambdaSL(BaseScheduler):
    """The level at the beginning times sl_lambda(epoch); `sl_lambda` is a function, or a list with one for each group."""

    def __init__(self, sparsifier, sl_lambda, last_epoch=-1, verbose=False):
        count = len(sparsifier.groups)
        if not isinstance(sl_lambda, (list, tuple)):
            self.sl_lambdas = [sl_lambda] * count
        elif len(sl_lambda) != count:
            raise ValueError(f"Expected {count} lr_lambdas, but got {len(sl_lambda)}")
        else:
            self.sl_lambdas = list(sl_lambda)
        super().__init__(sparsifier, last_epoch, verbose)

    def get_sl(self):
        self._warn_outside_of_step()
        return [base * factor(self.last_epoch) for base, factor in zip(self.base_sl, self.sl_lambdas)]
