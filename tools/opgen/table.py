"""The operator table: loading, checking and expanding the rows of src/ops/*.toml into operators."""

import difflib
import os
import re
import tomllib
from dataclasses import dataclass, field, replace
from pathlib import Path

import schema as sch
from formulas import unknown_word

ROW_KEYS = {
    "schema",
    "python",
    "out",
    "inplace",
    "aliases",
    "canonical",
    "writes",
    "doc",
    "samples",
    "grad",
    "jvp",
    "nondiff",
    "tags",
    "autocast",
    "batch",
    "number_is_tensor",
    "packet",
    "pointwise",
    "dtype",
    "types",
    "promotes",
    "follows",
    "refuses",
    "lacks",
    "shown",
    "equal_types",
    "check",
    "choices",
    "quick",
    "out_dtype",
    "out_words",
    "out_memory",
    "out_shape",
    "out_strides",
    "late_errors",
    "legacy",
    "shape",
    "kernel",
    "composite",
    "explicit",
    "through_parts",
    "elsewhere",
    "cpu",
    "meta",
    "foreach",
    "names",
}
PYTHON_PLACES = ("function", "method", "nn", "linalg", "special", "fft", "cpp_method", "inplace_function", "none")
DTYPE_RULES = ("promote", "float", "compare", "to_bool", "abs", "first", "bool_first")
OUT_DTYPES = ("castable", "exact", "flags", "joined", "argument")
OUT_MEMORIES = ("apart", "whole")
OUT_SHAPES = ("any",)
OUT_STRIDES = ("result", "contiguous")
AUTOCAST_POLICIES = ("lower_precision_fp", "fp32", "promote")
# What an operator promises about itself; cresset::Tag and Python's Tag have the same, in this order.
TAGS = (
    "core", "cudagraph_unsafe", "data_dependent_output", "dynamic_output_shape", "flexible_layout", "generated", "inplace", "inplace_view",
    "maybe_aliasing_or_mutating", "needs_contiguous_strides", "needs_exact_strides", "needs_fixed_stride_order", "nondeterministic_bitwise",
    "nondeterministic_seeded", "out", "out_variant", "pointwise", "pt2_compliant_tag", "reduction", "view_copy",
)
# Out forms do not have these.
FUNCTIONAL_TAGS = ("core", "data_dependent_output", "inplace_view", "maybe_aliasing_or_mutating")
# How an operator runs under vmap. "fold" may name the number of dimensions behind N: "fold 3"; "leading" and "broadcast" the fewest dimensions
# that an example needs: "leading 2".
NUMBERED_RULES = ("fold", "leading", "broadcast")
BATCH_RULES = ("pointwise", "dim", "full", "leading", "broadcast", "fold", "random", "functional", "code", "decompose", "dynamic", "loop")
# Keys that only a row with `pointwise` has.
POINTWISE_KEYS = ("dtype", "types", "promotes", "follows", "refuses", "lacks", "shown", "equal_types", "check", "choices", "quick")
HOW_KEYS = {"pointwise": "pointwise", "shape": "structured", "kernel": "structured",
            "composite": "composite", "explicit": "explicit", "cpu": "cpu", "foreach": "foreach"}
IDENT = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")
ELSEWHERE = re.compile(r"(\w+::\w+(\.\w+)?|[A-Za-z_]\w*)\Z")


class TableError(Exception):
    """A mistake in a row; the text begins with file:line."""


def hint(word, known):
    close = difflib.get_close_matches(word, list(known), n=1)
    return f" Did you mean '{close[0]}'?" if close else ""


@dataclass
class Op:
    """One registered operator: a row's own schema or a form derived from it."""
    row: "Row"
    schema: sch.Schema
    form: str                     # functional, inplace, out
    derived: bool = False         # not the row's own schema
    alias_of: "Op | None" = None

    @property
    def ident(self):
        return self.schema.ident

    @property
    def kind(self):
        return "composite" if self.alias_of else self.row.kind

    @property
    def family(self):
        return self.row.family

    @property
    def implicit(self):
        return self.kind == "composite"

    @property
    def tags(self):
        """The row's tags as far as they hold for this form, and what the form itself says."""
        out = self.schema.is_out
        tags = set(self.row.tags) - set(FUNCTIONAL_TAGS if out else ("core",) if self.derived else ())
        if out:
            tags.add("out")
        elif self.schema.name.endswith("_") and self.schema.written:
            tags.add("inplace")
        return [t for t in TAGS if t in tags]


@dataclass
class Row:
    family: "Family"
    line: int
    data: dict
    schema: sch.Schema
    kind: str = ""
    ops: list = field(default_factory=list)       # functional (or the row's own), inplace, out, then aliases
    formulas: dict = field(default_factory=dict)  # tuple of input names -> text
    jvp: object = None                            # str, or dict by output names ("U" or "U, S")
    nondiff: frozenset = frozenset()              # names of outputs
    python: tuple = ()
    tags: tuple = ()

    @property
    def where(self):
        return f"{self.family.path}:{self.line}"

    @property
    def main(self):
        return self.ops[0]

    @property
    def doc(self):
        return self.data.get("doc", "").strip()

    @property
    def samples(self):
        return self.data.get("samples", [])

    def get(self, key, default=None):
        return self.data.get(key, default)

    def form(self, name):
        return next((o for o in self.ops if o.form == name and not o.alias_of), None)

    @property
    def differentiable(self):
        return bool(self.formulas)

    @property
    def all_nondiff(self):
        names = self.schema.result_names
        return bool(names) and set(names) <= self.nondiff

    def error(self, message, key=None):
        line = self.line if key is None else self.key_line(key)
        return TableError(f"{self.family.path}:{line}: {self.schema.key if self.schema else 'row'}: {message}")

    def key_line(self, key):
        lines = self.family.lines
        for i in range(self.line - 1, len(lines)):
            if i >= self.line and lines[i].startswith("[["):
                break
            if re.match(rf"\s*\"?{re.escape(key)}\"?\s*=", lines[i]):
                return i + 1
        return self.line


@dataclass
class Family:
    name: str
    path: Path
    doc: str
    lines: list
    scalar_header: str = ""       # declares functions that only this family's pointwise expressions call
    choosing_loops: bool = False  # its loops choose between formulas by an argument
    rows: list = field(default_factory=list)

    @property
    def source(self):
        """How messages and generated files name the table."""
        return f"src/ops/{self.path.name}"

    def ops(self):
        return [op for row in self.rows for op in row.ops]


class Table:
    """All families. Raises TableError with every mistake found, one a line."""

    def __init__(self, folder):
        self.folder = Path(folder)
        self.families = []
        self.by_key = {}
        errors = []
        paths = sorted(Path(folder).glob("*.toml"))
        if not paths:
            raise TableError(f"{folder}: no operator tables (*.toml) here.")
        for path in paths:
            self._load(Path(os.path.relpath(path)), errors)
        for family in self.families:
            for row in family.rows:
                try:
                    expand(row)
                except TableError as error:
                    errors.append(str(error))
        idents = {}
        for op in self.ops():
            key = op.schema.qualified
            if key in self.by_key:
                errors.append(str(op.row.error(f"{key} is already given at {self.by_key[key].row.where}")))
            elif op.ident in idents:
                errors.append(str(op.row.error(f"the C++ name {op.ident} is also that of {idents[op.ident].schema.key}")))
            self.by_key.setdefault(key, op)
            idents.setdefault(op.ident, op)
        if errors:
            raise TableError("\n".join(errors))
        self._number_nodes()

    def rows(self):
        return [row for family in self.families for row in family.rows]

    def ops(self):
        return [op for row in self.rows() for op in row.ops]

    def find(self, name):
        """Operators by `add`, `add.Tensor`, `aten::add.Tensor`."""
        name = name.removeprefix("aten::")
        ops = [o for o in self.ops() if name in (o.schema.key, o.schema.name, o.schema.qualified, o.ident)]
        exact = [o for o in ops if name in (o.schema.key, o.schema.qualified)]
        return [o for o in exact if o.schema.overload] or ops

    def names(self):
        return {o.schema.key for o in self.ops()} | {o.schema.name for o in self.ops()}

    def _number_nodes(self):
        """Names the graph node of each differentiable row: base name and index among its overloads. A row that is in place
        itself (fill_) shares the node of the functional row with the same overload and formulas (fill), unless it changes what its tensor is a view of."""
        count, shared = {}, {}
        for row in sorted(self.rows(), key=lambda row: row.schema.key not in NUMBERED_FIRST):
            if row.kind == "composite" or not row.schema.tensor_args:
                continue
            base = row.schema.name.rstrip("_") if row.main.form == "inplace" else row.schema.name.removesuffix("_forward")
            if not row.differentiable:
                row.node = camel(base) + "Backward0"
                continue
            key = (row.family.name, base, row.schema.overload, tuple(row.formulas.items()), tuple(a.type.without_alias() for a in row.schema.args),
                   "inplace_view" in row.tags)  # fmt: skip
            if key not in shared:
                copied = base.removesuffix("_copy") if row.family.name == "view_copy" else base
                shared[key] = f"{camel(copied)}Backward{count.get(base, 0)}{base.removeprefix(copied)}"
                count[base] = count.get(base, 0) + 1
            row.node = NAMED.get(row.schema.key, shared[key])

    def _load(self, path, errors):
        text = path.read_text()
        try:
            data = tomllib.loads(text)
        except tomllib.TOMLDecodeError as error:
            found = re.search(r"\(at line (\d+)", str(error))
            errors.append(f"{path}:{found.group(1) if found else 1}: {error}")
            return
        lines = text.splitlines()
        for key in data:
            if key not in ("family", "op"):
                line = next((i + 1 for i, t in enumerate(lines) if re.match(rf"\s*\[*{re.escape(key)}\b", t)), 1)
                errors.append(f"{path}:{line}: unknown section '{key}'.{hint(key, ('family', 'op'))}")
        head = data.get("family", {})
        for key in head:
            if key not in ("doc", "scalar_header", "choosing_loops"):
                errors.append(f"{path}:1: unknown key '{key}' in [family]; known: doc, scalar_header, choosing_loops.")
        family = Family(path.stem, path, head.get("doc", ""), lines, head.get("scalar_header", ""), head.get("choosing_loops", False))
        self.families.append(family)
        starts = [i + 1 for i, t in enumerate(lines) if re.match(r"\s*\[\[\s*op\s*\]\]", t)]
        for start, raw in zip(starts, data.get("op", [])):
            for filled in named_rows(raw):
                self._load_row(Row(family, start, filled, None), errors)

    @staticmethod
    def _load_row(row, errors):
        path, raw = row.family.path, row.data
        if "schema" not in raw:
            errors.append(f"{path}:{row.line}: a row needs the key 'schema'.")
            return
        row.line = row.key_line("schema")
        try:
            row.schema = sch.parse(raw["schema"])
        except sch.SchemaError as error:
            errors.append(f"{path}:{row.line}: schema column {error.column}: {error}\n"
                          f"    {raw['schema']}\n    {' ' * (error.column - 1)}^ here")
            return
        try:
            check(row)
            row.family.rows.append(row)
        except TableError as error:
            errors.append(str(error))


def named_rows(raw):
    """A row with the key `names` is one row for each name, which stands for `{name}` in all of its texts."""
    if "names" not in raw:
        return [raw]

    def fill(value, name):
        if isinstance(value, str):
            return value.replace("{name}", name)
        if isinstance(value, list):
            return [fill(v, name) for v in value]
        return {fill(k, name): fill(v, name) for k, v in value.items()} if isinstance(value, dict) else value

    return [fill({k: v for k, v in raw.items() if k != "names"}, name) for name in raw["names"]]


# Operators whose graph nodes have lower numbers than those of overloads that stand before them: people know the names from printed tensors.
NUMBERED_FIRST = {"bernoulli", "clamp.Tensor", "fmod.Scalar", "pow.Tensor_Scalar", "remainder.Scalar", "sort"}
# Those that have a name without a number.
NAMED = {"copy_": "CopyBackwards"}


def camel(name):
    return "".join(part.title() for part in name.split("_"))


def check(row):
    """Checks the keys of one row and fills its derived fields."""
    _check_how(row)
    _check_words(row)
    _check_out(row)
    _check_argument_names(row)
    row.python = _python_places(row)
    row.tags = _tags(row)
    _check_batch(row)
    _check_kind(row)
    _check_derivatives(row)


def _check_how(row):
    """Known keys, of which exactly one says how the operator is computed: row.kind."""
    data = row.data
    for key in data:
        if key not in ROW_KEYS:
            raise row.error(f"unknown key '{key}'.{hint(key, ROW_KEYS)}", key)
    kinds = sorted({HOW_KEYS[k] for k in data if k in HOW_KEYS})
    if len(kinds) != 1:
        raise row.error("exactly one of pointwise, shape + kernel, composite, explicit, cpu, foreach is needed; "
                        f"given: {', '.join(kinds) or 'none'}.")
    row.kind = kinds[0]
    if row.kind == "structured" and not ("shape" in data and "kernel" in data):
        raise row.error(f"'shape' and 'kernel' go together; missing: {'kernel' if 'shape' in data else 'shape'}.")
    for key, kind in (*((key, "pointwise") for key in POINTWISE_KEYS), ("meta", "cpu")):
        if key in data and row.kind != kind:
            raise row.error(f"'{key}' belongs to a row with '{kind}'.", key)
    for key in ("shape", "kernel", "cpu", "meta", "foreach", "check"):
        if key in data and not IDENT.match(data[key]):
            raise row.error(f"'{key}' must be the name of a C++ function; given: {data[key]!r}.", key)
    if "elsewhere" in data:
        if row.kind not in ("pointwise", "structured"):
            raise row.error("'elsewhere' belongs to a row with 'pointwise' or with 'shape' and 'kernel': others are what they are on every device.", "elsewhere")
        if not ELSEWHERE.match(data["elsewhere"]):
            raise row.error(f"'elsewhere' must be the name of a C++ function or of an operator, as aten::add.Tensor; given: {data['elsewhere']!r}.", "elsewhere")


def _check_words(row):
    """Keys with one of a few words."""
    data, schema = row.data, row.schema
    if data.get("dtype", "promote") not in DTYPE_RULES:
        raise row.error(f"unknown dtype rule '{data['dtype']}'.{hint(data['dtype'], DTYPE_RULES)}", "dtype")
    if set(data.get("types", "ifc")) - set("bifcueh"):
        raise row.error(f"'types' is made of the letters b, i, f, c, u, e, h; given: {data['types']!r}.", "types")
    if data.get("autocast", "fp32") not in AUTOCAST_POLICIES:
        raise row.error(f"unknown autocast policy '{data['autocast']}'.{hint(data['autocast'], AUTOCAST_POLICIES)}", "autocast")
    if "autocast" in data and (schema.is_out or schema.is_inplace):
        raise row.error("'autocast' belongs to a functional operator: the others write where the caller says.", "autocast")
    if not isinstance(data.get("inplace", False), (bool, str)):
        raise row.error("'inplace' is true, false or an overload name.", "inplace")
    if not isinstance(data.get("samples", []), list):
        raise row.error("'samples' is a list of argument lists.", "samples")


def _check_out(row):
    """What out forms promise."""
    data, schema = row.data, row.schema
    for key, rules in (("out_dtype", OUT_DTYPES), ("out_memory", OUT_MEMORIES), ("out_shape", OUT_SHAPES), ("out_strides", OUT_STRIDES)):
        if key in data and data[key] not in rules:
            raise row.error(f"unknown rule '{data[key]}'.{hint(data[key], rules)}", key)
        if key in data and "out" not in data:
            raise row.error(f"'{key}' belongs to a row with 'out'.", key)
    if "out_words" in data and "out" not in data:
        raise row.error("'out_words' belongs to a row with 'out'.", "out_words")
    if data.get("out_dtype") == "argument" and "dtype" not in (a.name for a in schema.args):
        raise row.error("'argument' needs an argument 'dtype'.", "out_dtype")
    if "out_shape" in data and len(schema.returns) != 1:
        raise row.error("'out_shape' belongs to a row with one result.", "out_shape")
    strides = data.get("out_strides")
    if strides == "result" and row.kind not in ("explicit", "composite"):
        raise row.error("'out_strides = \"result\"' belongs to a row with 'explicit' or 'composite': the shape rule of others says the strides.", "out_strides")
    if strides == "contiguous" and row.kind not in ("pointwise", "structured"):
        raise row.error("'out_strides = \"contiguous\"' belongs to a row with 'pointwise' or 'shape': out tensors of others are contiguous.", "out_strides")


def _check_argument_names(row):
    """Keys that name arguments."""
    data, schema = row.data, row.schema
    for order in data.get("legacy", []):
        words = order.replace(",", " ").split()
        for word in words:
            if word not in (a.name for a in schema.args):
                raise row.error(f"'legacy' names the argument '{word}', which the schema has not.{hint(word, [a.name for a in schema.args])}", "legacy")
        missing = [a.name for a in schema.args if a.default is None and a.name not in words]
        if missing:
            raise row.error(f"'legacy' lacks the argument '{missing[0]}', which has no default.", "legacy")
    for name in data.get("writes", []):
        if name not in (a.name for a in schema.args):
            raise row.error(f"'writes' names the argument '{name}', which the schema has not.", "writes")


def _python_places(row):
    data, schema = row.data, row.schema
    places = data.get("python")
    if places is None:
        first_self = bool(schema.args) and schema.args[0].name == "self" and schema.args[0].type.plain_tensor
        places = ("function", "method") if first_self else ("function",)
    elif isinstance(places, str):
        places = (places,)
    for place in places:
        if place not in PYTHON_PLACES:
            raise row.error(f"unknown python place '{place}'.{hint(place, PYTHON_PLACES)}", "python")
    return () if "none" in places else tuple(places)


def _tags(row):
    tags = row.data.get("tags", [])
    tags = [tags] if isinstance(tags, str) else tags
    for tag in tags:
        if tag not in TAGS:
            raise row.error(f"unknown tag '{tag}'.{hint(tag, TAGS)}", "tags")
    if row.kind == "pointwise" and "pointwise" not in tags:
        tags = [*tags, "pointwise"]
    return tuple(tags)


def _check_batch(row):
    data = row.data
    if "batch" in data:
        word, _, number = data["batch"].partition(" ")
        if word not in BATCH_RULES or (number and (word not in NUMBERED_RULES or not number.isdigit())):
            raise row.error(f"unknown batching rule '{data['batch']}'.{hint(word, BATCH_RULES)}", "batch")
        if row.kind == "foreach":
            raise row.error("a foreach operator runs under vmap element by element: no batch here.", "batch")


def _check_kind(row):
    """What each way to compute asks of the schema."""
    data, schema = row.data, row.schema
    if row.kind in ("pointwise", "structured"):
        for ret in schema.returns:
            if not ret.type.plain_tensor or ret.type.alias:
                raise row.error("a pointwise or structured operator returns new tensors only.")
        if not schema.returns:
            raise row.error("a pointwise or structured operator returns a tensor.")
    if row.kind == "pointwise":
        if len(schema.returns) != 1:
            raise row.error("a pointwise operator has one result.")
        if not schema.tensor_args or any(not a.type.plain_tensor for a in schema.tensor_args):
            raise row.error("the tensor arguments of a pointwise operator are plain tensors.")
        for arg in schema.args:
            if not arg.type.is_tensor and arg.type.is_list:
                raise row.error(f"argument '{arg.name}': a pointwise operator takes no lists.")
        _check_pointwise(row)
    if row.kind == "foreach":
        if not any(a.type.is_tensor and a.type.is_list for a in schema.args):
            raise row.error("a foreach operator has a list of tensors as argument.", "foreach")
        if [str(r.type) for r in schema.returns] != ([] if schema.is_inplace else ["Tensor[]"]):
            raise row.error("a foreach operator returns a list of tensors, in place nothing.", "foreach")
        if "grad" in data or "jvp" in data or "nondiff" in data:
            raise row.error("a foreach operator is differentiable through its elements: no grad, jvp or nondiff here.")


def _check_pointwise(row):
    data, args = row.data, {a.name: a.type for a in row.schema.args}
    word = unknown_word(data["pointwise"], set(args))
    if word:
        raise row.error(f"the expression names '{word}', which is no argument.{hint(word, args)}", "pointwise")
    for key in ("promotes", "follows"):
        for name in data.get(key, []):
            if name not in args or args[name].base != "Scalar":
                raise row.error(f"'{key}' names '{name}', which is no Scalar argument.{hint(name, args)}", key)
    for key in ("refuses", "lacks"):
        for letters in data.get(key, {}):
            if letters != "any b" and (set(letters) - set("bifc") or set(letters) & set(data.get("types", "ifc"))):
                raise row.error(f"'{key}' has words for classes of types that 'types' has not, or 'any b'; given: {letters!r}.", key)
    for name, type_ in args.items():
        if (type_.base == "str") != (name in data.get("choices", {})):
            raise row.error(f"'choices' lists what the argument '{name}' of type str may be.", "choices")
    for name in data.get("choices", {}):
        if name not in args:
            raise row.error(f"'choices' names '{name}', which is no argument.{hint(name, args)}", "choices")
    quick = data.get("quick")
    if quick is not None and not {"when", "is"} <= set(quick) <= {"when", "is", "of", "otherwise"}:
        raise row.error("'quick' has two expressions: { when = ..., is = ... }.", "quick")


def split_names(key):
    """The names of a key such as "input, weight, bias"."""
    return tuple(n.strip() for n in key.split(","))


def _check_derivatives(row):
    data, schema = row.data, row.schema
    tensors = {a.name for a in schema.args if a.type.is_tensor}
    for left, text in data.get("grad", {}).items():
        names = split_names(left)
        for name in names:
            if name not in tensors:
                raise row.error(f"grad names '{name}', which is no tensor argument.{hint(name, tensors)}", "grad")
            if any(name in other for other in row.formulas):
                raise row.error(f"two formulas for '{name}'.", "grad")
        if not isinstance(text, str) or not text.strip():
            raise row.error(f"the formula for '{left}' must be a non-empty string.", "grad")
        row.formulas[names] = text.strip()
    if data.get("packet", "first") != "first":
        raise row.error("'packet' is \"first\", or is left out: torch.ops asks the overloads in the order of their rows.", "packet")
    nondiff = data.get("nondiff", [])
    outputs = schema.result_names
    nondiff = outputs if nondiff is True else ([nondiff] if isinstance(nondiff, str) else nondiff)
    for name in nondiff or ():
        if name not in outputs:
            raise row.error(f"nondiff names '{name}', which is no output.{hint(name, outputs)}", "nondiff")
    row.nondiff = frozenset(nondiff or ())
    if row.formulas and row.all_nondiff:
        raise row.error("a row has 'grad' or nothing but 'nondiff' outputs, not both.", "nondiff")
    if data.get("through_parts") and (row.kind != "explicit" or row.jvp):
        raise row.error("'through_parts' belongs to a row with 'explicit' and without jvp: tangents go through the function's parts.", "through_parts")
    if row.kind == "composite" and (row.formulas or row.nondiff or "jvp" in data):
        raise row.error("a composite is differentiable through its parts: no grad, jvp or nondiff here.")
    row.jvp = data.get("jvp")
    if isinstance(row.jvp, dict):
        named = [n for names in row.jvp for n in split_names(names)]
        for name in named:
            if named.count(name) > 1:
                raise row.error(f"two jvp formulas for '{name}'.", "jvp")
            if name not in outputs:
                raise row.error(f"jvp names '{name}', which is no output.{hint(name, outputs)}", "jvp")
    elif row.jvp is not None and not isinstance(row.jvp, str):
        raise row.error("jvp is a string or a table by output names.", "jvp")
    elif row.jvp and len([o for o in outputs if o not in row.nondiff]) > 1 and row.jvp != "auto_linear":
        raise row.error("several outputs: jvp is a table by output names.", "jvp")
    if row.jvp and not row.formulas:
        raise row.error("jvp needs grad too.", "jvp")


def expand(row):
    """Derives the in-place and out forms and the aliases of a row."""
    schema = row.schema
    form = "out" if schema.is_out else "inplace" if schema.is_inplace else "functional"
    row.ops = [Op(row, schema, form)]
    if row.get("inplace"):
        row.ops.append(Op(row, _inplace_schema(row), "inplace", True))
    if row.get("out") is not None:
        row.ops.append(Op(row, _out_schema(row), "out", True))
    aliases = row.get("aliases", [])
    for alias in [aliases] if isinstance(aliases, str) else aliases:
        if not IDENT.match(alias):
            raise row.error(f"alias '{alias}' is not a name.", "aliases")
        for op in [o for o in row.ops if not o.alias_of]:
            name = alias + "_" if op.form == "inplace" else alias
            row.ops.append(Op(row, replace(op.schema, name=name), op.form, True, alias_of=op))


def _inplace_schema(row):
    schema = row.schema
    if row.kind == "foreach":
        if schema.args[0].name != "self" or not schema.args[0].type.is_list:
            raise row.error("'inplace' of a foreach operator needs a first argument 'Tensor[] self'.", "inplace")
        written = replace(schema.args[0].type, alias="a", write=True)
        return replace(schema, name=schema.name + "_", args=(replace(schema.args[0], type=written), *schema.args[1:]), returns=())
    if not schema.args or schema.args[0].name != "self" or not schema.args[0].type.plain_tensor:
        raise row.error("'inplace' needs a first argument 'Tensor self'.", "inplace")
    if len(schema.returns) != 1 or not schema.returns[0].type.plain_tensor or row.main.form != "functional":
        raise row.error("'inplace' needs a functional operator with one tensor result.", "inplace")
    written = replace(schema.args[0].type, alias="a", write=True)
    args = (replace(schema.args[0], type=written), *schema.args[1:])
    named = row.get("inplace")
    overload = named if isinstance(named, str) else schema.overload
    return replace(schema, name=schema.name + "_", overload=overload, args=args, returns=(sch.Return(None, written),))


def _out_schema(row):
    schema, text = row.schema, row.get("out")
    found = re.fullmatch(r"\s*([A-Za-z_][A-Za-z0-9_]*)\s*(?:\(([^)]*)\))?\s*", text) if isinstance(text, str) else None
    if not found:
        raise row.error(f"'out' is an overload name, or name(argument, …); given: {text!r}.", "out")
    if row.kind in ("composite", "explicit", "foreach") and [str(r.type) for r in schema.returns] == ["Tensor[]"]:
        out = sch.Arg("out", sch.Type("Tensor", is_list=True, alias="a", write=True), None, True)
        return replace(schema, overload=found.group(1), args=(*schema.args, out), returns=())
    if row.main.form != "functional" or not all(r.type.plain_tensor for r in schema.returns) or not schema.returns:
        raise row.error("'out' needs a functional operator that returns tensors.", "out")
    count = len(schema.returns)
    if found.group(2) is not None:
        names = [n.strip() for n in found.group(2).split(",")]
    else:
        names = ["out"] if count == 1 else [f"out{i}" for i in range(count)]
    if len(names) != count:
        raise row.error(f"'out' names {len(names)} arguments for {count} results.", "out")
    args = [a for a in schema.args if not (schema.is_factory and a.name in sch.FACTORY_ARGS)]
    args = [a if a.type.write else replace(a, type=a.type.without_alias()) for a in args]
    written = sum(a.type.write for a in args)
    first = written + 1 if written else 0  # the letters of PyTorch's schemas, which leave one out behind those of written inputs
    for name in names:
        if name in {a.name for a in args}:
            raise row.error(f"the out argument '{name}' has the name of an input; name it: \"{found.group(1)}(name)\".", "out")
    types = [sch.Type("Tensor", alias=chr(ord("a") + first + i), write=True) for i in range(count)]
    args += [sch.Arg(n, t, None, True) for n, t in zip(names, types)]
    returns = tuple(sch.Return(r.name, t) for r, t in zip(schema.returns, types))
    return replace(schema, overload=found.group(1), args=tuple(args), returns=returns)
