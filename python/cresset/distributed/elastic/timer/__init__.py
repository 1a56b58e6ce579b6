"""Time limits for pieces of a program: `with expires(after=60): …`. The process is ended when it takes longer, by a server beside it."""

from .api import RequestQueue, TimerClient, TimerRequest, TimerServer, configure, expires
from .file_based_local_timer import FileTimerClient, FileTimerRequest, FileTimerServer
from .local_timer import LocalTimerClient, LocalTimerServer

__all__ = [
    "FileTimerClient", "FileTimerRequest", "FileTimerServer", "LocalTimerClient", "LocalTimerServer", "RequestQueue", "TimerClient", "TimerRequest",
    "TimerServer", "configure", "expires",
]
