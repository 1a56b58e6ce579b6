"""What dispatching keeps between calls."""

__all__ = ["LIMIT", "OpDispatcher", "dispatcher"]

LIMIT = 20_000  # decisions that are kept


class OpDispatcher:
    """State of dispatching: whether plain tensors count as whole on every rank, functions that run operators in another way, and decisions made."""

    def __init__(self):
        self._allow_implicit_replication = False
        self.decisions, self.handlers = {}, {}
        self.hits = self.misses = 0


dispatcher = OpDispatcher()
