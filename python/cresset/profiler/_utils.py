"""Walks over trees of events: anything with `children`."""

from collections import deque

__all__ = ["traverse_bfs", "traverse_dfs"]


def traverse_dfs(roots):
    """Each node in front of its children, these in front of its next sibling."""
    waiting = deque(roots)
    while waiting:
        node = waiting.popleft()
        yield node
        waiting.extendleft(reversed(node.children))


def traverse_bfs(roots):
    """Each node in front of all that are deeper."""
    waiting = deque(roots)
    while waiting:
        node = waiting.popleft()
        yield node
        waiting.extend(node.children)
