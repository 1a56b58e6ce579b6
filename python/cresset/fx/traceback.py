"""Meta of the node that runs, for programs that trace what an Interpreter runs."""

import contextlib
import copy
import traceback

__all__ = [
    "annotate", "annotate_fn", "preserve_node_meta", "has_preserved_node_meta", "set_stack_trace", "set_grad_fn_seq_nr", "reset_grad_fn_seq_nr",
    "format_stack", "set_current_meta", "get_current_meta", "NodeSource", "NodeSourceAction", "get_graph_provenance_json", "set_current_replay_node",
    "get_current_replay_node",
]  # fmt: skip

from ._provenance import NodeSource, NodeSourceAction, get_graph_provenance_json  # noqa: F401

current_meta = {}
should_preserve_node_meta = False
_current_replay_node = None


@contextlib.contextmanager
def preserve_node_meta(enable=True):
    """For a block, nodes that are traced take over the meta of the node that runs (Interpreter)."""
    global should_preserve_node_meta, current_meta
    before, meta = should_preserve_node_meta, current_meta
    try:
        should_preserve_node_meta = enable
        current_meta = dict(current_meta)
        yield
    finally:
        should_preserve_node_meta, current_meta = before, meta


def has_preserved_node_meta():
    """Is preserve_node_meta active?"""
    return should_preserve_node_meta


def set_stack_trace(stack):
    """The stack trace of what comes, a list of lines."""
    if should_preserve_node_meta and stack:
        current_meta["stack_trace"] = "".join(stack)


def set_grad_fn_seq_nr(seq_nr):
    """Note that what comes is made by the backward of a node of this number."""
    if should_preserve_node_meta:
        current_meta["grad_fn_seq_nr"] = [*current_meta.get("grad_fn_seq_nr", []), seq_nr]
        current_meta["in_grad_fn"] = current_meta.get("in_grad_fn", 0) + 1


def reset_grad_fn_seq_nr():
    """Undo set_grad_fn_seq_nr."""
    if should_preserve_node_meta:
        depth = current_meta["in_grad_fn"]
        if depth == 1:
            del current_meta["in_grad_fn"], current_meta["grad_fn_seq_nr"]
        else:
            current_meta["in_grad_fn"] = depth - 1
            current_meta["grad_fn_seq_nr"] = current_meta["grad_fn_seq_nr"][:-1]


def format_stack():
    """The stack trace of the node that runs, or of the program, as lines."""
    if should_preserve_node_meta:
        return [current_meta.get("stack_trace", "")]
    return traceback.format_list(traceback.extract_stack()[:-1])


@contextlib.contextmanager
def set_current_meta(node, pass_name=""):
    """For a block, this node's meta is the current one."""
    global current_meta
    if not (should_preserve_node_meta and node.meta):
        yield
        return
    before = current_meta
    try:
        current_meta = node.meta.copy()
        current_meta["from_node"] = [NodeSource(node, pass_name, NodeSourceAction.CREATE)]
        yield
    finally:
        current_meta = before


def get_current_meta():
    """The meta that traced nodes take over."""
    return current_meta


@contextlib.contextmanager
def set_current_replay_node(node):
    """For a block, this node is the one that is replayed."""
    global _current_replay_node
    before = _current_replay_node
    try:
        _current_replay_node = node
        yield
    finally:
        _current_replay_node = before


def get_current_replay_node():
    """The node that is replayed, or None."""
    return _current_replay_node


@contextlib.contextmanager
def annotate(annotation_dict):
    """For a block, nodes that are traced have these entries in meta["custom"]."""
    global current_meta
    before = current_meta
    try:
        current_meta = copy.copy(current_meta)
        current_meta["custom"] = {**current_meta.get("custom", {}), **annotation_dict}
        yield
    finally:
        current_meta = before


def annotate_fn(annotation_dict):
    """Decorator: the function runs in annotate."""
    import functools

    def decorate(function):
        @functools.wraps(function)
        def annotated(*args, **kwargs):
            with annotate(annotation_dict):
                return function(*args, **kwargs)

        return annotated

    return decorate
