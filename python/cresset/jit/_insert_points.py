"""Where nodes are inserted, for a while."""


class InsertPointGuard:
    """In its context new nodes of the graph go in front of a node, or to the end of a block; behind it where they went before."""

    def __init__(self, graph, place):
        self.graph, self.place = graph, place

    def __enter__(self):
        self.before = self.graph.insertPoint()
        self.graph.setInsertPoint(self.place)

    def __exit__(self, *_):
        self.graph.setInsertPoint(self.before)
