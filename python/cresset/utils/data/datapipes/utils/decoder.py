"""Decoders of files by the extension of their names, for RoutedDecoder."""

import json
import pickle

__all__ = ["basichandlers", "handle_extension"]

_TEXTS = {"txt", "text", "transcript"}
_NUMBERS = {"cls", "cls2", "class", "count", "index", "inx", "id"}


def basichandlers(extension, data):
    """Text, numbers, JSON and pickles from bytes; None for other extensions. Pickles run what they say: only for files that are trusted."""
    if extension in _TEXTS:
        return data.decode("utf-8")
    if extension in _NUMBERS:
        try:
            return int(data)
        except ValueError:
            return None
    if extension in ("json", "jsn"):
        return json.loads(data)
    if extension in ("pyd", "pickle"):
        return pickle.loads(data)
    return None


def handle_extension(extensions, f):
    """A handler that gives `f(data)` for names that end in one of the extensions, which are separated by spaces; None for others."""
    wanted = [e.split(".") for e in extensions.lower().split()]

    def decode(extension, data):
        parts = extension.lower().split(".")
        return f(data) if any(parts[-len(w) :] == w for w in wanted) else None

    return decode
