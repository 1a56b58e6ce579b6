"""Writes errors as JSON to the file that $TORCHELASTIC_ERROR_FILE names."""

import faulthandler
import json
import os
import time
import traceback
import warnings

from cresset._logging import logger_of

__all__ = ["ErrorHandler"]

_log = logger_of(__name__)


class ErrorHandler:
    """{"message": {"message": "Kind: words", "extraInfo": {"py_callstack", "timestamp"}}} in this process's error file, if it has one."""

    def _get_error_file_path(self):
        return os.environ.get("TORCHELASTIC_ERROR_FILE")

    def initialize(self):
        """At the begin of a process: a crash prints where it was."""
        try:
            faulthandler.enable(all_threads=True)
        except Exception as error:
            warnings.warn(f"Unable to enable fault handler. {type(error).__name__}: {error}", stacklevel=2)

    def _write(self, path, data):
        os.makedirs(os.path.dirname(path) or ".", exist_ok=True)
        with open(path, "w") as file:
            json.dump(data, file)

    def record_exception(self, e):
        """Write an exception down; without a file it goes to the log."""
        more = {"py_callstack": "".join(traceback.format_exception(e)), "timestamp": str(int(time.time()))}
        data = {"message": {"message": f"{type(e).__name__}: {e}", "extraInfo": more}}
        path = self._get_error_file_path()
        if path:
            self._write(path, data)
        else:
            _log.debug("no error file for: %s", data["message"]["message"])

    def override_error_code_in_rootcause_data(self, rootcause_error_file, rootcause_error, error_code=0):
        """Put the exit code of the process into what it wrote."""
        if isinstance(rootcause_error.get("message"), dict):
            rootcause_error["message"]["errorCode"] = error_code

    def dump_error_file(self, rootcause_error_file, error_code=0):
        """Make a child's error file this process's own; an older one there is overwritten."""
        with open(rootcause_error_file) as file:
            data = json.load(file)
        if error_code:
            self.override_error_code_in_rootcause_data(rootcause_error_file, data, error_code)
        path = self._get_error_file_path()
        if path:
            self._write(path, data)
        else:
            _log.error("no error file for the child's error:\n%s", json.dumps(data, indent=2))
