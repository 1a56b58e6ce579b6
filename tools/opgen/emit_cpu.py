"""CPU registrations: wrappers around structured and pointwise kernels, and the pointwise loops."""

import re

import cpp
from emit_ops import RULES, out_checks, plain_out, plain_out_header, pointwise_call, promoting_scalars
from output import header, source

PINNED = "pin_memory"
COMPUTE_TYPES = (("b", "bool"), ("i", "int32_t"), ("i", "int64_t"), ("f", "float"), ("f", "double"),
                 ("c", "std::complex<float>"), ("c", "std::complex<double>"))


def emit(table, out):
    for family in table.families:
        pointwise = [r for r in family.rows if r.kind == "pointwise"]
        out.add("cpu", f"src/cpu/cpu_decl_{family.name}.h", _declarations(family, pointwise))
        if any(r.kind in ("pointwise", "structured", "cpu") for r in family.rows):
            out.add("cpu", f"src/cpu/cpu_{family.name}.cpp", _registrations(family, pointwise))
        if pointwise:
            out.add("cpu-isa-choosing" if family.choosing_loops else "cpu-isa", f"src/cpu-isa/pointwise_{family.name}.cpp", _loops(family, pointwise))


def kernel_functions(family):
    """(name, result, parameters) of every hand-written CPU kernel that rows name."""
    seen, out = set(), []
    for row in family.rows:
        schema = row.schema
        if row.kind == "cpu":
            entry = (row.get("cpu"), schema.cpp_return(), schema.cpp_params())
        elif row.kind == "structured":
            outs = _out_names(row)
            params = [schema.cpp_params()] if schema.args else []
            entry = (row.get("kernel"), "void", ", ".join(params + [f"const Tensor& {o}" for o in outs]))
        else:
            continue
        key = (entry[0], tuple(p.rsplit(" ", 1)[0] for p in entry[2].split(", ") if p))
        if key not in seen:
            seen.add(key)
            out.append(entry)
    return out


def _can_be_pinned(row):
    return row.kind == "structured" and any(a.name == PINNED for a in row.schema.args)


def _out_names(row):
    out_op = row.form("out")
    if out_op:
        return [a.name for a in out_op.schema.out_args]
    count = len(row.schema.returns)
    return ["out"] if count == 1 else [f"out{i}" for i in range(count)]


def loop_arguments(row):
    """Arguments that reach the loop through the args structure."""
    promoting = promoting_scalars(row)
    return [a for a in row.schema.args if not a.type.is_tensor and a not in promoting]


def _declarations(family, pointwise):
    body = "".join(f"{result} {name}({params});\n" for name, result, params in kernel_functions(family))
    includes = ["<cresset/core/tensor.h>"]
    if pointwise:
        includes.append('"backends/cpu/pointwise.h"')
        for row in pointwise:
            args = loop_arguments(row)
            if args:
                fields = " ".join(f"{_field_type(a)} {a.name};" for a in args)
                body += f"struct {row.main.ident}_args {{ {fields} }};\n"
        lines = "".join(f"extern const {kind} {r.main.ident}_{member};\n" for r in pointwise for kind, member in _loop_tables(r))
        body += f"\nCRESSET_IN_EACH_ISA(\n{lines})\n"
    return header(family.name, includes, body, "cresset::cpu")


def _field_type(arg):
    return arg.type.cpp_arg().removeprefix("const ").rstrip("&")


# --- registrations ----------------------------------------------------------------------------------------------------


def _registrations(family, pointwise):
    code, entries = [], []
    if pointwise:
        code.append(_kernels(pointwise))
    for row in family.rows:
        for op in row.ops:
            if op.alias_of or (row.kind == "cpu" and op is not row.main):
                continue
            if row.kind not in ("cpu", "pointwise", "structured"):
                continue
            name = f"cpu_{op.ident}"
            if row.kind == "cpu":
                body = cpp.forward(op, f"cpu::{row.get('cpu')}")
            else:
                body = _pointwise_body(op) if row.kind == "pointwise" else _structured_body(op)
            code.append(cpp.define_kernel(op, name, body))
            entries.append((op, cpp.kernel(name)))
    body = "namespace {\n\n" + "\n".join(code) + "\n}  // namespace\n\n" + cpp.impl_blocks("CPU", entries)
    includes = ['"dispatch/operator_tables.h"', '"ops/shared/structured.h"', f'"ops/ops_decl_{family.name}.h"', f'"cpu/cpu_decl_{family.name}.h"']
    includes += plain_out_header(family)
    if any(_can_be_pinned(row) for row in family.rows):
        includes.append("<cresset/ops/pinned_memory.h>")
    return source(family.name, includes, body, "cresset")


def _kernels(pointwise):
    lines = []
    for row in pointwise:
        ident = row.main.ident
        tables = ", ".join(f".{member} = CRESSET_ISA_TABLE({ident}_{member})" for _, member in _loop_tables(row))
        lines.append(f"const cpu::PointwiseKernel {ident}_kernel{{.op = &ops::{ident}_op, {tables}}};\n")
    return "".join(lines)


def _pointwise_body(op):
    row = op.row
    ident = row.main.ident
    args = loop_arguments(row)
    lines = pointwise_call(row)
    params = "nullptr"
    if args:
        lines.append(f"const cpu::{ident}_args args{{{cpp.names(args)}}};")
        params = "&args"
    if op.form == "functional":
        return [*lines, f"return cpu::pointwise({ident}_kernel, call, {params});"]
    written = op.schema.written[0].name
    function = "pointwise_inplace" if op.form == "inplace" else "pointwise_out"
    if plain_out(op):
        lines.append(f"ops::prepare_plain_out(ops::{ident}_op, call, {written});")
    return [*lines, f"cpu::{function}({ident}_kernel, call, {params}, {written});", f"return {written};"]


def _structured_body(op):
    row = op.row
    count = len(row.schema.returns)
    args = cpp.functional_args(op)
    spec = lambda i: "spec" if count == 1 else f"spec[{i}]"
    lines = [f"{'auto' if row.get('out_shape') else 'const auto'} spec = ops::{row.get('shape')}({args});"]
    outs = _out_names(row)
    before = args + ", " if args else ""
    if op.form == "functional":
        new = f"cresset::detail::empty_host({{}}, {PINNED})" if _can_be_pinned(row) else "ops::allocate_cpu({})"
        lines += [f"Tensor {o} = {new.format(spec(i))};" for i, o in enumerate(outs)]
        lines.append(f"cpu::{row.get('kernel')}({before}{', '.join(outs)});")
        moved = ", ".join(f"std::move({o})" for o in outs)
        return [*lines, f"return {outs[0]};" if count == 1 else f"return {{{moved}}};"]
    if op.form == "inplace":
        lines += [f"ops::check_self(\"{op.schema.name}\", spec, self);", "const Tensor result = ops::allocate_cpu(spec);",
                  f"cpu::{row.get('kernel')}({before}result);", "ops::copy_data(result, self);", "return self;"]
        return lines
    inputs = cpp.tensor_inputs(op)
    lines += [f"ops::check_cpu({cpp.names(op.schema.out_args)});", *out_checks(op)]
    for i, o in enumerate(outs):
        late = row.get("late_errors")
        apart = "true" if late is True else late or " || ".join(f"ops::shares_storage({a.name}, {o})" for a in inputs) or "false"
        if plain_out(op):
            lines.append(f"ops::prepare_plain_out({spec(i)}, {o}, {apart});")
        lines.append(f"ops::OutBinding {o}_binding({spec(i)}, {o}, {apart});")
    targets = ", ".join(f"{o}_binding.target()" for o in outs)
    lines.append(f"cpu::{row.get('kernel')}({before}{targets});")
    lines += [f"{o}_binding.finish();" for o in outs]
    return [*lines, cpp.return_outs(op)]


# --- loops ------------------------------------------------------------------------------------------------------------


def _tensors(row):
    return [a.name for a in row.schema.args if a.type.is_tensor]


def _repeats_last(row):
    """Has the row loops whose last operand is one element? Where the arithmetic is so cheap that repeating it in memory would show."""
    return len(_tensors(row)) == 2 and row.get("dtype", "promote") in ("promote", "float", "compare") and "(" not in row.get("pointwise")


# Functions of scalar_math.h that are a few instructions.
_CHEAP = {"abs", "clamp_max", "clamp_min", "clamp_optional", "conj", "fmax", "fmin", "hardsigmoid", "hardswish", "hardtanh",
          "leaky_relu", "lerp", "maximum", "minimum", "pow_scalar", "quotient", "reciprocal", "relu", "rsqrt", "sqrt", "T"}  # fmt: skip
_OF_THE_SIGN = {"-self": "from_[i_] ^ 0x8000", "abs(self)": "from_[i_] & 0x7FFF"}  # what the expression is of the bits of a half type


def _is_reduced(row):
    """Has the row loops for Half and BFloat16 as they are in memory? Where the arithmetic is so cheap that blocks of floats would show."""
    cheap = _CHEAP.issuperset(re.findall(r"(\w+)\(", row.get("pointwise")))
    return cheap and row.get("dtype", "promote") in ("promote", "float", "abs") and "f" in row.get("types", "ifc")


def _loop_tables(row):
    """(type, member of PointwiseKernel) of the row's tables of loops, whose names are the row's with the member behind."""
    tables = [("PointwiseLoops", "loops")]
    if _repeats_last(row):
        tables.append(("PointwiseLoops", "repeating_loops"))
    if _is_reduced(row):
        tables.append(("ReducedLoops", "reduced_loops"))
    return tables


def _loops(family, pointwise):
    parts = ["namespace {\n\n"]
    for row in pointwise:
        parts.append(_loop(row, False))
        if _repeats_last(row):
            parts.append(_loop(row, True))
        if _is_reduced(row):
            parts += [_reduced_loop(row, repeating) for repeating in (False, True)[: 1 + _repeats_last(row)]]
    parts.append("}  // namespace\n\n")
    for row in pointwise:
        classes = row.get("types", "ifc")
        for kind, member in _loop_tables(row):
            name = f"{row.main.ident}_{member}"
            if kind == "PointwiseLoops":
                loops = [f"{name[:-1]}<{t}>" if c in classes else "nullptr" for c, t in COMPUTE_TYPES]
            else:
                loops = [f"{row.main.ident}_{loop}<{t}>" for loop in ("reduced_loop", "reduced_repeating_loop")[: 1 + _repeats_last(row)] for t in ("Half", "BFloat16")]
            entries = ", ".join(loops)
            parts.append(f"extern const {kind} {name};\nconst {kind} {name} = {{{entries}}};\n")
    includes = [f'"cpu/cpu_decl_{family.name}.h"', '"backends/cpu/pointwise_loops.h"']
    if family.scalar_header:
        includes.insert(1, f'"{family.scalar_header}"')
    return source(family.name, includes, "".join(parts), "cresset::cpu::CRESSET_ISA_NAMESPACE")


def _expression(row):
    """The row's expression; words that an argument is compared with become their places among its choices, so that loops compare numbers."""
    text = row.get("pointwise")
    for name, words in row.get("choices", {}).items():
        for i, word in enumerate(words):
            text = text.replace(f'{name} == "{word}"', f"{name} == {i}")
    return text


def _named_arguments(row):
    """The arguments of the row's args structure as constants of the loop."""
    args, lines = loop_arguments(row), []
    if args:
        lines.append(f"  const auto& args_ = *static_cast<const {row.main.ident}_args*>(params_);")
    for arg in args:
        get = "scalar_param<T>" if arg.type.base == "Scalar" else "choice_param" if arg.type.base == "str" else "other_param"
        choices = f", {arg.name}_choices, \"{arg.name} argument must be either {' or '.join(row.get('choices')[arg.name])}.\"" if arg.type.base == "str" else ""
        if choices:
            lines.append(f"  static constexpr std::string_view {arg.name}_choices[] = {{{', '.join(map(cpp.quote, row.get('choices')[arg.name]))}}};")
        lines.append(f"  [[maybe_unused]] const auto {arg.name} = {get}(args_.{arg.name}{choices});")
    return lines


def _promoting_arguments(row):
    """The numbers that take part in promotion as constants of the loop, behind the tensors' pointers."""
    lines = []
    for i, arg in enumerate(promoting_scalars(row)):
        at = f"ptrs_[{1 + len(_tensors(row)) + i}]"
        if arg.type.opt:
            lines.append(f"  const std::optional<T> {arg.name} = optional_param<T>({at});")
        else:
            lines.append(f"  const T {arg.name} = *static_cast<const T*>({at});")
    return lines


def _loop(row, repeating):
    """The loop template of one row; repeating: the last operand is one element. Its own variables end in `_`, so that they cannot
    meet an argument's name."""
    ident, rule = row.main.ident, row.get("dtype", "promote")
    function = f"{ident}_repeating_loop" if repeating else f"{ident}_loop"
    tensors = _tensors(row)
    args = loop_arguments(row)
    result = f"ResultType<PointwiseRule::{RULES[rule]}, T>"
    element = lambda i: "bool" if rule == "bool_first" and i == 0 else "T"
    lines = [f"template <class T>\nvoid {function}(void* const* ptrs_, int64_t n_, const void*{' params_' if args else ''}) {{",
             "  using namespace scalar_math;"]
    lines += [*_named_arguments(row), *_promoting_arguments(row)]
    # Bools are read as bytes, any of which but 0 is true: memory may hold others than 1, and g++ 12 does not vectorise a selection by a loaded bool.
    streams = tensors[:-1] if repeating else tensors
    if repeating:
        lines.append(f"  const T {tensors[-1]} = loaded<T>(*static_cast<const Stored<T>*>(ptrs_[{len(tensors)}]));")
    for i in range(len(streams)):
        lines.append(f"  const Stored<{element(i)}>* in{i}_ = static_cast<const Stored<{element(i)}>*>(ptrs_[{i + 1}]);")
    lines.append(f"  auto* out_ = static_cast<{result}*>(ptrs_[0]);")
    operands = [f"    [[maybe_unused]] const {element(i)} {name} = loaded<{element(i)}>(in{i}_[i_]);" for i, name in enumerate(streams)]

    def over(first, end, statement):
        return [f"  for (int64_t i_ = {first}; i_ < {end}; ++i_) {{", *operands, f"    {statement}", "  }"]

    def assign(expression):
        return f"out_[i_] = static_cast<{result}>({expression});"

    if quick := row.get("quick"):
        # The question is asked about all elements of a block before any result is written, which may be an operand's memory.
        kinds = "std::is_same_v<T, float>" if quick.get("of") == "float" else "std::is_floating_point_v<T>"
        lines += [f"  if constexpr ({kinds}) {{", "  for (int64_t first_ = 0; first_ < n_; first_ += kQuickBlock) {",
                  "  const int64_t end_ = n_ - first_ < kQuickBlock ? n_ : first_ + kQuickBlock;", "  QuickFlag<T> slow_ = 0;",
                  *over("first_", "end_", f"slow_ |= !({quick['when']});"), "  if (slow_ == 0) {", '  _Pragma("GCC ivdep")',
                  *over("first_", "end_", assign(quick["is"])), "  } else {", *over("first_", "end_", assign(quick.get("otherwise", _expression(row)))), "  }", "  }", "  return;", "  }"]  # fmt: skip
    lines += ['  _Pragma("GCC ivdep")', *over("0", "n_", assign(_expression(row))), "}\n\n"]
    return "\n".join(lines)


def _reduced_loop(row, repeating):
    """The loop of one row, all of whose operands and whose result are of type E in memory; arithmetic is float's. Repeating: the last
    operand is one float."""
    ident, tensors, args = row.main.ident, _tensors(row), loop_arguments(row)
    function = f"{ident}_reduced_repeating_loop" if repeating else f"{ident}_reduced_loop"
    lines = [f"template <class E>\nvoid {function}(void* const* ptrs_, int64_t n_, const void*{' params_' if args else ''}) {{"]
    if bits := _OF_THE_SIGN.get(row.get("pointwise")):
        lines += ["  const auto* const from_ = static_cast<const uint16_t*>(ptrs_[1]);", "  auto* const to_ = static_cast<uint16_t*>(ptrs_[0]);",
                  f"  for (int64_t i_ = 0; i_ < n_; ++i_) to_[i_] = static_cast<uint16_t>({bits});", "}\n\n"]  # fmt: skip
        return "\n".join(lines)
    streams = tensors[:-1] if repeating else tensors
    lines += ["  using namespace scalar_math;", "  using T [[maybe_unused]] = float;", *_named_arguments(row), *_promoting_arguments(row)]
    if repeating:
        lines.append(f"  const float {tensors[-1]} = *static_cast<const float*>(ptrs_[{len(tensors)}]);")
    lines += [f"  by_strips<E, {len(streams)}>(ptrs_, n_, [&](const float (&in_)[{len(streams)}][kStrip], float (&out_)[kStrip]) __attribute__((always_inline)) {{",
              "    for (int i_ = 0; i_ < kStrip; ++i_) {", *(f"      [[maybe_unused]] const float {name} = in_[{i}][i_];" for i, name in enumerate(streams)),
              f"      out_[i_] = static_cast<float>({_expression(row)});", "    }", "  });", "}\n\n"]  # fmt: skip
    return "\n".join(lines)
