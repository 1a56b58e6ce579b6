"""Objects that checkpoints ask for their state."""

from typing import Any, Dict, Protocol, TypeVar, runtime_checkable

__all__ = ["Stateful", "StatefulT"]


@runtime_checkable
class Stateful(Protocol):
    """What has `state_dict()` and `load_state_dict(state_dict)`: save and load call them."""

    def state_dict(self) -> Dict[str, Any]:
        """The state to save."""
        ...

    def load_state_dict(self, state_dict: Dict[str, Any]) -> None:
        """Take the state that was loaded."""
        ...


StatefulT = TypeVar("StatefulT", bound=Stateful)
