"""What users said about functions: not to be compiled, to stand in graphs as they are, to have one answer."""

import weakref

__all__ = ["COMPILED", "answer", "mark", "mark_of", "original_of"]

DISABLED = "_torchdynamo_disable"
COMPILED = "_torchdynamo_orig_callable"
_marks = {}  # id -> (what keeps the id's meaning, mark)
_answers = {}


def mark(fn, what):
    """Remembers "disabled", "in graph" or "constant" of a callable."""
    try:
        kept = weakref.ref(fn, lambda _, key=id(fn): _marks.pop(key, None))
    except TypeError:
        kept = fn
    _marks[id(fn)] = (kept, what)
    if what == "disabled":
        try:
            setattr(fn, DISABLED, True)
        except (AttributeError, TypeError):
            pass
    return fn


def answer(fn, give):
    """Calls of fn are answered by give(evaluator, args, kwargs)."""
    _answers[id(fn)] = (fn, give)


def mark_of(obj):
    """The mark of an object: text, or a function that answers; None."""
    found = _marks.get(id(obj))
    if found is not None:
        return found[1]
    found = _answers.get(id(obj))
    if found is not None:
        return found[1]
    names = getattr(obj, "__dict__", None)
    if isinstance(names, dict) and not isinstance(obj, type) and names.get(DISABLED):
        return "disabled"
    return None


def original_of(obj):
    """What a compiled callable was made of."""
    return obj.__dict__[COMPILED]
