"""Graphs of one program at several sizes, as one graph with nodes for what differs."""

import copy
import dataclasses
import operator

import cresset
from cresset import fx

from ._read_sizes import size_of_text
from ._sizes import FloatExpr, RoundedExpr, SizeExpr, Symbol, fit, fit_float, fit_rounded
from ._symbolic_values import SizeNumber, with_sizes
from ._trace_program import Traced
from .graph_signature import ConstantArgument, CustomObjArgument, OutputSpec, SymIntArgument, TensorArgument

__all__ = ["Difference", "merged"]


_EXPRESSIONS = (SizeExpr, FloatExpr, RoundedExpr)


class Difference(Exception):
    """Two graphs differ in more than whole numbers, or in numbers without a rule; says how."""


def _leaves(value, found):
    """The leaves of arguments in order, containers by their kind and length."""
    if isinstance(value, (list, tuple)):
        found.append((list if isinstance(value, list) else tuple, len(value)))
        for item in value:
            _leaves(item, found)
    elif isinstance(value, dict):
        found.append((dict, tuple(value)))
        for item in value.values():
            _leaves(item, found)
    elif isinstance(value, slice):
        found.append((slice, 3))
        for item in (value.start, value.stop, value.step):
            _leaves(item, found)
    else:
        found.append(value)
    return found


def _flat(node):
    return _leaves((node.args, dict(node.kwargs)), [])


def _is_number(value):
    return type(value) in (int, float)


def _is_assertion(node):
    return node.target is cresset.ops.aten._assert_scalar.default


def _where(node):
    text = f"the operator {node.target}" if node.op == "call_function" else "the result"
    stack = node.meta.get("stack_trace")
    line = stack.strip().splitlines() if stack else None
    at = next((part.strip() for part in reversed(line or ()) if part.strip().startswith("File ")), None)
    return f"{text} ({at})" if at else text


class _Merging:
    def __init__(self, runs, samples):
        self.runs, self.samples = runs, samples
        self.columns = [list(run.graph.nodes) for run in runs]
        self.divisors = {}  # of the symbols in quotients: {symbol: the greatest}

    def _rule(self, values, node):
        """The number or expression of the numbers of all runs."""
        if self.samples is None or all(_equal(v, values[0]) for v in values):
            return values[0]
        found = fit_float(self.samples, values) if type(values[0]) is float else fit(self.samples, values)
        if found is None and type(values[0]) is int:
            found = fit_rounded(self.samples, values)
        if found is None:
            shown = ", ".join(f"{v} at {dict(s)}" for v, s in zip(values[:4], self.samples))
            raise Difference(f"has a number at {_where(node)} that does not follow from the sizes by a rule that export finds: {shown}")
        self._note_quotient(found)
        return found

    def _note_quotient(self, found):
        divisor = found.number.divisor if isinstance(found, RoundedExpr) else found.divisor if isinstance(found, SizeExpr) else 1
        if divisor != 1:
            for symbol in found.symbols():
                self.divisors[symbol] = max(divisor, self.divisors.get(symbol, 1))

    def check_forms(self):
        _check_forms(self.columns)

    def varying(self):
        """{name: [rule of each element]} of constant tensors that are others in each run, as `torch.tensor(x.shape[0])` is. Difference for those without a rule."""
        found = {}
        for name, first in self.runs[0].constants.items():
            others = [run.constants.get(name) for run in self.runs[1:]]
            if all(other is first or _same_form(other, first) and cresset.equal(other, first) for other in others):
                continue
            words = f"makes another constant tensor ({name}): its value follows from the size; compute it with operators (torch.full, torch.arange)"
            if first.numel() > 64 or first.dtype not in _EXACT or not all(_same_form(other, first) for other in others):
                raise Difference(words)
            if self.samples is not None:
                columns = zip(*(t.flatten().tolist() for t in (first, *others)))
                found[name] = [fit_float(self.samples, v, _EXACT[first.dtype]) if first.is_floating_point() else fit(self.samples, v) for v in map(list, columns)]
                if None in found[name]:
                    raise Difference(words)
                for rule in found[name]:
                    self._note_quotient(rule)
        return found

    def check_calls(self):
        """Signatures of modules hold tensors' nodes, and no numbers that follow from the sizes."""
        def constants(call):
            return [leaf if not isinstance(leaf, fx.Node) else leaf.name for leaf in (*call.inputs, *call.outputs)]

        for run in self.runs[1:]:
            for name, call in run.calls.items():
                if constants(call) != constants(self.runs[0].calls[name]):
                    raise Difference(f"calls the module {name} with numbers that follow from the sizes, so its signature cannot be preserved")

    def arguments(self, nodes):
        """{place among the leaves: expression} of one node's arguments; Difference where others than whole numbers differ."""
        first, *others = [_flat(n) for n in nodes]
        found, numbers = {}, 0
        for other in others:
            if len(other) != len(first):
                raise Difference(f"gives {_where(nodes[0])} other arguments: code decides by the size")
        for place, values in enumerate(zip(first, *others)):
            a = values[0]
            for b in values[1:]:
                same = a.name == b.name if isinstance(a, fx.Node) and isinstance(b, fx.Node) else type(a) is type(b) and (_is_number(a) or _equal(a, b))
                if not same and not (_is_assertion(nodes[0]) and isinstance(a, str)):  # the text has numbers of its run
                    raise Difference(f"gives {_where(nodes[0])} {b!r} instead of {a!r}, which is no whole number that could follow from the size")
            if _is_number(a):
                rule = self._asserted(list(values), nodes[0], numbers) or self._rule(list(values), nodes[0])
                numbers += 1
                if isinstance(rule, _EXPRESSIONS):
                    found[place] = rule
        return found

    def _asserted(self, values, node, number):
        """The expression of one of the two numbers of an assertion as the program has it: what is asserted may be the same in all runs."""
        texts = node.meta.get("asserted")
        if texts is None or self.samples is None or number > 1 or texts[number] is None:
            return None
        found = size_of_text(texts[number])
        known = isinstance(found, SizeExpr) and found.symbols() <= self.samples[0].keys()
        return found if known and all(found.value(sample) == v for sample, v in zip(self.samples, values)) else None

    def sizes(self, nodes):
        """Sizes of the tensors of one node's value in meta["sizes"]: a tuple, or a list of tuples for several tensors; None without symbols."""
        shapes = [_shapes(n.meta.get("val")) for n in nodes]
        if shapes[0] is None or any(s is None or len(s) != len(shapes[0]) for s in shapes):
            return None
        result = []
        for parts in zip(*shapes):
            if any(len(p) != len(parts[0]) for p in parts):
                raise Difference(f"gives a result of other dimensions at {_where(nodes[0])}")
            result.append(tuple(fit(self.samples, list(numbers)) for numbers in zip(*parts)))
        if all(isinstance(n, int) for sizes in result for n in sizes):
            return None
        return result[0] if isinstance(nodes[0].meta["val"], cresset.Tensor) else result


def _check_forms(columns):
    first = columns[0]
    for column in columns[1:]:
        for a, b in zip(first, column):
            if (a.op, a.target) != (b.op, b.target):
                raise Difference(f"runs {_where(b)} where it ran {_where(a)} before: code decides by the size")
        if len(column) != len(first):
            raise Difference(f"runs {len(column)} operators instead of {len(first)}: code decides by the size")


_EXACT = {cresset.int64: 0, cresset.int32: 0, cresset.float64: 1e-15, cresset.float32: 1e-7}  # dtypes of constants that may follow from sizes, and how near numbers are


def _same_form(a, b):
    return a is not None and (a.shape, a.dtype, a.device, a.layout) == (b.shape, b.dtype, b.device, b.layout)


def _bare(number):
    return float(number) if isinstance(number, float) else int(number)


def _equal(a, b):
    return bool(a is b or a == b)


def _shapes(value):
    if isinstance(value, cresset.Tensor):
        return [tuple(value.shape)]
    if isinstance(value, (list, tuple)):
        return [tuple(t.shape) for t in value if isinstance(t, cresset.Tensor)]
    return None


class _Building:
    """The new graph: sizes are read at its start where they are used, and numbers are computed in front of their use."""

    def __init__(self, sources, sizes=()):
        self.graph, self.nodes, self.made = fx.Graph(), {}, {}
        self.sources = sources  # {symbol: (placeholder of the old graph, dimension, what the size is: factor * symbol + offset)}
        self.varying = {}  # {placeholder of a constant of the old graph: the numbers of its elements}
        self.sizes = dict(sizes)  # {expression: (placeholder, dimension)} of what is not computed

    def _call(self, function, args, expression, name):
        node = self.graph.create_node("call_function", function, args, {}, name=name)
        values = [a.meta["val"] if isinstance(a, fx.Node) else a for a in args]
        node.meta["val"] = int(values[0].shape[values[1]]) if function is cresset.ops.aten.sym_size.int else function(*map(_bare, values))
        self._expressed(node, expression)
        return node

    def _expressed(self, node, expression):
        node.meta["expression"] = expression
        if expression is not None and not isinstance(node.meta["val"], float):
            node.meta["val"] = SizeNumber(node.meta["val"], expression)

    def constant(self, old):
        """The node in place of a constant whose elements follow from sizes."""
        value, aten = old.meta["val"], cresset.ops.aten
        options = {"dtype": value.dtype, "device": value.device, "pin_memory": False}
        parts = [self._tensor(aten.scalar_tensor.default, (self.number(n),), options, value.new_empty(())) for n in self.varying[old]]
        whole = parts[0] if not value.dim() else self._tensor(aten.stack.default, (parts,), {}, value.new_empty(len(parts)))
        if value.dim() > 1:
            whole = self._tensor(aten.view.default, (whole, list(value.shape)), {}, value)
        self.nodes[old] = whole
        return whole

    def _tensor(self, op, args, kwargs, value):
        node = self.graph.create_node("call_function", op, args, kwargs, name=op.name().partition("::")[2].partition(".")[0])
        node.meta["val"] = value
        return node

    def symbol(self, symbol):
        """The node of a symbol."""
        placeholder, d, size = self.sources[symbol]
        node = self.made[size] = self._call(cresset.ops.aten.sym_size.int, (self.nodes[placeholder], d), size, "sym_size_int")
        if size.symbol is None:
            (factor, _), *_ = size.terms
            node = self._moved(node, -size.inner - size.outer)
            node = self._call(operator.floordiv, (node, factor), None, "floordiv") if factor != 1 else node
            self._expressed(node, SizeExpr.of(symbol))
        return node

    def value(self, node, symbol, used):
        """Note the node that a value comes from: a number itself, or a tensor that has so many elements."""
        expression = SizeExpr.of(symbol)
        if not isinstance(node.meta["val"], cresset.Tensor):
            self._expressed(node, expression)
            self.made.setdefault(expression, node)
        elif symbol in used:
            self.made[expression] = self._call(cresset.ops.aten.sym_size.int, (node, 0), expression, "sym_size_int")

    def number(self, expression):
        """The node of an expression; the number itself for numbers."""
        if isinstance(expression, (int, float)):
            return expression
        if isinstance(expression, FloatExpr):
            return self._float(expression)
        if isinstance(expression, RoundedExpr):
            return self._call(round, (self._float(expression.number),), None, "round")
        if expression in self.made:
            return self.made[expression]
        if expression in self.sizes:
            placeholder, d = self.sizes[expression]
            self.made[expression] = self._call(cresset.ops.aten.sym_size.int, (self.nodes[placeholder], d), expression, "sym_size_int")
            return self.made[expression]
        total = None
        for coefficient, symbols in expression.terms:
            term = self.made[SizeExpr.of(symbols[0])]
            for s in symbols[1:]:
                term = self._call(operator.mul, (term, self.made[SizeExpr.of(s)]), None, "mul")
            if coefficient != 1:
                term = self._call(operator.mul, (term, coefficient), None, "mul")
            total = term if total is None else self._call(operator.add, (total, term), None, "add")
        total = self._moved(total, expression.inner)
        if expression.divisor != 1:
            total = self._call(operator.floordiv, (total, expression.divisor), None, "floordiv")
        if expression.factor != 1:
            total = self._call(operator.mul, (total, expression.factor), None, "mul")
        total = self._moved(total, expression.outer)
        self._expressed(total, expression)
        self.made[expression] = total
        return total

    def _float(self, expression):
        number, divisor, power = self.number(expression.size), expression.divisor, expression.power
        if power == -1:
            number = self._call(operator.truediv, (divisor, number), expression, "truediv")
        elif divisor != 1 or power == 1:
            number = self._call(operator.truediv, (number, divisor), expression, "truediv")
        if abs(power) == 0.5:
            number = self._call(cresset._sym_sqrt, (number,), dataclasses.replace(expression, power=0.5), "_sym_sqrt")
        if power == -0.5:
            number = self._call(operator.truediv, (1, number), expression, "truediv")
        return number

    def _moved(self, node, by):
        if not by:
            return node
        return self._call(operator.add if by > 0 else operator.sub, (node, abs(by)), None, "add" if by > 0 else "sub")


def _rebuilt(value, rules, count, change):
    """The value with expressions' nodes at their places, nodes changed; count: [next place]."""
    place = count[0]
    count[0] += 1
    if isinstance(value, (list, tuple)):
        items = [_rebuilt(v, rules, count, change) for v in value]
        return items if isinstance(value, list) else tuple(items)
    if isinstance(value, dict):
        return {k: _rebuilt(v, rules, count, change) for k, v in value.items()}
    if isinstance(value, slice):
        return slice(*(_rebuilt(v, rules, count, change) for v in (value.start, value.stop, value.step)))
    return change(rules.get(place, value))


def merged(runs, samples, inputs=None):
    """The Traced of all runs. samples: {symbol: size} of each run; without it the forms of the graphs are compared, and nothing is built.

    inputs: {(leaf of the user's inputs, dimension): SizeExpr}.
    """
    merging = _Merging(runs, samples)
    merging.check_forms()
    varying = merging.varying()
    inner = merged_functions(merging, [run.inner for run in runs])
    rules = [merging.arguments(nodes) for nodes in zip(*merging.columns)]
    if samples is None:
        return None
    merging.check_calls()
    base, columns = runs[0], merging.columns
    placeholders = [n for n in columns[0] if n.op == "placeholder"]
    users = placeholders[len(base.inputs) - sum(s.target is None for s in base.inputs) :]
    sources = {}
    for (leaf, d), expression in sorted(inputs.items(), key=lambda item: item[1].symbol is None):  # sizes by themselves first
        for symbol in expression.symbols():
            sources.setdefault(symbol, (users[leaf], d, expression))
    building = _Building(sources)
    named = {spec.target: node for spec, node in zip(base.inputs, placeholders) if spec.target in varying}
    building.varying = {named[name]: numbers for name, numbers in varying.items()}
    numbers = (n for found in varying.values() for n in found if isinstance(n, _EXPRESSIONS))
    used = {s for e in (*(e for rule in rules for e in rule.values()), *numbers) for s in e.symbols()}
    return _build(base, merging, rules, building, users, inputs, used, inner)


def _nodes(building, merging, columns, rules, used):
    """Builds the nodes of one graph: (old node, arguments, new node), the output's last, without a new node."""
    pending = True
    for position, node in enumerate(columns[0]):
        if pending and node.op != "placeholder":
            pending = False
            for symbol in building.sources:
                if symbol in used:
                    building.made[SizeExpr.of(symbol)] = building.symbol(symbol)
        if node in building.varying:
            continue
        change = lambda v: (building.nodes.get(v) or building.constant(v)) if isinstance(v, fx.Node) else building.number(v) if isinstance(v, _EXPRESSIONS) else v  # noqa: E731
        args, kwargs = _rebuilt((node.args, dict(node.kwargs)), rules[position], [0], change)
        if node.op == "output":
            building.graph.output(args[0])
            yield node, args, None
            continue
        new = building.graph.create_node(node.op, node.target, tuple(args), kwargs, name=_wish(node))
        new.meta = copy.copy(node.meta)
        sizes = merging.sizes([column[position] for column in columns])
        if sizes is not None:
            new.meta["sizes"], new.meta["val"] = sizes, with_sizes(new.meta["val"], sizes)
        building.nodes[node] = new
        if merging.samples is not None and "value" in new.meta:
            building.value(new, value_symbol(new), used)
        if _is_assertion(new) and isinstance(new.args[0], fx.Node):
            new.update_arg(1, _assertion_text(new.args[0]))
        yield node, args, new


_WORDS = {operator.lt: "<", operator.le: "<=", operator.gt: ">", operator.ge: ">=", operator.eq: "==", operator.ne: "!="}


def _assertion_text(compared):
    shown = [str(a.meta.get("expression", a)) if isinstance(a, fx.Node) else str(a) for a in compared.args]
    return f"Runtime assertion failed for expression {shown[0]} {_WORDS[compared.target]} {shown[1]} on node '{compared.name}'"


def value_symbol(node):
    """The symbol of the value that a node asks for."""
    return Symbol(f"{'zuf' if isinstance(node.meta['val'], float) else 'u'}{node.meta['value']}")


def merged_functions(merging, functions):
    """{name: graph module} of branches and loops; functions: that of each run."""
    if any(set(f) != set(functions[0]) for f in functions[1:]):
        raise Difference("gives torch.cond, torch.while_loop or scan other functions: code decides by the size")
    return {name: _merged_function(merging, [f[name] for f in functions]) for name in functions[0]}


def _merged_function(merging, modules):
    """One of them: its numbers follow from the sizes of the tensors that it gets."""
    children = merged_functions(merging, [{n: c for n, c in m.named_children() if isinstance(c, fx.GraphModule)} for m in modules])
    columns = [list(m.graph.nodes) for m in modules]
    _check_forms(columns)
    rules = [merging.arguments(nodes) for nodes in zip(*columns)]
    if merging.samples is None or not any(rules) and all(c is getattr(modules[0], n) for n, c in children.items()):
        return modules[0]
    building = _Building(*_sources(merging, columns))
    used = {s for rule in rules for e in rule.values() if e not in building.sizes for s in e.symbols()}
    missing = used - set(building.sources) - {value_symbol(n) for n in columns[0] if "value" in n.meta}
    if missing:
        words = f"gives torch.cond, torch.while_loop or scan a function with a number that follows from {', '.join(sorted(missing))}, which is no size of a tensor that it gets"
        raise Difference(words)
    for _ in _nodes(building, merging, columns, rules, used):
        pass
    root = cresset.nn.Module()
    for name, child in children.items():
        setattr(root, name, child)
    return fx.GraphModule(root, building.graph, type(modules[0]).__name__)


def _sources(merging, columns):
    """{symbol: (placeholder, dimension, what the size is)} of a function's operands, sizes by themselves first, and {size: (placeholder, dimension)}."""
    found = []
    for nodes in zip(*columns):
        if nodes[0].op == "placeholder":
            sizes = merging.sizes(nodes) or ()
            found += [(e.symbol is None, nodes[0], d, e) for d, e in enumerate(sizes) if isinstance(e, SizeExpr)]
    sources, known = {}, {}
    for _, node, d, e in sorted(found, key=lambda f: f[0]):
        known.setdefault(e, (node, d))
        if len(e.terms) == e.divisor == e.factor == 1 and len(e.terms[0][1]) == 1:
            sources.setdefault(e.terms[0][1][0], (node, d, e))
    return sources, known


def _build(base, merging, rules, building, users, inputs, used, inner):
    result = Traced()
    gone = {spec.target for spec in base.inputs if spec.arg.name in {node.name for node in building.varying}}
    result.called, result.out_spec = base.called, base.out_spec
    result.inputs, result.constants = [s for s in base.inputs if s.target not in gone or s.target is None], {k: t for k, t in base.constants.items() if k not in gone}
    result.inner, result.divisors = inner, merging.divisors
    for node, args, new in _nodes(building, merging, merging.columns, rules, used):
        if new is None:
            result.outputs = _outputs(base.outputs, args[0])
    for leaf, node in enumerate(users):
        shape = node.meta["val"].shape if isinstance(node.meta.get("val"), cresset.Tensor) else ()
        if any((leaf, d) in inputs for d in range(len(shape))):
            sizes = tuple(inputs.get((leaf, d), n) for d, n in enumerate(shape))
            building.nodes[node].meta |= {"sizes": sizes, "val": with_sizes(node.meta["val"], sizes)}
    result.graph = building.graph
    result.calls = {name: call.changed(lambda leaf: building.nodes[leaf] if isinstance(leaf, fx.Node) else leaf) for name, call in base.calls.items()}
    return result


def _wish(node):
    """The name to ask for: that of the target, so that nodes are numbered anew."""
    if node.op == "placeholder":
        return node.name
    stem, _, number = node.name.rpartition("_")
    return stem if stem and number.isdigit() and node.op == "call_function" else node.name


def _outputs(specs, values):
    found = []
    for spec, value in zip(specs, values):
        if not isinstance(value, fx.Node):
            argument = ConstantArgument("", value)
        elif isinstance(spec.arg, CustomObjArgument):
            argument = dataclasses.replace(spec.arg, name=value.name)
        elif "expression" in value.meta:
            argument = SymIntArgument(value.name)
        else:
            argument = TensorArgument(value.name)
        found.append(OutputSpec(spec.kind, argument, spec.target))
    return found
