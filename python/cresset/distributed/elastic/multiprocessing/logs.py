"""Which streams of ranks go to files, which of them to the console as well, and where the files are."""

import os
import re
import tempfile
from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from enum import IntFlag

__all__ = ["DefaultLogsSpecs", "LogsDest", "LogsSpecs", "Std", "to_map"]


class Std(IntFlag):
    """Standard streams."""

    NONE = 0
    OUT = 1
    ERR = 2
    ALL = OUT | ERR

    @classmethod
    def from_str(cls, vm):
        """"3", or {local rank: streams} of "0:1,1:3". ValueError for other texts."""
        if re.fullmatch("[0123]", vm):
            return Std(int(vm))
        if re.fullmatch(r"\d+:[0123](,\d+:[0123])*", vm):
            return {int(rank): Std(int(streams)) for rank, streams in (pair.split(":") for pair in vm.split(","))}
        raise ValueError(f"{vm} does not match: <0, 1, 2 or 3> or <local rank:0, 1, 2 or 3>,…")


def to_map(val_or_map, local_world_size):
    """{local rank: streams} of streams for all, or for some."""
    if isinstance(val_or_map, Std):
        return dict.fromkeys(range(local_world_size), val_or_map)
    return {rank: val_or_map.get(rank, Std.NONE) for rank in range(local_world_size)}


@dataclass
class LogsDest:
    """Files by local rank; "" for a stream that stays as it is."""

    stdouts: dict = field(default_factory=dict)
    stderrs: dict = field(default_factory=dict)
    tee_stdouts: dict = field(default_factory=dict)
    tee_stderrs: dict = field(default_factory=dict)
    error_files: dict = field(default_factory=dict)


class LogsSpecs(ABC):
    """What is wanted: `redirects` to files, `tee` to files and the console, Std or {local rank: Std}; only some ranks on the console."""

    def __init__(self, log_dir=None, redirects=Std.NONE, tee=Std.NONE, local_ranks_filter=None):
        self._root_log_dir, self._redirects, self._tee, self._local_ranks_filter = log_dir, redirects, tee, local_ranks_filter

    @abstractmethod
    def reify(self, envs):
        """The LogsDest for ranks with these environments, {local rank: {name: value}}; they get TORCHELASTIC_ERROR_FILE."""

    @property
    @abstractmethod
    def root_log_dir(self):
        """The folder of all logs."""


class DefaultLogsSpecs(LogsSpecs):
    """Files in log_dir/<job>_<random>/attempt_<n>/<local rank>/: stdout.log, stderr.log, error.json. NotADirectoryError for a file as log_dir."""

    def __init__(self, log_dir=None, redirects=Std.NONE, tee=Std.NONE, local_ranks_filter=None):
        if log_dir and os.path.isfile(log_dir):
            raise NotADirectoryError(f"log_dir: {log_dir} is a file")
        super().__init__(log_dir or tempfile.mkdtemp(prefix="torchelastic_"), redirects, tee, local_ranks_filter)
        os.makedirs(self._root_log_dir, exist_ok=True)
        self._run_log_dir = None

    @property
    def root_log_dir(self):
        """The folder of all logs."""
        return self._root_log_dir

    def reify(self, envs):
        """See the base."""
        first = envs[0] if envs else {}
        if not self._run_log_dir:
            self._run_log_dir = tempfile.mkdtemp(prefix=f"{first.get('TORCHELASTIC_RUN_ID', 'test_run_id')}_", dir=self._root_log_dir)
        attempt = os.path.join(self._run_log_dir, f"attempt_{first.get('TORCHELASTIC_RESTART_COUNT', '0')}")
        tee = to_map(self._tee, len(envs))
        redirects = {rank: streams | tee[rank] for rank, streams in to_map(self._redirects, len(envs)).items()}
        made = LogsDest()
        for rank in range(len(envs)):
            folder = os.path.join(attempt, str(rank))
            os.makedirs(folder, exist_ok=True)
            shown = not self._local_ranks_filter or rank in self._local_ranks_filter
            for bit, name, files, tees in ((Std.OUT, "stdout", made.stdouts, made.tee_stdouts), (Std.ERR, "stderr", made.stderrs, made.tee_stderrs)):
                files[rank] = os.path.join(folder, f"{name}.log") if redirects[rank] & bit else "" if shown else os.devnull
                if tee[rank] & bit and shown:
                    tees[rank] = files[rank]
            made.error_files[rank] = envs[rank]["TORCHELASTIC_ERROR_FILE"] = os.path.join(folder, "error.json")
        return made
