"""Forms that functions write for scripts: lists for which a call may give one number, and a choice between two functions by a flag."""

import weakref

boolean_dispatched = weakref.WeakKeyDictionary()  # {a function of boolean_dispatch: what it was made of}; libraries look there for the two functions


class _BroadcastingList:
    """In annotations of scripts, `BroadcastingListN[int]` is a list of N numbers for which a call may give one."""

    def __init__(self, size):
        self.size = size

    def __getitem__(self, element):
        return type(f"BroadcastingList{self.size}", (), {"_broadcasts": (self.size, float if element is float else int)})


BroadcastingList1, BroadcastingList2, BroadcastingList3, BroadcastingList4 = map(_BroadcastingList, range(1, 5))


def boolean_dispatch(arg_name, arg_index, default, if_true, if_false, module_name, func_name):
    """A function that is one of two, by the argument `arg_name` at the position `arg_index`, True or False (`default` where it is not given)."""

    def chosen(*args, **kwargs):
        flag = kwargs.get(arg_name, args[arg_index] if arg_index < len(args) else default)
        return (if_true if flag else if_false)(*args, **kwargs)

    doc = {bool(f.__doc__): f.__doc__ for f in (if_false, if_true)}
    chosen.__doc__ = doc.get(True)
    if module_name is not None:
        chosen.__module__ = module_name
    if func_name is not None:
        chosen.__name__ = func_name
    boolean_dispatched[chosen] = {"if_true": if_true, "if_false": if_false, "index": arg_index, "default": default, "arg_name": arg_name}
    return chosen
