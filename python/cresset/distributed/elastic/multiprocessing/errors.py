"""A process that fails writes down why, where its launcher asks for it."""

import functools
import json
import os
import time
import traceback

__all__ = ["record"]


def record(fn, error_handler=None):
    """Decorator of a main function: an exception is written as JSON to the file that $TORCHELASTIC_ERROR_FILE names, and raised."""

    @functools.wraps(fn)
    def recorded(*args, **kwargs):
        try:
            return fn(*args, **kwargs)
        except Exception as error:
            if error_handler is not None:
                error_handler.record_exception(error)
            elif path := os.environ.get("TORCHELASTIC_ERROR_FILE"):
                os.makedirs(os.path.dirname(path) or ".", exist_ok=True)
                info = {"py_callstack": traceback.format_exc(), "timestamp": str(int(time.time()))}
                with open(path, "w") as f:
                    json.dump({"message": {"message": f"{type(error).__name__}: {error}", "extraInfo": info}}, f)
            raise

    return recorded
