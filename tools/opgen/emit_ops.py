"""Device-independent registrations: schemas, composites, defaults of devices, Meta kernels, device selection."""

import re

import cpp
import needs
from emit_functions import functions_of
from output import header, source

RULES = {"promote": "Promote", "float": "Float", "compare": "Compare", "to_bool": "ToBool", "abs": "Abs",
         "first": "First", "bool_first": "BoolFirst"}
CLASSES = {"b": "kBoolClass", "i": "kIntClass", "f": "kFloatClass", "c": "kComplexClass",
           "u": "kUnsignedClass", "e": "kFloat8Class", "h": "kComplexHalfClass"}


def emit(table, out):
    for family in table.families:
        out.add("ops", f"src/ops/ops_decl_{family.name}.h", _declarations(family))
        out.add("ops", f"src/ops/composites_{family.name}.cpp", Registrations(table, family).text())
        meta = Meta(table, family).text()
        if meta:
            out.add("ops", f"src/ops/meta_{family.name}.cpp", meta)
    rows = [row for row in table.rows() if row.kind == "pointwise" and has_facts(row)]
    body = "".join(f"CRESSET_API extern const PointwiseOp {r.main.ident}_op;\n" for r in rows)
    body += "".join(["\nArrayRef<const PointwiseOp*> pointwise_rows_with_facts() {\n  static const PointwiseOp* const rows[] = {",
                     ", ".join(f"&{r.main.ident}_op" for r in rows), "};\n  return rows;\n}\n"])
    body += "".join(["\nArrayRef<std::string_view> pointwise_names_with_facts() {\n  static const std::string_view names[] = {",
                     ", ".join(f'"{r.main.schema.name}{"." * bool(r.main.schema.overload)}{r.main.schema.overload}"' for r in rows), "};\n  return names;\n}\n"])
    out.add("ops", "src/ops/pointwise_rows.cpp", source(None, ['"ops/shared/pointwise.h"', '"ops/shared/pointwise_rows.h"'], body, "cresset::ops"))


# --- declarations -------------------------------------------------------------------------------------------------


def declared_functions(family):
    """(name, result, parameters, key of the row) of every hand-written function of namespace cresset::ops that rows name."""
    seen, out = set(), []

    def add(name, result, params, key="shape"):
        types = tuple(p.rsplit(" ", 1)[0] for p in params.split(", ") if p)
        if (name, types) not in seen:
            seen.add((name, types))
            out.append((name, result, params, key))

    for row in family.rows:
        op = row.main
        if row.kind == "structured":
            count = len(op.schema.returns)
            spec = "TensorSpec" if count == 1 else f"std::array<TensorSpec, {count}>"
            add(row.get("shape"), spec, op.schema.cpp_params())
        for key in ("composite", "explicit", "meta", "elsewhere"):
            if row.get(key) and cpp.is_name(row.get(key)):
                add(row.get(key), op.schema.cpp_return(), op.schema.cpp_params(), key)
        if row.get("check"):
            add(row.get("check"), "void", "const PointwiseOp& op, const PointwiseCall& call, ScalarType common", "check")
    return out


def _declarations(family):
    # Kernels are in a library of their own: what they share with Meta is exported.
    body = "".join(f"{'CRESSET_API ' if key in ('shape', 'meta') else ''}{result} {name}({params});\n" for name, result, params, key in declared_functions(family))
    body += "".join(f"{o.schema.cpp_return()} {foreach_loop(o)}({o.schema.cpp_params()});\n" for o in family.ops() if o.kind == "foreach")
    rows = [r for r in family.rows if r.kind == "pointwise"]
    includes = ["<cresset/core/tensor.h>"]
    if rows:
        includes.append('"ops/shared/pointwise.h"')
        body += "\n" + "".join(f"CRESSET_API extern const PointwiseOp {r.main.ident}_op;\n" for r in rows)
    return header(family.name, includes, body, "cresset::ops")


# --- pointwise call descriptions ------------------------------------------------------------------------------------


def promoting_scalars(row):
    return [a for a in row.schema.args if a.name in row.get("promotes", [])]


def other_scalars(row):
    return [a for a in row.schema.args if a.type.base == "Scalar" and a.name not in row.get("promotes", [])]


def out_dtype(row):
    """The rule for the types of out tensors in C++. Only pointwise operators cast unless the row says so; those that do not have words of theirs."""
    rule = row.get("out_dtype", "castable" if row.kind == "pointwise" else "exact")
    name = "ops::OutDtype::" + ("Exact" if rule == "argument" else rule.capitalize())
    words = row.get("out_words", "Found dtype {have} but expected {want}" if row.kind == "pointwise" and rule == "exact" else None)
    return f"ops::OutRule({name}, {cpp.quote(words)})" if words else name


def out_memory_checks(op):
    """Statements of an out form whose row has `out_memory`: whether outputs may share memory with an input."""
    rule = op.row.get("out_memory")
    return [f"ops::check_{rule}({a.name}, {o.name});" for o in op.schema.out_args for a in cpp.tensor_inputs(op)] if rule else []


def plain_out(op):
    """Is this the out form of a row whose fresh out tensors are contiguous?"""
    return op.form == "out" and op.row.get("out_strides") == "contiguous"


def plain_out_header(family):
    return ['"ops/shared/plain_out.h"'] if any(map(plain_out, family.ops())) else []


def out_checks(op):
    """Statements of a structured out form that come before anything is written; `spec` is what the shape function said."""
    count = len(op.row.schema.returns)
    checks = [f"ops::check_out(\"{op.schema.name}\", {'spec' if count == 1 else f'spec[{i}]'}.dtype, {o.name}, {out_dtype(op.row)});"
              for i, o in enumerate(op.schema.out_args)]
    kept = [f"ops::keep_shape(spec, {op.schema.out_args[0].name});"] if op.row.get("out_shape") else []
    return out_memory_checks(op) + checks + kept


def has_facts(row):
    return any(row.get(key) for key in ("follows", "refuses", "lacks", "shown", "equal_types", "check"))


def pointwise_facts(row):
    """The definition of a row's ops::PointwiseFacts, and the initialiser that names it; two empty texts for a row without."""
    if not has_facts(row):
        return "", ""
    ident, refusals, text = row.main.ident, [], ""
    for key, missing in (("refuses", "false"), ("lacks", "true")):
        for letters, words in row.get(key, {}).items():
            if letters != "any b":
                refusals.append(f"{{{' | '.join(CLASSES[c] for c in letters)}, {missing}, {cpp.quote(words)}}}")
    follows = list(map(cpp.quote, row.get("follows", [])))
    for name, type_, values in (("refusals", "Refusal", refusals), ("follows", "const char*", follows)):
        if values:
            text += f"static constexpr {type_} {ident}_{name}[] = {{{', '.join(values)}}};\n"
    word = lambda value: cpp.quote(value) if value else "nullptr"
    fields = [f"{{{ident}_refusals, {len(refusals)}}}" if refusals else "{}", word(row.get("refuses", {}).get("any b")), word(row.get("shown")),
              word(row.get("equal_types")), f"{{{ident}_follows, {len(follows)}}}" if follows else "{}",
              f"&{row.get('check')}" if row.get("check") else "nullptr"]
    return f"{text}static constexpr PointwiseFacts {ident}_facts{{{', '.join(fields)}}};\n", f", &{ident}_facts"


def pointwise_call(row):
    """Statements that define `call`, an ops::PointwiseCall, from the row's arguments."""
    tensors = [a.name for a in row.schema.args if a.type.is_tensor]
    lines = [f"const Tensor* const inputs[] = {{{', '.join('&' + t for t in tensors)}}};"]
    fields = [".inputs = inputs", f".num_inputs = {len(tensors)}"]
    scalars = promoting_scalars(row)
    if scalars:
        values = ", ".join(f"{a.name} ? &*{a.name} : nullptr" if a.type.opt else f"&{a.name}" for a in scalars)
        lines.append(f"const Scalar* const scalars[] = {{{values}}};")
        fields += [".scalars = scalars", f".num_scalars = {len(scalars)}"]
    checked = [a for a in other_scalars(row) if not a.type.opt]
    if checked:
        values = ", ".join(f"{{\"{a.name}\", &{a.name}{', true' if a.name in row.get('follows', []) else ''}}}" for a in checked)
        lines.append(f"const ops::CheckedScalar checked[] = {{{values}}};")
        fields += [".checked = checked", f".num_checked = {len(checked)}"]
    lines.append(f"const ops::PointwiseCall call{{{', '.join(fields)}}};")
    return lines


# --- lists of tensors -------------------------------------------------------------------------------------------------


def foreach_loop(op):
    """The function of namespace cresset::ops that is the loop of a `foreach` operator: its kernel, and what autograd records."""
    return f"loop{op.ident}"


def foreach_body(table, op):
    """The loop over lists. The row names an operator, or a function of cresset::ops, that gets one element of each list."""
    schema, function = op.schema, op.row.get("foreach")
    lists = [a for a in schema.in_args if a.type.is_list]
    first = next(a for a in lists if a.type.is_tensor)
    known = {(o.schema.name, o.schema.is_out) for o in table.ops()}
    lines = [f"check_foreach({', '.join([first.name, *(a.name for a in lists if a is not first)])});"]
    lines += [f"check_foreach_scalar({a.name});" for a in schema.tensor_args if a.type.plain_tensor]
    element = lambda a: f"{a.name}[i]" if a.type.is_list else a.name
    args = ", ".join(element(a) for a in schema.in_args)
    value = f"{'cresset::' if (function, False) in known else ''}{function}({args})"
    loop = f"for (std::size_t i = 0; i < {first.name}.size(); ++i)"
    computed = ["std::vector<Tensor> result;", f"result.reserve({first.name}.size());", f"{loop} result.push_back({value});"]
    if op.form == "functional":
        return [*lines, *computed, "return result;"]
    written = op.schema.written[0].name
    if op.form == "out":
        lines.insert(1, f"check_foreach({first.name}, {written});")
        return [*lines, *computed, f"copy_to_out(\"{schema.name}\", result, {written}, {out_dtype(op.row)});"]
    changed = function if not op.derived else function + "_"
    args = ", ".join(["target", *(element(a) for a in schema.in_args if a.name != written)])
    if (changed, False) in known:
        store = f"cresset::{changed}({args});"
    elif (function, True) in known:
        tensor_lists = [element(a) for a in schema.in_args if a.type.is_tensor]
        store = (f"if (is_recorded({', '.join(tensor_lists)}))\n      copy_to_{written}(\"{schema.name}\", {value}, target);\n"
                 f"    else\n      cresset::{function}_outf({args}, target);")
    else:
        store = f"copy_to_{written}(\"{schema.name}\", {value}, target);"
    changing = [f"{loop} {{", f"  Tensor target = {written}[i];", f"  {store}", "}"]
    if not op.derived:
        early = [f"check_foreach_copy({first.name}, src);"] if function == "copy_" else []
        return [*lines, *early, *changing]
    # Where a later member could be refused, all are tried before the first is written.
    together = ", ".join(a.name for a in lists)
    return [*lines, f"if (!foreach_alike({together})) {{", *computed, f"foreach_check(\"{schema.name}\", result, {written});", "}", *changing]


# --- composites and defaults ------------------------------------------------------------------------------------------


class Registrations:
    """composites_<family>.cpp: what every backend shares."""

    def __init__(self, table, family):
        self.table, self.family = table, family
        self.code, self.tables = [], {}

    def register(self, key, op, function):
        self.tables.setdefault(key, []).append((op, function))

    def local(self, op, body, prefix):
        name = f"{prefix}_{op.ident}"
        self.code.append(cpp.define_kernel(op, name, body))
        return cpp.kernel(name)

    def text(self):
        for row in self.family.rows:
            for op in row.ops:
                if op.alias_of:
                    self.alias(op)
                elif row.kind == "foreach":
                    self.register("CompositeExplicitAutograd", op, self.local(op, cpp.forward(op, f"ops::{foreach_loop(op)}"), "composite"))
                elif "::" in row.get("elsewhere", ""):
                    self.register("CompositeExplicitAutograd", op, self.local(op, self.with_tensors_for_numbers(op), "elsewhere"))
                elif op is row.main:
                    self.main(op)
                else:
                    self.derived(op)
                if op.schema.is_factory and not cpp.tensor_inputs(op) and not op.implicit:
                    self.select(op)
        ops = "".join(self.pointwise_op(r) for r in self.family.rows if r.kind == "pointwise")
        foreach = [o for o in self.family.ops() if o.kind == "foreach" and not o.alias_of]
        ops += "\n".join(cpp.define(o, foreach_loop(o), foreach_body(self.table, o)) for o in foreach)
        body = (f"namespace ops {{\n\n{ops}\n}}  // namespace ops\n\n" if ops else "")
        body += "namespace {\n\n" + "\n".join(self.code) + "\n}  // namespace\n\n"
        body += "".join(cpp.impl_blocks(key, entries) for key, entries in self.tables.items())
        body = self.own_functions(body) + body
        return source(self.family.name, [*needs.headers(self.table, body), '"dispatch/operator_tables.h"', '"ops/shared/structured.h"',
                                         f'"ops/ops_decl_{self.family.name}.h"', *(['"ops/foreach.h"'] if foreach else []),
                                         *(['"ops/shared/promotion.h"'] if "wrapped_scalar_tensor" in body else [])],
                      body, "cresset")

    def own_functions(self, body):
        """Declarations of what the text calls of its own family: with them a new row changes no header that others include (tree_view)."""
        called = set(re.findall(r"\bcresset::(\w+)\(", body))
        return "".join(f"CRESSET_API {f.declaration(defaults=False)};\n" for op in self.family.ops() for f in functions_of(op) if f.name in called)

    def pointwise_op(self, row):
        classes = " | ".join(CLASSES[c] for c in row.get("types", "ifc"))
        rule = RULES[row.get("dtype", "promote")]
        facts, given = pointwise_facts(row)
        return f"{facts}const PointwiseOp {row.main.ident}_op{{\"{row.schema.name}\", PointwiseRule::{rule}, {classes}, {out_dtype(row)}{given}}};\n"

    def alias(self, op):
        target = cpp.api_name(op.alias_of)
        self.register("CompositeImplicitAutograd", op, self.local(op, [f"return {cpp.call(target, op.schema.args)};"], "alias"))

    def main(self, op):
        row = op.row
        if row.kind in ("composite", "explicit"):
            key = "CompositeImplicitAutograd" if row.kind == "composite" else "CompositeExplicitAutograd"
            text = row.get(row.kind)
            if cpp.is_name(text):
                self.register(key, op, self.local(op, cpp.forward(op, f"ops::{text}"), "composite"))
            else:
                body = [f"return {text};" if op.schema.returns else f"{text};"]
                self.register(key, op, self.local(op, body, "expression"))
        elif row.get("elsewhere"):
            self.register("CompositeExplicitAutograd", op, self.local(op, self.by_parts(op), "elsewhere"))
        elif row.kind in ("structured", "pointwise") and row.form("out"):
            self.register("CompositeExplicitAutogradNonFunctional", op, self.local(op, self.device_default(op), "device"))

    def by_parts(self, op):
        """What a device composes refuses what the kernel refuses, and has its type."""
        row, parts = op.row, cpp.call(f"ops::{op.row.get('elsewhere')}", op.schema.args)
        if row.kind == "pointwise":
            types = f"const auto types = ops::pointwise_types(ops::{row.main.ident}_op, call);"
            return [*pointwise_call(row), types, f"return {parts}.to(types.result);"]
        return [f"static_cast<void>(ops::{row.get('shape')}({cpp.names(op.schema.args)}));", f"return {parts};"]

    def with_tensors_for_numbers(self, op):
        """Calls the same form of the operator that takes tensors where this one takes numbers."""
        row = op.row
        main = self.table.by_key.get(row.get("elsewhere"))
        target = main and main.row.form(op.form)
        if not target or len(target.schema.args) != len(op.schema.args):
            raise row.error(f"'elsewhere': {row.get('elsewhere')} has no {op.form} form with these arguments.", "elsewhere")
        lifted = lambda a, b: f"ops::wrapped_scalar_tensor({a.name})" if a.type.base == "Scalar" and b.type.base == "Tensor" else a.name
        args = ", ".join(lifted(a, b) for a, b in zip(op.schema.args, target.schema.args))
        return [f"return {cpp.api_name(target)}({args});"]

    def device_default(self, op):
        """Allocates on the device and calls the out form there."""
        row, out_op = op.row, op.row.form("out")
        outs = out_op.schema.out_args
        args = [a.name for a in out_op.schema.in_args]
        target = cpp.api_name(out_op)
        if row.kind == "pointwise":
            return [*pointwise_call(row), f"Tensor out = ops::pointwise_allocate(ops::{row.main.ident}_op, call);",
                    f"{target}({', '.join([*args, 'out'])});", "return out;"]
        shape = f"ops::{row.get('shape')}({cpp.names(op.schema.args)})"
        device = cpp.first_device(op) or ("spec.device" if len(outs) == 1 else "spec[0].device")
        lines = [f"const auto spec = {shape};"]
        if len(outs) == 1:
            lines.append(f"Tensor out = ops::allocate(spec, {device});")
            return [*lines, f"{target}({', '.join([*args, 'out'])});", "return out;"]
        for i, o in enumerate(outs):
            lines.append(f"Tensor {o.name} = ops::allocate(spec[{i}], {device});")
        moved = ", ".join(f"std::move({o.name})" for o in outs)
        return [*lines, f"{target}({', '.join([*args, *(o.name for o in outs)])});", f"return {{{moved}}};"]

    def derived(self, op):
        row = op.row
        functional = f"cresset::{row.schema.name}({cpp.functional_args(op)})"
        if row.kind in ("structured", "pointwise") and not row.get("elsewhere"):
            if op.form != "inplace" or not row.form("out"):
                return
            out_op = row.form("out")
            args = ", ".join([a.name for a in out_op.schema.in_args])
            if row.kind == "pointwise":
                # An out tensor may change its size, self may not.
                body = [*pointwise_call(row), f"ops::pointwise_prepare_out(ops::{row.main.ident}_op, call, self, true);",
                        f"return {cpp.api_name(out_op)}({args}, self);"]
            else:
                body = [f"ops::copy_to_self(\"{op.schema.name}\", {functional}, self);", "return self;"]
            self.register("CompositeExplicitAutogradNonFunctional", op, self.local(op, body, "device"))
            return
        key = "CompositeImplicitAutograd" if row.kind == "composite" else "CompositeExplicitAutograd"
        if op.form == "inplace":
            if row.kind == "composite":
                functional = cpp.functional_above(op)
            body = [f"ops::copy_to_self(\"{op.schema.name}\", {functional}, self);", "return self;"]
        else:
            written = [a for a in row.schema.args if a.name in row.get("writes", ()) or a.type.write and a.type.base == "Tensor" and not a.type.is_list]
            apart = [f"auto {a.name}_apart = ops::copied_apart({a.name});" for a in written]
            for a in written:
                functional = re.sub(rf"\b{a.name}\b", f"{a.name}_apart.copy", functional)
            body = [*out_memory_checks(op), *apart, f"const auto computed = {functional};", *self.stored(op),
                    *(f"{a.name}_apart.store();" for a in written), cpp.return_outs(op)]
        if row.kind != "composite" and row.get("autocast"):  # which casts for the functional form alone
            body.insert(0, "const cresset::impl::ExcludeDispatchKeyGuard as_given(cresset::autocast_dispatch_keyset);")
        self.register(key, op, self.local(op, body, "derived"))

    @staticmethod
    def stored(op):
        """Statements that check all out tensors and then store `computed` in them."""
        outs, rule, name = op.schema.out_args, out_dtype(op.row), op.schema.name
        strided = lambda pairs: [
            f"ops::prepare_out({{{v}.sizes(), {v}.scalar_type(), {v}.device(), DimVector({v}.strides())}}, {out});"
            for v, out in pairs if op.row.get("out_strides")]
        if len(outs) == 1:
            computed = f"ops::shaped_as(computed, {outs[0].name})" if op.row.get("out_shape") else "computed"
            check = [f"ops::check_result_out(\"{name}\", computed, {outs[0].name}, {rule});"] if op.row.get("out_strides") else []
            return [*check, *strided([("computed", outs[0].name)]), f"ops::copy_to_out(\"{name}\", {computed}, {outs[0].name}, {rule});"]
        pairs = [(f"std::get<{i}>(computed)", o.name) for i, o in enumerate(outs)]
        return [*(f"ops::check_result_out(\"{name}\", {value}, {out}, {rule});" for value, out in pairs), *strided(pairs),
                *(f"ops::store_out({value}, {out});" for value, out in pairs)]

    def select(self, op):
        args = ", ".join(["DispatchKeySet(backendKey(device_or_default(device).type()))", cpp.names(op.schema.args)])
        self.register("BackendSelect", op, self.local(op, [f"return redispatch::{op.ident}({args});"], "select"))


# --- Meta ---------------------------------------------------------------------------------------------------------------


class Meta:
    """meta_<family>.cpp: kernels of the Meta backend, from shape functions and the pointwise rule."""

    def __init__(self, table, family):
        self.table, self.family = table, family
        self.code, self.entries = [], []

    def text(self):
        for row in self.family.rows:
            for op in row.ops:
                if op.alias_of:
                    continue
                if row.kind == "pointwise":
                    self.add(op, self.pointwise(op))
                elif row.kind == "structured":
                    self.add(op, self.structured(op))
                elif row.get("meta") and op is row.main:
                    self.add(op, cpp.forward(op, f"ops::{row.get('meta')}"))
        if not self.entries:
            return None
        body = "namespace {\n\n" + "\n".join(self.code) + "\n}  // namespace\n\n" + cpp.impl_blocks("Meta", self.entries)
        return source(self.family.name, ['"dispatch/operator_tables.h"', '"ops/shared/structured.h"', f'"ops/ops_decl_{self.family.name}.h"',
                                         *plain_out_header(self.family)], body, "cresset")

    def add(self, op, body):
        name = f"meta_{op.ident}"
        self.code.append(cpp.define_kernel(op, name, body))
        self.entries.append((op, cpp.kernel(name)))

    def pointwise(self, op):
        row = op.row
        lines = pointwise_call(row)
        target = f"ops::{row.main.ident}_op"
        if op.form == "functional":
            return [*lines, f"return ops::pointwise_allocate({target}, call);"]
        written = op.schema.written[0].name
        if plain_out(op):
            return [*lines, f"ops::prepare_plain_out({target}, call, {written});", f"return {written};"]
        inplace = "true" if op.form == "inplace" else "false"
        return [*lines, f"ops::pointwise_prepare_out({target}, call, {written}, {inplace});", f"return {written};"]

    def structured(self, op):
        row = op.row
        count = len(row.schema.returns)
        lines = [f"{'auto' if row.get('out_shape') else 'const auto'} spec = ops::{row.get('shape')}({cpp.functional_args(op)});"]
        if op.form == "functional":
            if count == 1:
                return [*lines, "return ops::allocate_meta(spec);"]
            return [*lines, "return {" + ", ".join(f"ops::allocate_meta(spec[{i}])" for i in range(count)) + "};"]
        if op.form == "inplace":
            return [*lines, f"ops::check_self(\"{op.schema.name}\", spec, self);", "return self;"]
        lines += out_checks(op)
        prepare = "ops::prepare_plain_out({}, {}, false);" if plain_out(op) else "ops::prepare_out({}, {});"
        lines += [prepare.format("spec" if count == 1 else f"spec[{i}]", o.name) for i, o in enumerate(op.schema.out_args)]
        return [*lines, cpp.return_outs(op)]
