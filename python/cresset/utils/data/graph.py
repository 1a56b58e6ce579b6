"""What a pipe reads from, and that in turn."""

from .datapipes.datapipe import IterDataPipe, MapDataPipe, _sources

__all__ = ["traverse", "traverse_dps"]


def traverse_dps(datapipe):
    """`{id(pipe): (pipe, {id(source): (source, {…}), …})}` of a pipe: what its attributes hold. A pipe that reads from itself stands once."""

    def below(pipe, above):
        sources = {id(source): source for source in _sources(pipe)}
        return {key: (source, below(source, above | {key})) for key, source in sources.items() if key not in above}

    return {id(datapipe): (datapipe, below(datapipe, {id(datapipe)}))}


def traverse(datapipe, only_datapipe=None):
    """traverse_dps, under an older name. TypeError for what is no pipe."""
    del only_datapipe
    if not isinstance(datapipe, (IterDataPipe, MapDataPipe)):
        raise TypeError(f"Expected `IterDataPipe` or `MapDataPipe`, but {type(datapipe)} is found")
    return traverse_dps(datapipe)
