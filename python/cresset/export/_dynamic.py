"""Sizes that vary: a module is run at several sizes, and what differs between the graphs becomes expressions of the sizes.

A run at one size shows numbers, not where they come from. Runs at others tell a size (which changes) from a constant (which does not), and every
number that changes must follow from the sizes by a rule (`_sizes.fit`) that holds in all runs.
"""

import dataclasses
import itertools
import math
import operator

import cresset
from cresset._subclasses.unknown_values import Refused, UnknownValues
from cresset.fx.experimental.symbolic_shapes import ConstraintViolationError, GuardOnDataDependentSymNode
from cresset.utils import _pytree as pytree

from ._errors import UserError, UserErrorType
from ._sizes import SizeExpr, Symbol, ValueRanges, int_oo, remainders
from ._symbolic_graph import Difference, merged, value_symbol
from ._trace_program import argument_names, empty_of, trace
from .dynamic_shapes import Dim, DimHint, resolved

__all__ = ["trace_sizes"]

_VALUES = (3, 4, 5, 7, 11, 1, 0, 16, 64, 6, 8, 10, 32, 100)  # numbers in place of values of tensors, beside 2
_MANY = 1021  # a large size, for ranges without an end; a prime, so that it is no multiple of anything


@dataclasses.dataclass
class _Root:
    """One size that varies by itself: the places that have it, as (leaf, dimension, factor, offset)."""

    name: str | None  # of a Dim
    kind: str  # "dim", "dynamic" or "auto"
    hint: int
    lower: int
    upper: object
    places: list
    label: str  # L['x'].size()[0]
    symbol: Symbol = None

    @property
    def shown(self):
        return f"{self.name} = {self.label}" if self.name else self.label

    def fixed(self):
        """Is there one size only that may be tried?"""
        return len(self.samples()) < 2

    def change(self, factor=1, offset=0):
        """Count in other units: the size that this was is factor * size + offset."""
        self.places = [(leaf, d, f * factor, o + f * offset) for leaf, d, f, o in self.places]
        self.hint, self.lower = (self.hint - offset) // factor, -((offset - self.lower) // factor)
        self.upper = self.upper if self.upper == int_oo else (self.upper - offset) // factor

    def samples(self):
        """Sizes to try, the example's first."""
        low, high = max(self.lower, 2), self.upper
        first = self.hint if self.hint >= low else low + 3
        wanted = [first, first + 1, 2 * first + 3, low, low + 1, first + 6, high if high != int_oo else _MANY]
        return [n for n in dict.fromkeys(wanted) if low <= n <= high]


def _labels(named):
    """`L['x'][0]` for each leaf."""
    paths, _ = pytree.tree_flatten_with_path(named)
    return [f"L{pytree.keystr(path)}" for path, _ in paths]


def _roots(found, leaves, labels):
    by_dim, roots = {}, []
    for (leaf, d), dim in found.items():
        size, label = leaves[leaf].shape[d], f"{labels[leaf]}.size()[{d}]"
        if isinstance(dim, DimHint):
            kind = "auto" if dim.type is Dim.AUTO.type else "dynamic"
            if kind == "auto" and size < 2:  # such sizes broadcast, or hold nothing: they stay
                continue
            low, high = dim.min if dim.min is not None else 0 if kind == "dynamic" else 2, dim.max if dim.max is not None else int_oo
            roots.append(_Root(None, kind, size, low, high, [(leaf, d, 1, 0)], label))
            continue
        base = dim.root
        hint, rest = divmod(size - dim.offset, dim.factor)
        if rest:
            raise UserError(UserErrorType.CONSTRAINT_VIOLATION, f"Constraints violated ({base.__name__})! Expected input {label} to be of the form {dim.__name__}, got {size}.")
        if base.__name__ not in by_dim:
            if not base.min <= hint <= base.max:
                raise ConstraintViolationError(f"{hint} not in range [{base.min}, {base.max}]")
            by_dim[base.__name__] = _Root(base.__name__, "dim", hint, base.min, base.max, [], label)
            roots.append(by_dim[base.__name__])
        root = by_dim[base.__name__]
        if root.hint != hint:
            raise UserError(
                UserErrorType.CONSTRAINT_VIOLATION,
                f"Constraints violated ({base.__name__})! The values of {dim.__name__} = {label} and {root.name} = {root.label} must always be equal, got {size} and {root.hint}.",
            )
        root.places.append((leaf, d, dim.factor, dim.offset))
        if dim.factor == 1 and not dim.offset:
            root.label = label
    return roots


class _Trials:
    """Runs of the module at other sizes. The graphs are kept by sizes."""

    def __init__(self, mod, args, kwargs, names, roots, preserved):
        self.mod, self.names, self.roots, self.preserved = mod, names, roots, preserved
        self.leaves, self.spec = pytree.tree_flatten((args, kwargs))
        self._kept = {}
        self.decides = False  # by the values of the example inputs?
        self.chosen = {}  # numbers that stand for values of tensors, by their order
        self.hints = {}  # others that checks of the program name

    def settle(self, sizes):
        """The Traced at sizes, with numbers for values of tensors that its checks take."""
        tried, first = {}, None
        for number in itertools.chain((None,), _VALUES):
            if number is not None:
                self.chosen = {place: _number(kind, number) for place, kind in self._kinds.items()}
            for _ in range(20):
                try:
                    return self.at(sizes)
                except Refused as refused:
                    first, place = first or refused, refused.place
                    self.hints.setdefault(place, []).extend(refused.hints)
                    tried.setdefault(place, set()).add(self.chosen.get(place, 2))
                    self.chosen[place] = next((n for n in (*self.hints[place], *_VALUES) if n not in tried[place]), None)
                    if self.chosen[place] is None:
                        raise
                except GuardOnDataDependentSymNode:
                    raise
                except Exception as problem:  # noqa: BLE001 (whatever the module raises may come from a number)
                    first = first or problem
                    if not self._kinds:
                        raise
                    break
        raise first

    def at(self, sizes, chosen=None):
        """The Traced at {number of a root: size}, with {order: number} for values of tensors; what the module raises is raised."""
        chosen, shapes = {**self.chosen, **(chosen or {})}, {}
        for i, root in enumerate(self.roots):
            for leaf, d, factor, offset in root.places:
                shapes.setdefault(leaf, list(self.leaves[leaf].shape))[d] = factor * sizes[i] + offset
        key = tuple(tuple(shape) for shape in shapes.values()), tuple(sorted(chosen.items()))
        if key not in self._kept:
            leaves = [_with_shape(x, shapes[i]) if i in shapes and tuple(shapes[i]) != x.shape else x for i, x in enumerate(self.leaves)]
            args, kwargs = pytree.tree_unflatten(leaves, self.spec)
            values = UnknownValues(chosen)
            self._kinds = values.kinds
            self._kept[key] = trace(self.mod, args, kwargs, self.names, self.preserved, values)
            self.chosen, self.decides = {**values.chosen, **self.chosen}, values.decides
        return self._kept[key]

    def with_values(self, sizes, chosen):
        """`at`, with others of the chosen numbers where checks of the program ask for others at these sizes; they are changed in `chosen`."""
        tried = {}
        while True:
            try:
                return self.at(sizes, chosen)
            except Refused as refused:
                place = refused.place
                tried.setdefault(place, set()).add(chosen.get(place, self.chosen.get(place)))
                other = next((n for n in refused.hints if n not in tried[place]), None)
                if other is None or len(tried[place]) > 5:
                    raise
                chosen[place] = other

    def problem(self, base, sizes):
        """Why these sizes do not give the graph of the base with other numbers: text; None where they do."""
        try:
            other = self.with_values(sizes, {})
        except Exception as problem:  # noqa: BLE001 (whatever the module raises says that it does not take the size)
            return f"raises {type(problem).__name__}: {str(problem).splitlines()[0] if str(problem) else ''}"
        try:
            merged([base, other], None)
        except Difference as difference:
            return str(difference)
        return None


def _with_shape(tensor, shape):
    order = sorted(range(tensor.dim()), key=lambda d: (tensor.stride(d), tensor.shape[d]), reverse=True)
    strides, step = [0] * len(shape), 1
    for d in reversed(order):
        strides[d] = step if tensor.stride(d) else 0
        step *= max(shape[d], 1)
    if tensor.is_contiguous():
        strides = cresset.empty(shape, device="meta").stride()
    made = empty_of(tensor, shape, strides)
    made._of_another_size = True  # its values mean nothing
    return made


def _violation(roots, lines, fixes, problem="Constraints violated"):
    names = ", ".join(r.name or r.label for r in roots)
    text = f'{problem} ({names})! For more information, run with TORCH_LOGS="+dynamic".\n' + "\n".join(f"  - {line}" for line in lines)
    if fixes:
        text += "\nSuggested fixes:\n" + "\n".join(f"  {fix}" for fix in fixes)
    return UserError(UserErrorType.CONSTRAINT_VIOLATION, text)


class _Search:
    """Which roots vary by themselves, which only together, and which not at all."""

    def __init__(self, trials, roots):
        self.trials, self.roots = trials, roots
        self.base_sizes = {i: r.samples()[0] if r.samples() else r.hint for i, r in enumerate(roots)}
        self.base = trials.settle(self.base_sizes)
        self.groups, self.static = [], []  # lists of numbers of roots
        self.violations = []  # (root, lines, fixes)
        self.counted = []  # roots that count in multiples because numbers had no other rule
        self.specialized = False  # is one of them a size from which others are derived, and which must be one number?

    def _with(self, group, size):
        return {**self.base_sizes, **dict.fromkeys(group, size)}

    def _problems(self, group):
        """{size: problem} of the sizes that do not go, and how many were tried."""
        first = self.base_sizes[group[0]]
        common = [n for n in self.roots[group[0]].samples() if all(n in range(max(self.roots[i].lower, 2), 10**12) and n <= self.roots[i].upper for i in group)]
        sizes = [n for n in common if n != first]
        found = {}
        for n in sizes:
            problem = self.trials.problem(self.base, self._with(group, n))
            if problem is not None:
                found[n] = problem
        return found, len(sizes)

    def _end(self, group, good, bad):
        """The last size from `good` towards `bad` that goes, where all up to it seem to go; None where that is `good` itself."""
        first = good
        while abs(bad - good) > 1:
            middle = (good + bad) // 2
            good, bad = (middle, bad) if self.trials.problem(self.base, self._with(group, middle)) is None else (good, middle)
        return good if good != first else None

    def _ends(self, group, problems):
        """{"min": size, "max": size}: the ends of the range around the example's size that goes; those that are as the user gave them are left out."""
        first, ends = self.base_sizes[group[0]], {}
        below, above = [n for n in problems if n < first], [n for n in problems if n > first]
        if above:
            ends["max"] = self._end(group, first, min(above))
        if below:
            ends["min"] = self._end(group, first, max(below)) or (first if not above else None)
        return None if None in ends.values() else ends

    def _narrowed(self, group, problems, tried):
        """The problems that are left when the range ends where sizes stop to go; ranges that the user gave a name and wider ends are an error."""
        root = next((self.roots[i] for i in group if self.roots[i].kind == "dim"), self.roots[group[0]])
        ends = self._ends(group, problems) if problems and (root.kind == "dim" or all(self.roots[i].upper == int_oo for i in group)) else None
        if not ends:
            return problems, tried
        before = [(self.roots[i], self.roots[i].lower, self.roots[i].upper) for i in group]
        for i in group:
            self.roots[i].lower, self.roots[i].upper = ends.get("min", self.roots[i].lower), ends.get("max", self.roots[i].upper)
        left, count = self._problems(group)
        if root.kind != "dim":
            return left, count
        for one, lower, upper in before:
            one.lower, one.upper = lower, upper
        if left or not count:
            return problems, tried
        lines = [f"Not all values of {root.shown} in the specified range satisfy the generated guard: at {n} it {why}" for n, why in problems.items()]
        limits = {"min": root.lower or None, "max": root.upper if root.upper != int_oo else None, **ends}
        shown = "".join(f", {k}={v}" for k, v in limits.items() if v is not None)
        self.violations.append((root, lines, [f"{root.name} = Dim('{root.name}'{shown})"]))
        return {}, tried

    def run(self):
        alone = []
        for i, root in enumerate(self.roots):
            problems, tried = self._narrowed([i], *self._problems([i])) if not root.fixed() else ({}, 0)
            if tried and not problems:
                self.groups.append([i])
            else:
                alone.append((i, problems, tried))
        while alone:
            (i, problems, tried), *rest = alone
            together = self._partners(i, [j for j, _, _ in rest])
            if together is not None:
                self.groups.append(together)
                alone = [entry for entry in rest if entry[0] not in together]
                self._check_names(together)
                continue
            alone = rest
            linked = self._linked(i, [j for j, _, _ in rest])
            if linked is not None:
                alone = [entry for entry in rest if entry[0] not in linked]
            elif not self._multiple(i, problems):
                self._give_up(i, problems, tried)
        if self.violations:
            roots, lines, fixes = zip(*self.violations)
            raise _violation(roots, sum(lines, []), sum(fixes, []), "Specializations unexpectedly required" if self.specialized else "Constraints violated")
        self.groups.sort()

    def _partners(self, i, others):
        """A group with others of the same size that goes: few are tried first, as those that need not vary together should not."""
        same = [j for j in others if self.base_sizes[j] == self.base_sizes[i]]
        for count in (*range(1, min(4, len(same) + 1)), *range(len(same), 3, -1)):
            for group in itertools.islice(itertools.combinations(same, count), 20):
                if self._goes([i, *group]):
                    return [i, *group]
        return None

    def _goes(self, group):
        """Do all sizes go? One is tried first."""
        first = self.base_sizes[group[0]]
        if self.trials.problem(self.base, self._with(group, first + 1)) is not None:
            return False
        found, tried = self._narrowed(group, *self._problems(group))
        return bool(tried and not found)

    def _linked(self, i, others):
        """The group with another root whose size is always greater or less by the same, counted by the less; None without such."""
        near = sorted((j for j in others if 0 < abs(self.base_sizes[j] - self.base_sizes[i]) <= 16), key=lambda j: abs(self.base_sizes[j] - self.base_sizes[i]))
        for j in near[:4]:
            less, more = sorted((i, j), key=lambda r: self.base_sizes[r])
            root, by = self.roots[more], self.base_sizes[more] - self.base_sizes[less]
            before = dataclasses.replace(root)
            root.change(offset=by)
            self.base_sizes[more] -= by
            same = [k for k in others if k != j and self.base_sizes[k] == self.base_sizes[less]]
            group = [less, more] if self._goes([less, more]) else self._partners(less, [k for k in (i, j, *same) if k != less]) if same else None
            if group is not None and more in group:
                self.groups.append(group)
                self._check_names([k for k in group if k != more])
                if root.kind == self.roots[less].kind == "dim":
                    line = f"The values of {root.shown} and {self.roots[less].shown} + {by} must always be equal."
                    self.violations.append((root, [line], [f"{root.name} = {self.roots[less].name} + {by}"]))
                return group
            self.roots[more].__dict__.update(vars(before))
            self.base_sizes[more] += by
        return None

    def _multiple(self, i, problems):
        """Do the multiples of a number go? The root counts those then."""
        root, size = self.roots[i], self.base_sizes[i]
        fine = [n for n in root.samples() if n not in problems]
        for factor in (2, 3, 4, 5, 8):
            if size % factor or size == factor or any(n % factor for n in fine) or not any(n % factor for n in problems):
                continue
            before, named, said = dataclasses.replace(root), root.name, len(self.violations)
            root.change(factor)
            root.name = f"_{named}" if named else None
            self.base_sizes[i] //= factor
            if self._goes([i]):
                self.groups.append([i])
                if root.kind == "dim":
                    fixes = [fix for _, _, known in self.violations[said:] for fix in known]
                    del self.violations[said:]
                    line = f"Not all values of {before.shown} in the specified range satisfy the generated guard: they must be multiples of {factor}"
                    self.violations.append((before, [line], [*fixes, f"{named} = {factor}*{root.name}"]))
                return True
            self.roots[i].__dict__.update(vars(before))
            self.base_sizes[i] *= factor
        return False

    def _check_names(self, group):
        named = [self.roots[i] for i in group if self.roots[i].kind == "dim"]
        for one, other in ((one, named[0]) for one in named[1:]):
            line = f"The values of {one.shown} and {other.shown} must always be equal."
            self.violations.append((one, [line], [f"{one.name} = {other.name}"]))

    def _give_up(self, i, problems, tried):
        root = self.roots[i]
        if root.kind == "auto":
            self.static.append(i)
            return
        if len(problems) == tried:
            reason = f" At {next(iter(problems))} it {next(iter(problems.values()))}" if problems else ""
            line = (
                f"You marked {root.name or root.label} as dynamic but your code specialized it to be a constant ({root.hint}). If you're using mark_dynamic, "
                f"either remove it or use maybe_mark_dynamic. If you're using Dim.DYNAMIC, replace it with either Dim.STATIC or Dim.AUTO.{reason}"
            )
            derived = next(((leaf, d, f, o) for leaf, d, f, o in root.places if (f, o) != (1, 0)), None)
            if derived is not None and root.name:
                leaf, d, factor, offset = derived
                name = (f"{factor}*{root.name}" if factor != 1 else root.name) + (f" {'+' if offset > 0 else '-'} {abs(offset)}" if offset else "")
                line = f"solving the guards generated for {name} of {root.shown} resulted in a specialized value of {factor * root.hint + offset}.{reason}"
                self.specialized = True
            self.violations.append((root, [line], [f"{root.name} = {root.hint}"] if root.name else []))
            return
        lines = [f"Not all values of {root.shown} in the specified range satisfy the generated guard: at {n} it {why}" for n, why in problems.items()]
        self.violations.append((root, lines, []))


def trace_sizes(mod, args, kwargs, names, dynamic_shapes, preserved=()):
    """(Traced, {symbol: ValueRanges}) of a module whose inputs' sizes vary as dynamic_shapes says; preserved as in `trace`."""
    named = argument_names(mod, args, kwargs)
    leaves = pytree.tree_leaves(named)
    found = {} if dynamic_shapes is None else resolved(mod, args, kwargs, dynamic_shapes, named)
    roots = _roots(found, leaves, _labels(named))
    trials = _Trials(mod, args, kwargs, names, roots, preserved)
    search = _Search(trials, roots)
    search.run()
    return _finished(trials, search)


def _finished(trials, search):
    if search.static:
        search.base_sizes.update({i: trials.roots[i].hint for i in search.static})
        search.base = trials.at(search.base_sizes)
    if not search.groups and not search.base.values:
        return search.base, {}
    return _generalised(trials, search)


def _number(kind, number):
    return number + 0.5 if kind is float else number % 2 if kind is bool else number


def _value_symbol(place, kind):
    return Symbol(f"{'zuf' if kind is float else 'u'}{place}")


def _values_that_go(trials, search, place, kind):
    """Numbers for a value with which the program is the same, the base's first. GuardOnDataDependentSymNode where others make it another program."""
    first = trials.chosen[place]
    wanted = [*trials.hints.get(place, ()), *(_number(kind, n) for n in (int(first) + 1, 2 * int(first) + 3, *_VALUES))]
    if kind is bool:
        wanted = [1 - first]
    found, asserted = [first], False
    for number in dict.fromkeys(n for n in wanted if n != first):
        chosen = {place: number}
        try:
            other = trials.with_values(search.base_sizes, chosen)
        except GuardOnDataDependentSymNode:
            raise
        except Exception:  # noqa: BLE001 (the program does not take the number)
            continue
        if chosen[place] != number:
            asserted = True
            continue
        try:
            merged([search.base, other], None)
        except Difference as difference:
            if trials.decides:  # by assertions
                asserted = True
                continue
            raise GuardOnDataDependentSymNode(
                f"Could not guard on data-dependent expression: where {_value_symbol(place, kind)} is {number} instead of {first} the program {difference}"
            ) from None
        found.append(number)
        if len(found) == 5:
            break
    if len(found) == 1 and not asserted:  # what is asserted to equal others varies with them
        raise GuardOnDataDependentSymNode(
            f"Could not guard on data-dependent expression: the program takes no other value of a tensor than {first} for {_value_symbol(place, kind)} that was "
            "tried. Say with torch._check which there may be."
        )
    return found


def _run_at(trials, search, symbols, sample):
    roots, groups, sizes = trials.roots, search.groups, dict(search.base_sizes)
    for symbol, group in zip(symbols, groups):
        sizes.update(dict.fromkeys(group, sample[symbol]))
    places = {place: _value_symbol(place, kind) for place, kind in search.base.values.items()}
    chosen = {place: sample[s] for place, s in places.items()}
    try:
        run = trials.with_values(sizes, chosen)
        sample.update((s, chosen[place]) for place, s in places.items())
        return run
    except Exception as problem:
        shown = ", ".join(f"{roots[g[0]].shown} is {sample[s]}" for s, g in zip(symbols, groups))
        line = f"The program does not take all sizes together: where {shown} it raises {type(problem).__name__}: {problem}"
        raise _violation([roots[g[0]] for g in groups], [line], []) from problem


def _add_together(trials, search, symbols, values, samples, runs):
    """Runs where values and sizes are others at once, as far as the program takes them together."""
    options = {**{s: list(dict.fromkeys(sample[s] for sample in samples)) for s in symbols}, **values}
    if not values or len(options) < 2:
        return
    for shift in range(1, 5):
        sample = {s: numbers[(shift + k) % len(numbers)] for k, (s, numbers) in enumerate(options.items())}
        try:
            run = _run_at(trials, search, symbols, sample)
            merged([runs[0], run], None)
        except Exception:  # noqa: BLE001 (the program does not take them together)
            continue
        samples.append(sample)
        runs.append(run)


def _most(node, ranges):
    """How many elements the result of an operator has at most whose first size depends on values."""
    chooser = node.args[1][0] if str(node.target) == "aten.index.Tensor" else node.args[0]
    bounds = [ranges[s].upper if isinstance(e, SizeExpr) and (s := e.symbol) in ranges else int_oo if isinstance(e, SizeExpr) else e for e in chooser.meta.get("sizes") or chooser.meta["val"].shape]
    return int_oo if int_oo in bounds else math.prod(bounds)


def value_ranges(graph, ranges):
    """{symbol: ValueRanges}: those of sizes, and of the whole numbers that stand for values of tensors, from the assertions of the graph."""
    found = dict(ranges)
    for node in graph.nodes:
        if "value" in node.meta and not isinstance(node.meta["val"], float):
            symbol = value_symbol(node)
            found.setdefault(symbol, ValueRanges(0, _most(node, ranges)) if isinstance(node.meta["val"], cresset.Tensor) else ValueRanges(-int_oo, int_oo))
        number, limit = (*node.args, None, None)[:2] if node.op == "call_function" else (None, None)
        expression = number.meta.get("expression") if isinstance(number, cresset.fx.Node) else None
        if node.target in _LIMITS and isinstance(limit, int) and expression is not None and expression.symbol in found:
            low, high = _LIMITS[node.target](limit)
            known = found[expression.symbol]
            found[expression.symbol] = ValueRanges(max(known.lower, low), min(known.upper, high))
    return found


_LIMITS = {
    operator.ge: lambda n: (n, int_oo), operator.gt: lambda n: (n + 1, int_oo), operator.le: lambda n: (-int_oo, n), operator.lt: lambda n: (-int_oo, n - 1),
    operator.eq: lambda n: (n, n),
}  # fmt: skip


def _in_multiples(trials, search):
    """Where numbers have no rule: does the size count in multiples of 2, 3 or 4, of which one half of the program is? Each root is tried once."""
    for group in search.groups:
        root = trials.roots[group[0]]
        factor = next((f for f in (2, 3, 4) if search.base_sizes[group[0]] % f == 0 and search.base_sizes[group[0]] > f), None)
        if len(group) == 1 and root.kind != "dim" and factor is not None and root not in search.counted:
            search.counted.append(root)
            root.change(factor)
            search.base_sizes[group[0]] //= factor
            return True
    return False


def _generalised(trials, search):
    roots, groups, ranges = trials.roots, search.groups, {}
    symbols = [Symbol(f"s{number}") for number in range(len(groups))]
    for symbol, group in zip(symbols, groups):
        lower, upper = max(roots[i].lower for i in group), min((roots[i].upper for i in group), key=float)
        ranges[symbol] = ValueRanges(lower, upper)
        for i in group:
            roots[i].symbol = symbol
    samples = [{s: search.base_sizes[g[0]] for s, g in zip(symbols, groups)}]
    options = [[n for n in roots[g[0]].samples() if ranges[s].lower <= n <= ranges[s].upper] for s, g in zip(symbols, groups)]
    for symbol, sizes in zip(symbols, options):
        samples += [{**samples[0], symbol: n} for n in sizes if n != samples[0][symbol]]
    if len(symbols) > 1:  # together: all at their k-th choice
        for shift in range(3):
            samples.append({s: sizes[(shift + 1 + k) % len(sizes)] for k, (s, sizes) in enumerate(zip(symbols, options))})
    values = {_value_symbol(place, kind): _values_that_go(trials, search, place, kind) for place, kind in search.base.values.items()}
    for sample in samples:
        sample.update((s, numbers[0]) for s, numbers in values.items())
    samples += [{**samples[0], s: n} for s, numbers in values.items() for n in numbers[1:]]
    inputs = {}
    for root in roots:
        if root.symbol is not None:
            for leaf, d, factor, offset in root.places:
                inputs[leaf, d] = SizeExpr(((factor, (root.symbol,)),), offset)
    try:
        runs = [_run_at(trials, search, symbols, sample) for sample in samples]
        _add_together(trials, search, symbols, values, samples, runs)
        found = merged(runs, samples, inputs)
        for sample in remainders(found.divisors, samples, ranges):  # a quotient is known when it holds for all of them
            try:
                runs.append(_run_at(trials, search, symbols, sample))
                samples.append(sample)
            except UserError:
                if all(sample[s] == samples[0][s] for s in values):  # a check may refuse values
                    raise
        found = merged(runs, samples, inputs) if found.divisors else found
        found.samples = values
        return found, value_ranges(found.graph, ranges)
    except Difference as difference:
        if _in_multiples(trials, search):
            return _generalised(trials, search)
        if optional := [g for g in groups if all(roots[i].kind == "auto" for i in g)]:  # they stay as they are
            search.static += (i for g in optional for i in g)
            search.groups = [g for g in groups if g not in optional]
            return _finished(trials, search)
        if not groups:
            raise GuardOnDataDependentSymNode(f"Could not guard on data-dependent expression: the program {difference}") from None
        raise _violation([roots[g[0]] for g in groups], [str(difference)], []) from None
