"""The functions of distributed.nn, which raise as PyTorch's do in a process without a process group."""

__all__ = [  # noqa: F822  (the loop below makes them)
    "all_gather", "all_reduce", "all_to_all", "all_to_all_single", "broadcast", "gather", "reduce", "reduce_scatter", "scatter",
]  # fmt: skip


def _needs_a_group(name):
    def function(*args, **kwargs):
        from cresset import distributed

        if distributed.is_initialized():
            raise NotImplementedError(f"distributed.nn.{name} is not part of Cresset yet: distributed.{name} has no gradient.")
        raise ValueError("Default process group has not been initialized, please make sure to call init_process_group.")

    function.__name__ = function.__qualname__ = name
    function.__doc__ = "Raises ValueError without a process group, and NotImplementedError with one."
    return function


all_gather = _needs_a_group("all_gather")
all_reduce = _needs_a_group("all_reduce")
all_to_all = _needs_a_group("all_to_all")
all_to_all_single = _needs_a_group("all_to_all_single")
broadcast = _needs_a_group("broadcast")
gather = _needs_a_group("gather")
reduce = _needs_a_group("reduce")
reduce_scatter = _needs_a_group("reduce_scatter")
scatter = _needs_a_group("scatter")
