"""Where the time of a compiled module goes, by the nodes of its engines' programs."""

import json
import re

import cresset

__all__ = ["Layer", "Profile", "profile"]

_NODE = re.compile(r"^\s*(?:(?P<results>%.*?) = )?(?P<kind>[A-Za-z_]\w*::\w+)")
_PLACE = re.compile(r"#\s*(?P<place>.+?)\s*$")


class Layer:
    """A node of an engine's program: `operator`, `result` (its first value's name), `where` (its place in the source), and `us`, microseconds of each run."""

    def __init__(self, engine, operator, result, where):
        self.engine, self.operator, self.result, self.where = engine, operator, result, where
        self.us = []

    @property
    def mean(self):
        """Microseconds a run."""
        return sum(self.us) / len(self.us) if self.us else 0.0


class Profile:
    """`layers` of all engines in the order in which they ran; `total`: microseconds of a run of the whole module, with what profiling adds; `memory`: by
    engine, the bytes of the arena that intermediate results share, and of those results together (zeros where nothing is planned)."""

    def __init__(self, layers, total, events, memory):
        self.layers, self.total, self._events, self.memory = layers, total, events, memory

    def table(self, row_limit=None) -> str:
        """The layers, the slowest first, with their share of the module's time; what runs outside of engines is the last line."""
        inside = sum(layer.mean for layer in self.layers)
        rows = sorted(self.layers, key=lambda layer: -layer.mean)[:row_limit]
        lines = [f"{'engine':10s} {'operator':32s} {'result':16s} {'us':>10s} {'share':>7s}  place"]
        share = lambda us: f"{100 * us / self.total if self.total else 0:6.1f}%"  # noqa: E731
        lines += [f"{r.engine:10s} {r.operator:32s} {r.result:16s} {r.mean:10.1f} {share(r.mean)}  {r.where}".rstrip() for r in rows]
        lines.append(f"{'':10s} {'outside of engines':32s} {'':16s} {self.total - inside:10.1f} {share(self.total - inside)}")
        lines += [f"{name:10s} {arena / 2**10:.0f} KiB of memory for {blocks / 2**10:.0f} KiB of intermediate results" for name, (arena, blocks) in self.memory.items() if arena]
        return "\n".join(lines)

    __str__ = table

    def export_chrome_trace(self, path) -> None:
        """The last run as JSON, which ui.perfetto.dev and chrome://tracing show: a track for each engine."""
        with open(path, "w", encoding="utf-8") as file:
            json.dump({"traceEvents": self._events, "displayTimeUnit": "ms"}, file)


def _layers_of(engine):
    """The nodes of a program's text that are operators, in order."""
    found = []
    for line in engine.program().splitlines():
        node = _NODE.match(line)
        if node and not node["kind"].startswith("prim::"):
            place = _PLACE.search(line)
            result = (node["results"] or "").split(":")[0].strip()
            found.append(Layer(engine.name(), node["kind"], result, place["place"] if place else ""))
    return found


def _engines_of(compiled):
    found = {}
    for line in str(compiled.graph).splitlines():  # in the order of the graph, which is that of the calls where there is no control flow
        name = re.search(r'prim::GetAttr\[name="(engine_\d+)"\]', line)
        if name:
            found.setdefault(name[1], getattr(compiled, name[1]))
    return found


def _add_run(calls, engines, events):
    """Times of one run's engines, in the order of their calls."""
    track = {name: i for i, name in enumerate(engines)}
    for (name, layers), call in zip(engines.items(), calls):
        at = 0
        for event in call.cpu_children:
            # Layers before it without an event of their own are parts of another one's, or numbers'.
            found = next((i for i in range(at, len(layers)) if layers[i].operator == event.name), None)
            if found is None:
                continue
            layer, at = layers[found], found + 1
            layer.us.append(event.cpu_time_total)
            events.append({"name": layer.operator, "cat": name, "ph": "X", "pid": 0, "tid": track[name], "ts": event.time_range.start, "dur": event.cpu_time_total,
                           "args": {"result": layer.result, "place": layer.where, "shapes": str(event.input_shapes)}})  # fmt: skip


def profile(compiled, *inputs, runs=5):
    """Runs a module that engine.compile() gave (once before, then `runs` times) and gives its Profile. ValueError for modules without engines, and for runs < 1."""
    found = _engines_of(compiled) if isinstance(compiled, cresset.jit.ScriptModule) else {}
    if not found:
        raise ValueError("profile: a module with engines, as compile() gives them, was required.")
    if runs < 1:
        raise ValueError(f"profile: at least one run was required; got {runs}.")
    engines = {name: _layers_of(engine) for name, engine in found.items()}
    totals, events = [], []
    with cresset.no_grad():
        compiled(*inputs)
        for _ in range(runs):
            with cresset.autograd.profiler.profile(record_shapes=True) as seen:
                with cresset.autograd.profiler.record_function("run"):
                    compiled(*inputs)
            events.clear()
            _add_run([e for e in seen.function_events if e.name == "cresset::execute_engine"], engines, events)
            totals.append(sum(e.cpu_time_total for e in seen.function_events if e.name == "run"))
    memory = {name: tuple(engine.memory()) for name, engine in found.items()}
    return Profile([layer for layers in engines.values() for layer in layers if layer.us], sum(totals) / len(totals), list(events), memory)
