"""What the profiler's sessions and the switches of PyTorch's extension module share."""

__all__ = ["active_kind", "blocks", "draw_arrows", "keep_values", "keyword_values", "optimizer_infos", "optimizers", "totals"]

active_kind = "NONE"  # the member of ActiveProfilerType that says which profiler runs
keep_values, draw_arrows = True, True
keyword_values = {}  # of ranges of the session, by their tokens
optimizers = None  # in a session with stacks: system's number of a thread → an _OptimizerInfo for each step there
optimizer_infos = None  # and number of an optimizer → (the optimizer, its _OptimizerInfo of its first step)
blocks, totals = {}, {}  # what sessions that look at memory saw taken and not yet given back, (device, address) → bytes, and its sums by device
