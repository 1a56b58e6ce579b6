"""One program as a rank, in a session of its own, so that signals reach what it starts too."""

import os
import signal
import subprocess

__all__ = ["SubprocessHandler"]


class SubprocessHandler:
    """Starts `entrypoint` with its arguments; "" as a stream's file leaves the stream."""

    def __init__(self, entrypoint, args, env, stdout, stderr, local_rank_id):
        self.local_rank_id = local_rank_id
        self._stdout = open(stdout, "wb") if stdout else None
        self._stderr = open(stderr, "wb") if stderr else None
        command = [entrypoint, *map(str, args)]
        self.proc = subprocess.Popen(command, env={**os.environ, **env}, stdout=self._stdout, stderr=self._stderr, start_new_session=True)

    def send(self, number):
        """A signal to the rank and what it started."""
        if self.proc.poll() is None:
            try:
                os.killpg(self.proc.pid, number)
            except ProcessLookupError:
                pass

    def close(self, death_sig=None):
        """Tell it to end, by SIGTERM where no signal is given. A process that was stopped is woken to hear it."""
        self.send(death_sig or signal.SIGTERM)
        self.send(signal.SIGCONT)
        for file in (self._stdout, self._stderr):
            if file:
                file.close()
