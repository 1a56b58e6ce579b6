"""What happens to agents and workers, as records that become JSON."""

import json
from dataclasses import asdict, dataclass, field
from enum import Enum

__all__ = ["Event", "EventSource", "NodeState", "RdzvEvent"]


class EventSource(str, Enum):
    """Who tells."""

    AGENT = "AGENT"
    WORKER = "WORKER"


class NodeState(str, Enum):
    """What a machine does in a rendezvous."""

    INIT = "INIT"
    RUNNING = "RUNNING"
    SUCCEEDED = "SUCCEEDED"
    FAILED = "FAILED"


@dataclass
class Event:
    """Something that happened: a name, who tells, when (seconds), and more by name."""

    name: str
    source: EventSource
    timestamp: int = 0
    metadata: dict = field(default_factory=dict)

    def __str__(self):
        return self.serialize()

    @staticmethod
    def deserialize(data):
        """The event of a JSON text; an event stays itself."""
        if isinstance(data, Event):
            return data
        facts = json.loads(data)
        facts["source"] = EventSource[facts["source"]]
        return Event(**facts)

    def serialize(self):
        """JSON."""
        return json.dumps(asdict(self))


@dataclass
class RdzvEvent:
    """Something that happened in a rendezvous."""

    name: str
    run_id: str
    message: str
    hostname: str
    pid: int
    node_state: NodeState
    master_endpoint: str = ""
    rank: int | None = None
    local_id: int | None = None
    error_trace: str = ""

    def __str__(self):
        return self.serialize()

    @staticmethod
    def deserialize(data):
        """The event of a JSON text; an event stays itself."""
        if isinstance(data, RdzvEvent):
            return data
        facts = json.loads(data)
        facts["node_state"] = NodeState[facts["node_state"]]
        return RdzvEvent(**facts)

    def serialize(self):
        """JSON."""
        return json.dumps(asdict(self))
