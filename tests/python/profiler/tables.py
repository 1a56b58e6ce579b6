"""Events with invented times, and the tables of them. Run with PyTorch, this file records tables.txt:

python tables.py torch > tables.txt
"""

import importlib
import sys


def events(util):
    """A tree of events: a range, an operator with an operator inside, a backward step, and memory outside of all."""

    def event(*args, stack=(), flops=0, **options):
        return util.FunctionEvent(*args, stack=list(stack), flops=flops, **options)

    one = event(1, "block of code", 1, 0.0, 5000.0, cpu_memory_usage=2048, is_user_annotation=True, input_shapes=[])
    two = event(
        2, "aten::linear", 1, 100.0, 1600.0, input_shapes=[[5, 4], [3, 4], [3]], stack=["model.py(3): forward", "train.py(8): step"],
        cpu_memory_usage=2048, sequence_nr=0,
    )  # fmt: skip
    three = event(
        3, "aten::addmm", 1, 200.0, 1200.5, input_shapes=[[3], [5, 4], [4, 3], [], []], stack=["model.py(3): forward"],
        cpu_memory_usage=4096, sequence_nr=1, flops=123456,
    )  # fmt: skip
    four = event(
        4, "a name that is so long that no column is wide enough for all of it", 1, 6000.0, 2e6, input_shapes=[[7] * 40], flops=2_000_000,
    )  # fmt: skip
    five = event(5, "aten::addmm", 1, 7000.0, 7123.0, input_shapes=[[1]], cpu_memory_usage=-3 * 1024**2, flops=1500)
    six = event(6, "[memory]", 1, 2e6 + 5, 2e6 + 5, cpu_memory_usage=-2048, input_shapes=[])
    return [one, two, three, four, five, six]


def event_list(util, **options):
    """The events as a list with its tree of calls. PyTorch's lists find it themselves."""
    out = util.EventList(events(util), **options)
    if hasattr(out, "_build_tree"):
        out._build_tree()
        return out
    one, two, three, four, five, _ = out
    for parent, child in ((one, two), (two, three), (four, five)):
        child.set_cpu_parent(parent)
        parent.append_cpu_child(child)
    return out


def texts(util):
    """(title, table) for every way to print them."""
    plain = event_list(util)
    memory = event_list(util, profile_memory=True)
    flops = event_list(util, with_flops=True)
    both = event_list(util, profile_memory=True, with_flops=True)
    yield "events", plain.table()
    yield "averages", plain.key_averages().table()
    yield "sorted", plain.key_averages().table(sort_by="self_cpu_time_total", row_limit=2)
    yield "no limits", plain.key_averages().table(row_limit=-1, max_name_column_width=None)
    yield "narrow", plain.key_averages().table(max_name_column_width=12, header="A HEADER", time_unit="ms")
    yield "top level", plain.table(top_level_events_only=True, time_unit="s")
    yield "shapes", memory.key_averages(group_by_input_shapes=True).table(max_shapes_column_width=30)
    yield "stacks", plain.key_averages(group_by_stack_n=2).table()
    yield "narrow stacks", memory.key_averages(group_by_stack_n=2).table(max_src_column_width=12)
    yield "memory", memory.key_averages().table(sort_by="cpu_memory_usage")
    yield "flops", flops.key_averages().table()
    yield "everything", both.key_averages(group_by_input_shapes=True).table(max_shapes_column_width=40)
    yield "total", repr(plain.total_average())
    yield "average", repr(plain.key_averages()[1])
    yield "no events", util.EventList([]).table()


if __name__ == "__main__":
    util = importlib.import_module(f"{sys.argv[1]}.autograd.profiler_util")
    for title, text in texts(util):
        print(f"#### {title}\n{text}")
