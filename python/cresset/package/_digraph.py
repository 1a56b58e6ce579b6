"""A directed graph whose nodes have attributes; both keep the order in which they were added."""

from collections import deque

__all__ = ["DiGraph"]


class DiGraph:
    """Nodes (anything hashable) and edges between them."""

    def __init__(self):
        self._nodes = {}  # node -> attributes
        self._after, self._before = {}, {}  # node -> {neighbour: None}

    def add_node(self, n, **attributes):
        """Add a node, or attributes to one that is there."""
        self._nodes.setdefault(n, {}).update(attributes)
        self._after.setdefault(n, {})
        self._before.setdefault(n, {})

    def add_edge(self, u, v):
        """Add an edge, and its nodes where they are new."""
        self.add_node(u)
        self.add_node(v)
        self._after[u][v] = None
        self._before[v][u] = None

    def _neighbours(self, table, n):
        if n not in table:
            raise ValueError(f"The node {n} is not in the digraph.")
        return iter(table[n])

    def successors(self, n):
        return self._neighbours(self._after, n)

    def predecessors(self, n):
        return self._neighbours(self._before, n)

    @property
    def edges(self):
        """Pairs of nodes."""
        return ((u, v) for u, following in self._after.items() for v in following)

    @property
    def nodes(self):
        """The attributes of each node."""
        return self._nodes

    def __iter__(self):
        return iter(self._nodes)

    def __contains__(self, n):
        try:
            return n in self._nodes
        except TypeError:
            return False

    def _reach(self, table, start):
        seen, waiting = {start}, deque([start])
        while waiting:
            for n in self._neighbours(table, waiting.popleft()):
                if n not in seen:
                    seen.add(n)
                    waiting.append(n)
        return seen

    def forward_transitive_closure(self, src):
        """The nodes that can be reached from `src`, itself among them."""
        return self._reach(self._after, src)

    def backward_transitive_closure(self, src):
        """The nodes from which `src` can be reached, itself among them."""
        return self._reach(self._before, src)

    def first_path(self, dst):
        """Nodes from one without predecessors to `dst`, each the first predecessor of the next."""
        path, seen = [dst], {dst}
        while True:
            before = next((n for n in self._before[path[-1]] if n not in seen), None)
            if before is None:
                return path[::-1]
            path.append(before)
            seen.add(before)

    def all_paths(self, src, dst):
        """The edges of all paths from `src` to `dst` in the language of dot."""
        within = self.forward_transitive_closure(src) & self.backward_transitive_closure(dst)
        graph = DiGraph()
        for u, v in self.edges:
            if u in within and v in within:
                graph.add_edge(u, v)
        return graph.to_dot()

    def to_dot(self):
        """The graph in the language of dot."""
        edges = "\n".join(f'"{u}" -> "{v}";' for u, v in self.edges)
        return f"digraph G {{\nrankdir = LR;\nnode [shape=box];\n{edges}\n}}\n"
