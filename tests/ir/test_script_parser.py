"""The parser of scripts: its trees against those of Python's own parser, and the words of syntax errors."""

import ast
import textwrap
import time
from pathlib import Path

import cresset
import pytest

ROOT = Path(__file__).resolve().parents[2]
OPERATORS = {
    ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.FloorDiv: "//", ast.Mod: "%", ast.Pow: "**", ast.MatMult: "@",
    ast.LShift: "<<", ast.RShift: ">>", ast.BitAnd: "&", ast.BitOr: "|", ast.BitXor: "^", ast.USub: "-", ast.UAdd: "+",
    ast.Invert: "~", ast.Not: "not", ast.And: "and", ast.Or: "or", ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=",
    ast.Eq: "==", ast.NotEq: "!=", ast.Is: "is", ast.IsNot: "is not", ast.In: "in", ast.NotIn: "not in",
}  # fmt: skip


class NotRead(Exception):
    """What the language of scripts leaves out already when it is read."""


def operator(node):
    return OPERATORS[type(node)]


def generators(clauses):
    out = ""
    for c in clauses:
        if c.is_async:
            raise NotRead
        out += f" for{expr(c.target)} in{expr(c.iter)}" + "".join(f" if{expr(i)}" for i in c.ifs)
    return out


def exprs(nodes):
    return "".join(expr(n) for n in nodes)


def constant(value):
    if isinstance(value, int) and value >= 2**63:
        raise NotRead
    if value is Ellipsis:
        return " (Ellipsis)"
    if isinstance(value, str):
        return f" (Constant '{value}')"
    if isinstance(value, float):
        return f" (Constant {value:.17g})"
    if isinstance(value, complex):
        return f" (Constant {value.imag:.17g}j)"
    return f" (Constant {value})"


def spec_text(node):
    """The text behind the expression of a format string's field, as it was written."""
    spec = "" if node.conversion == -1 else "!" + chr(node.conversion)
    if node.format_spec is not None:
        spec += ":"
        for part in node.format_spec.values:
            if not isinstance(part, ast.Constant):
                raise NotRead
            spec += part.value
    return " " + spec if spec else ""


def expr(e):
    if e is None:
        return " -"
    match e:
        case ast.Name():
            return f" (Name {e.id})"
        case ast.Constant():
            return constant(e.value)
        case ast.JoinedStr():
            pieces = [
                f" (FormatPiece{spec_text(p)}{expr(p.value)})"
                if isinstance(p, ast.FormattedValue)
                else constant(p.value)
                for p in e.values
            ]
            return f" (FormatString{''.join(pieces)})"
        case ast.UnaryOp():
            return f" (Unary {operator(e.op)}{expr(e.operand)})"
        case ast.BinOp():
            return f" (Binary {operator(e.op)}{expr(e.left)}{expr(e.right)})"
        case ast.BoolOp():
            return f" (BoolOp {operator(e.op)}{exprs(e.values)})"
        case ast.Compare():
            rest = "".join(f" {operator(o)}{expr(c)}" for o, c in zip(e.ops, e.comparators, strict=True))
            return f" (Compare{expr(e.left)}{rest})"
        case ast.IfExp():
            return f" (Conditional{expr(e.test)}{expr(e.body)}{expr(e.orelse)})"
        case ast.Attribute():
            return f" (Attribute {e.attr}{expr(e.value)})"
        case ast.Subscript():
            tuple_written = isinstance(e.slice, ast.Tuple) and not e.slice.parenthesised and e.slice.elts
            indices = e.slice.elts if tuple_written else [e.slice]
            return f" (Subscript{expr(e.value)}{exprs(indices)}{' ,' if tuple_written and e.slice.trailing else ''})"
        case ast.Slice():
            return f" (Slice{expr(e.lower)}{expr(e.upper)}{expr(e.step)})"
        case ast.Call():
            keywords = "".join(f" {k.arg}={expr(k.value)}" if k.arg else f" **{expr(k.value)}" for k in e.keywords)
            return f" (Call{expr(e.func)}{exprs(e.args)}{keywords})"
        case ast.Starred():
            return f" (Starred{expr(e.value)})"
        case ast.List() | ast.Tuple() | ast.Set():
            return f" ({type(e).__name__}{exprs(e.elts)})"
        case ast.Dict():
            return f" (Dict{''.join(expr(k) + expr(v) for k, v in zip(e.keys, e.values, strict=True))})"
        case ast.ListComp() | ast.SetComp() | ast.GeneratorExp():
            return f" ({type(e).__name__}{expr(e.elt)}{generators(e.generators)})"
        case ast.DictComp():
            return f" (DictComp{expr(e.key)}{expr(e.value)}{generators(e.generators)})"
        case ast.Lambda():
            return f" (Lambda{expr(e.body)})"
        case ast.NamedExpr():
            return f" (Walrus{expr(e.target)}{expr(e.value)})"
        case ast.Await():
            return f" (Await{expr(e.value)})"
        case ast.Yield():
            return f" (Yield{expr(e.value) if e.value else ''})"
        case ast.YieldFrom():
            return f" (Yield{expr(e.value)})"
    raise AssertionError(ast.dump(e))


def body(statements, indent):
    return "".join(stmt(s, indent) for s in statements)


def orelse(statements, indent):
    return " " * indent + "else\n" + body(statements, indent + 2) if statements else ""


def stmt(s, indent):
    pad = " " * indent
    match s:
        case ast.Expr():
            return f"{pad}Expression{expr(s.value)}\n"
        case ast.Assign():
            return f"{pad}Assign{exprs(s.targets)}{expr(s.value)}\n"
        case ast.AnnAssign():
            return f"{pad}Assign{expr(s.target)} :{expr(s.annotation)}{expr(s.value) if s.value else ''}\n"
        case ast.AugAssign():
            return f"{pad}AugAssign {operator(s.op)}{expr(s.target)}{expr(s.value)}\n"
        case ast.Return():
            return f"{pad}Return{expr(s.value) if s.value else ''}\n"
        case ast.If() | ast.While():
            return f"{pad}{type(s).__name__}{expr(s.test)}\n{body(s.body, indent + 2)}{orelse(s.orelse, indent)}"
        case ast.For():
            return f"{pad}For{expr(s.target)}{expr(s.iter)}\n{body(s.body, indent + 2)}{orelse(s.orelse, indent)}"
        case ast.Assert():
            return f"{pad}Assert{expr(s.test)}{expr(s.msg) if s.msg else ''}\n"
        case ast.Raise():
            return f"{pad}Raise{expr(s.exc) if s.exc else ''}{expr(s.cause) if s.cause else ''}\n"
        case ast.Pass() | ast.Break() | ast.Continue() | ast.Try():
            return f"{pad}{type(s).__name__}\n"
        case ast.Delete():
            targets = s.targets[0].elts if len(s.targets) == 1 and isinstance(s.targets[0], ast.Tuple) else s.targets
            return f"{pad}Delete{exprs(targets)}\n"
        case ast.With():
            items = "".join(expr(i.context_expr) + expr(i.optional_vars) for i in s.items)
            return f"{pad}With{items}\n{body(s.body, indent + 2)}"
        case ast.FunctionDef():
            return f"{pad}FunctionDef\n{function(s, indent + 2)}"
        case ast.Import() | ast.ImportFrom() | ast.Global() | ast.Nonlocal():
            kind = "Import" if isinstance(s, (ast.Import, ast.ImportFrom)) else type(s).__name__
            return f"{pad}{kind} {s.written}\n"
        case ast.ClassDef():
            return f"{pad}ClassDef\n"
        case ast.AsyncFunctionDef() | ast.AsyncFor() | ast.AsyncWith():
            return f"{pad}Async\n"
        case ast.Match():
            raise NotRead
    raise AssertionError(ast.dump(s))


def function(f, indent):
    pad = " " * indent
    out = "".join(f"{pad}@{expr(d)}\n" for d in f.decorator_list)
    a = f.args
    positional = a.posonlyargs + a.args
    defaults = [None] * (len(positional) - len(a.defaults)) + a.defaults
    parameters = [("", p, d) for p, d in zip(positional, defaults, strict=True)]
    parameters += [("*", a.vararg, None)] if a.vararg else []
    parameters += [("keyword ", p, d) for p, d in zip(a.kwonlyargs, a.kw_defaults, strict=True)]
    parameters += [("**", a.kwarg, None)] if a.kwarg else []
    out += f"{pad}def {f.name}"
    for mark, p, default in parameters:
        annotation = f" :{expr(p.annotation)}" if p.annotation else ""
        out += f" [{mark}{p.arg}{annotation}{' =' + expr(default) if default else ''}]"
    return out + (f" ->{expr(f.returns)}" if f.returns else "") + "\n" + body(f.body, indent + 2)


def python_tree(source):
    """The tree of Python's parser in the words of ours."""
    tree = ast.parse(source)
    for node in ast.walk(tree):
        if (isinstance(node, ast.Dict) and None in node.keys) or (isinstance(node, ast.Constant) and isinstance(node.value, bytes)):
            raise NotRead
        if isinstance(node, (ast.Import, ast.ImportFrom, ast.Global, ast.Nonlocal)):
            node.written = ast.get_source_segment(source, node)
        if isinstance(node, ast.Tuple):
            text = ast.get_source_segment(source, node) or ""
            node.parenthesised = text.startswith("(") and text.endswith(")") and not starts_with_its_first_part(node)
            node.trailing = text.rstrip(")").rstrip().endswith(",") or len(node.elts) == 1
    return "".join(function(s, 0) if isinstance(s, ast.FunctionDef) else stmt(s, 0) for s in tree.body)


def starts_with_its_first_part(node):
    """Is "(a), (b)" a tuple without parentheses of its own?"""
    return bool(node.elts) and (node.elts[0].lineno, node.elts[0].col_offset) == (node.lineno, node.col_offset)


def our_tree(source):
    return cresset._C._script_parse(source)


SNIPPETS = [
    "x = 1_000 + 0xFF - 0o17 * 0b101 / 1e3 // .5 % 2. ** 3j @ y",
    "x = -2 ** -x ** 2",
    "x = not a and b or c and not d",
    "x = a < b <= c != d is not None not in e is f in g == h > i >= j",
    "x = a if b else c if d else e",
    "x = (a if b else c) if d else e",
    "x = a | b ^ c & d << e >> f + g - h",
    "x = [1, 2, (3,), (), [], {}, {1: 2, 'a': b}, {1, 2}, (4, 5)]",
    "x = a[1], a[1:2], a[:, 1], a[..., None], a[1,], a[::2], a[:-1], a[1:2:3, 4:], a[(1, 2)], a[()]",
    "x = f(), f(a), f(a, b=1, *c, **d), f(a for a in b), f(*a,), f(a, b=2,)",
    "x = a.b.c(d)[e].f",
    "x = [a for a in b if c if d for e in f]",
    "x = {a: b for a, b in c}, {a for a in b}, (a for (a, *b) in c)",
    "x = lambda: 0, lambda a, b=1, *c, d, **e: a",
    "(y := 1)\nif (n := 2) > 1: pass\nwhile n := f(): pass",
    "x = 'a' \"b\" '''c'd''' r'\\n' '\\n\\t\\x41\\u00e9\\U0001F600\\'\\\"\\\\\\101\\\n' u'z' '\\d'",
    "x = f'{a}b{c!r:>10}{{}}' 'd' f'{e:0.3f}' f''",
    "x = f'{a[\"k\"]}{ {1: 2}[1] }{x!s}{y == z}{w != v}'",
    "x = f'''{a\n+ b}'''",
    "x = rf'\\d{a}\\n'",
    "a = b = c, d = e",
    "a, (b, *c), [d, e] = f",
    "*a, b = c",
    "a: int\nb: List[int] = []\nself.c: 'T' = d",
    "a += 1; b -= 2; c *= d,; e @= f; g //= 1; h **= 2; i >>= 1; j <<= 1; k &= l; m |= n; o ^= p; q %= r; s /= t",
    "a.b = c.d[e] = f",
    "return_ = 1",
    "if a:\n  b\nelif c:\n\td\nelif e: f; g\nelse:\n  h",
    "for a, b in c, d:\n    break\nelse:\n    continue",
    "for i in range(3): pass",
    "while a: b\nelse: c",
    "assert a, 'b'\nassert a",
    "del a, b[1], c.d\ndel e\ndel (f, g)",
    "raise\nraise A\nraise A('b') from c",
    "with a, b as c, d() as (e, f): pass\nwith (a as b, c,): pass\nwith (a): pass\nwith (a, b): pass\nwith (a).b() as c: pass",
    "import a.b as c\nfrom . import d\nglobal x, y",
    "try:\n  a\nexcept B as c:\n  d\nexcept (E, F): g\nelse: h\nfinally:\n  i",
    "def f(a, b: int = 1, /, c=2, *d: str, e, f: float = 3., **g) -> Tuple[int, str]:\n  '''doc'''\n  def h(): yield a\n  return",
    "def f(*, a): return lambda: a\ndef g(): yield\ndef h(): return (yield from x)",
    "@a\n@b.c(1)\n\ndef f(): pass",
    "async def f():\n  await x\n  async for a in b: pass",
    "def f():\n  class A(B, metaclass=C):\n    x = 1\n    def g(self): pass\n  @d\n  class E: pass",
    "x = (1,\n  # comment\n     2)  # another\n\n\n# at the left\ny = \\\n  3",
    "if a:\n        b\n        # deeper\n  # shallower\n        c\nd",
    "if a:\r\n  b\r\n\r\nc\r\n",
    "x = 1if y else 2",
    "x = a.__class__, _, __x, über",
    "\x0cx = 1\n\x0c\ny = 2",
    "x = [\n1,\n\n2\n]\n",
    "if a: pass\n\n\n",
    "x=a[b:=1]",
    "print(*a, sep='')",
    "x = y = yield_",
    "x: int = yield_,",
    "for x in *a, b: pass",
    "return_ = *a, *b",
    "a[*b] = a[1, *c]",
]


@pytest.mark.parametrize("source", SNIPPETS)
def test_tree_is_that_of_python(source):
    assert our_tree(source) == python_tree(source)


def functions_of(path):
    source = path.read_text()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.FunctionDef):
            start = min([node.lineno] + [d.lineno for d in node.decorator_list])
            yield textwrap.dedent("\n".join(source.splitlines()[start - 1 : node.end_lineno]) + "\n")


@pytest.mark.parametrize("folder", ["python/cresset", "tools"])
def test_functions_of_this_project(folder):
    compared = 0
    for path in sorted((ROOT / folder).rglob("*.py")):
        for source in functions_of(path):
            try:
                expected = python_tree(source)
            except (NotRead, SyntaxError):
                continue
            assert our_tree(source) == expected
            compared += 1
    assert compared > 100


def test_the_smallest_integer_is_a_constant():
    assert our_tree("x = -9223372036854775808") == "Assign (Name x) (Constant -9223372036854775808)\n"


@pytest.mark.parametrize(
    ("source", "annotated"),
    [
        (
            "def f(\n    x,  # type: Tensor\n    y=1,  # type: int\n):\n    # type: (...) -> float\n    return x",
            "def f(x: Tensor, y: int = 1) -> float:\n    return x",
        ),
        (
            "def f(x, y):\n    # type: (Tensor, List[int]) -> Tuple[int, int]\n    return x",
            "def f(x: Tensor, y: List[int]) -> Tuple[int, int]:\n    return x",
        ),
        ("def f(self, x):  # type: (int) -> None\n    return x", "def f(self, x: int) -> None:\n    return x"),
        ("def f(x):\n    # type: ignore\n    return x", "def f(x):\n    return x"),
        ("def f(x):\n    y = []  # type: List[int]\n    return y", "def f(x):\n    y: List[int] = []\n    return y"),
    ],
)
def test_type_comments(source, annotated):
    assert our_tree(source) == python_tree(annotated)


MISTAKES = [
    ("def f(x)\n    return x\n", "expected : but found 'newline' here", 1),
    ("def f(x):\n    return (x\n", "'(' was never closed", 2),
    ("def f(x):\n    y = x +\n    return y\n", "expected an expression but found 'newline' here", 2),
    ("def f(x):\nreturn x\n", "expected an indented block but found 'return' here", 2),
    ("def f(x):\n    return x\n  y = 1\n", "unindent does not match any outer indentation level", 3),
    ("def f(x):\n    return 1\n        y = 1\n", "unexpected indent", 3),
    ("x = 'abc\n", "unterminated string literal", 1),
    ("x = '''abc\n", "unterminated triple-quoted string literal", 1),
    ("x = (1]", "closing parenthesis ']' does not match opening parenthesis '('", 1),
    ("x = 1)", "unmatched ')'", 1),
    ("x = 12ab", "invalid number", 1),
    ("x = 9223372036854775808", "Integral constant out of range (must fit in a signed 64 bit integer)", 1),
    ("x = $", "invalid character '$'", 1),
    ("x = a ! b", "expected newline but found '!' here", 1),
    ("x = b'ab'", "bytes are not supported", 1),
    ("x = f'{a'", "unterminated string literal", 1),
    ("x = f'a}'", "f-string: single '}' is not allowed", 1),
    ("x = f'{}'", "expected an expression but found 'eof' here", 1),
    ("x = '\\xz1'", "malformed escape in a string", 1),
    ("f() = 1", "cannot assign to this expression here", 1),
    ("(a, b) += 1", "augmented assignment can only have one LHS expression", 1),
    ("f(a=1, b)", "positional argument follows keyword argument", 1),
    ("def f(a, a): pass", "duplicate argument 'a' in function definition", 1),
    ("def f(a=1, b): pass", "non-default argument follows default argument", 1),
    (
        "def f(a, b):\n  # type: (int) -> int\n  pass",
        "Number of type annotations (1) did not match the number of function parameters (2)",
        2,
    ),
    ("class A:\n  for i in x: pass", "a class may contain methods, annotated attributes and assignments only", 2),
    ("x = a.\n", "expected a name but found 'newline' here", 1),
    ("x = \\ 1", "unexpected character after line continuation character", 1),
    ("if a:\n", "expected an indented block", 1),
    ("(" * 10000, "too many nested parentheses", 1),
    ("x = " + "(" * 10000 + ")" * 10000, "too many nested parentheses", 1),
    ("x = " + "-" * 10000 + "1", "the source is nested too deeply", 1),
    ("x = " + "not " * 10000 + "1", "the source is nested too deeply", 1),
    ("x = " + "lambda: " * 10000 + "1", "the source is nested too deeply", 1),
    ("x = " + "a if b else " * 10000 + "1", "the source is nested too deeply", 1),
    ("x = " + "a ** " * 10000 + "1", "the source is nested too deeply", 1),
    ("x = " + "a + " * 10000 + "1", "the expression is too deep", 1),
    ("x = a" + ".b" * 10000, "the expression is too deep", 1),
    ("".join(" " * i + "if a:\n" for i in range(1000)), "too many levels of indentation", 258),
    ("if a: pass\n" + "elif a: pass\n" * 10000, "the source is nested too deeply", None),
]


@pytest.mark.parametrize(("source", "words", "line"), MISTAKES, ids=[f"{i} {m[1]}" for i, m in enumerate(MISTAKES)])
def test_mistakes_are_shown_at_their_place(source, words, line):
    with pytest.raises(RuntimeError) as error:
        cresset._C._script_parse(source, "file.py")
    assert words in str(error.value)
    assert "<--- HERE" in str(error.value)
    if line:
        assert f'File "file.py", line {line}\n' in str(error.value)


def test_marks_stand_below_the_mistake():
    with pytest.raises(RuntimeError) as error:
        cresset._C._script_parse("def f(x):\n    y = 1\n    f(x) = 2\n    return x\n", "file.py")
    assert str(error.value) == (
        "\ncannot assign to this expression here:\n"
        '  File "file.py", line 3\n'
        "def f(x):\n"
        "    y = 1\n"
        "    f(x) = 2\n"
        "    ~~~ <--- HERE\n"
        "    return x\n"
    )


def test_time_is_linear_in_the_text():
    def seconds(lines):
        source = "".join(f"x{i} = torch.add(a.b[{i}], 'text', alpha=[1, 2, {i}])  # comment\n" for i in range(lines))
        start = time.perf_counter()
        cresset._C._script_parse(source)
        return time.perf_counter() - start

    small = min(seconds(2000) for _ in range(3))
    assert seconds(20000) < 40 * small + 0.1
