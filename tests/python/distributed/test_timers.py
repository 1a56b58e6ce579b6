"""Time limits of the launcher's package: a process that takes too long is ended, over a queue and over a named pipe."""

import multiprocessing
import signal
import time

import pytest

from cresset.distributed.elastic import timer


def sleep(client, after, seconds):
    timer.configure(client)
    with timer.expires(after=after, scope="here"):
        time.sleep(seconds)


@pytest.mark.parametrize("over", ["queue", "pipe"])
def test_who_takes_too_long_is_ended(over, tmp_path):
    context = multiprocessing.get_context("fork")
    queue, path = context.Queue(), str(tmp_path / "pipe")
    server = timer.LocalTimerServer(queue, 0.02) if over == "queue" else timer.FileTimerServer(path, "job", 0.02)
    client = timer.LocalTimerClient(queue) if over == "queue" else timer.FileTimerClient(path)
    server.start()
    try:
        codes = []
        for seconds in (0.01, 20):
            process = context.Process(target=sleep, args=(client, 1.0, seconds))
            process.start()
            process.join()
            codes.append(process.exitcode)
        assert codes == [0, -signal.SIGKILL]
    finally:
        server.stop()


def test_words(tmp_path):
    timer.configure(None)
    with pytest.raises(RuntimeError, match="^Configure timer client before using countdown timers.$"), timer.expires(after=1):
        pass
    with pytest.raises(BrokenPipeError, match="^Could not send the FileTimerRequest because FileTimerServer is not available.$"):
        sleep(timer.FileTimerClient(str(tmp_path / "none")), 1, 0)
    timer.configure(None)
