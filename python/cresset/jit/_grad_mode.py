"""`no_grad` and `enable_grad` as classes of scripts."""

import cresset


class no_grad:
    def __init__(self):
        self.before = True

    def __enter__(self):
        self.before = cresset.is_grad_enabled()
        cresset.set_grad_enabled(False)

    def __exit__(self, type: object, value: object, traceback: object):
        cresset.set_grad_enabled(self.before)


class enable_grad:
    def __init__(self):
        self.before = True

    def __enter__(self):
        self.before = cresset.is_grad_enabled()
        cresset.set_grad_enabled(True)

    def __exit__(self, type: object, value: object, traceback: object):
        cresset.set_grad_enabled(self.before)
