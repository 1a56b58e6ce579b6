"""Autograd and ADInplaceOrView kernels of every operator that is not a composite of others."""

import cpp
import needs
from emit_jvp import ForwardMode
from emit_nodes import node_class, zero_node_class
from emit_ops import foreach_loop
from formulas import Derivative, FormulaError
from output import header, source
from table import TableError

# Operators that change what a tensor is and not only its values. Their kernels for these two keys are written by hand
# in src/autograd/manual_kernels.cpp.
HAND_WRITTEN = {"detach_", "resize_", "resize_as_", "set_"}


def emit(table, out):
    errors = []
    for family in table.families:
        kernels = Kernels(table, family, errors)
        for row in family.rows:
            if row.kind == "composite" or row.schema.name in HAND_WRITTEN:
                continue
            for op in row.ops:
                if not op.alias_of:
                    kernels.operator(op)
        out.add("autograd", f"src/autograd/nodes_{family.name}.h",
                header(family.name, ['"autograd/generated_support.h"'], "\n".join(kernels.declarations), "cresset::autograd::generated"))
        if kernels.entries or kernels.view_entries or kernels.fallthrough:
            out.add("autograd", f"src/autograd/autograd_{family.name}.cpp", kernels.text())
    if errors:
        raise TableError("\n".join(errors))


def owned(arg):
    """An expression that copies an argument into a type of its own."""
    t, name = arg.type, arg.name
    if t.is_tensor:
        return f"{name}.vec()" if t.is_list else name
    if t.base == "str":
        return f"std::optional<std::string>({name})" if t.opt else f"std::string({name})"
    if t.cpp_owned().startswith("std::vector"):
        return f"{name}.vec()"
    if t.cpp_owned().startswith("std::optional<std::vector"):
        return f"{name}.has_value() ? {t.cpp_owned()}({name}->vec()) : std::nullopt"
    return name


class Kernels:
    """autograd_<family>.cpp."""

    def __init__(self, table, family, errors):
        self.table, self.family, self.errors = table, family, errors
        self.declarations, self.definitions, self.code = [], [], []
        self.entries, self.view_entries, self.fallthrough = [], [], []
        self.nodes, self.shares_functions = set(), False  # does the code call functions of cresset::ops?

    def text(self):
        body = "using namespace formulas;\n\n"
        body += "".join(self.definitions) + "namespace {\n\n" + "\n".join(self.code) + "\n}  // namespace\n\n"
        body += cpp.impl_blocks("Autograd", self.entries + [(op, cpp.FALLTHROUGH) for op in self.fallthrough])
        body += cpp.impl_blocks("ADInplaceOrView", self.view_entries)
        tangent = ['"autograd/tangent.h"'] if "Tangent::of" in body else []
        includes = [*needs.headers(self.table, body), *needs.formula_headers(self.table, body), *tangent, '"autograd/writing.h"',
                    f'"autograd/nodes_{self.family.name}.h"', *([f'"ops/ops_decl_{self.family.name}.h"', '"ops/shared/structured.h"'] if self.shares_functions else [])]
        return source(self.family.name, includes, body, "cresset::autograd::generated")

    # --- which kernels an operator gets -------------------------------------------------------------------------------

    def operator(self, op):
        row, schema = op.row, op.schema
        if not schema.tensor_args:
            return
        if all(a.type.plain_tensor for a in schema.written) and schema.written:
            self.view_entries.append((op, cpp.kernel_of_several(f"Writing<{schema.cpp_signature()}>::bump_versions")))
        elif schema.written:
            self.add_view(op, self.bump_version(op))
        elif schema.is_view:
            self.add_view(op, self.as_view(op))
        if op.form == "out" and all(a.type.plain_tensor for a in schema.out_args):
            checked = "outs" if row.all_nondiff else "tensors"
            self.entries.append((op, cpp.kernel_of_several(f"Writing<{schema.cpp_signature()}>::refuse_recorded_{checked}")))
        elif op.form == "out":
            self.add(op, self.out_kernel(op))
        elif row.kind == "foreach":
            self.shares_functions = True
            self.add(op, self.foreach_kernel(op))
        elif op.form == "inplace" and not schema.returns:  # optimiser steps
            self.fallthrough.append(op)
        elif not schema.written and (row.all_nondiff or not any(r.type.is_tensor for r in schema.returns)):
            self.fallthrough.append(op)
        elif row.get("through_parts") and not row.differentiable:
            self.add(op, self.through_parts(op))
        elif row.differentiable:
            self.differentiable(op)
        elif op.form == "inplace":
            self.add(op, self.inplace_without_formula(op))
        elif schema.written:
            self.fallthrough.append(op)
        else:
            self.add(op, self.not_implemented(op))

    def add(self, op, body):
        name = f"autograd_{op.ident}"
        self.code.append(cpp.define_kernel(op, name, body))
        self.entries.append((op, cpp.kernel(name)))

    def add_view(self, op, body):
        name = f"view_{op.ident}"
        self.code.append(cpp.define_kernel(op, name, body))
        self.view_entries.append((op, cpp.kernel(name)))

    def add_node(self, row, pair):
        if row.node not in self.nodes:
            self.nodes.add(row.node)
            self.declarations.append(pair[0])
            self.definitions.append(pair[1])

    # --- shared pieces ------------------------------------------------------------------------------------------------

    def redispatch(self, op, keys="after_autograd_keyset"):
        args = cpp.names(op.schema.args)
        return f"redispatch::{op.ident}(ks & {keys}{', ' + args if args else ''})"

    def bump_version(self, op):
        call = self.redispatch(op, "after_ADInplaceOrView_keyset")
        checks = [f"check_write({a.name});" for a in op.schema.written]
        bumps = [f"increment_version({a.name});" for a in op.schema.written]
        if op.form in ("inplace", "out") or not op.schema.returns:
            end = cpp.return_outs(op) if op.schema.returns else "return;"
            return [*checks, "{", "  AutoDispatchBelowADInplaceOrView guard;", f"  {call};", "}", *bumps, end]
        return [*checks, f"auto result = [&] {{ AutoDispatchBelowADInplaceOrView guard; return {call}; }}();", *bumps, "return result;"]

    def as_view(self, op):
        schema = op.schema
        base = schema.view_base.name
        captures = ["i"] if schema.returns[0].type.is_list else []
        captures += [f"{a.name} = {owned(a)}" for a in schema.args if a.name != base]
        used = ", ".join("base_" if a.name == base else a.name for a in schema.args)
        call = self.redispatch(op, "after_ADInplaceOrView_keyset")
        lines = [f"auto result = [&] {{ AutoDispatchBelowADInplaceOrView guard; return {call}; }}();"]
        replay = f"return [{', '.join(captures)}](const Tensor& base_) {{ return cresset::{schema.name}({used})"
        if schema.returns[0].type.is_list:
            if op.row.all_nondiff:
                lines.append(f"as_view_list({base}, result, false, false, [](std::size_t) {{ return no_replay(); }});")
            else:
                lines.append(f"as_view_list({base}, result, true, true, [&](std::size_t i) -> ViewReplay {{ {replay}[i]; }}; }});")
            return [*lines, "return result;"]
        if op.row.all_nondiff:
            return [*lines, f"return as_view({base}, std::move(result), false, false, no_replay);"]
        return [*lines, f"return as_view({base}, std::move(result), true, true, [&]() -> ViewReplay {{ {replay}; }}; }});"]

    def out_kernel(self, op):
        schema = op.schema
        inputs = cpp.tensor_inputs(op) if not op.row.all_nondiff else []
        checked = cpp.names([*inputs, *schema.out_args])
        return [f"if (CRESSET_UNLIKELY(compute_requires_grad({checked}))) throw_error_out_requires_grad(\"{schema.name}\");",
                f"if (CRESSET_UNLIKELY(any_fw_grad({checked}))) throw_error_out_fw_grad(\"{schema.name}\");",
                f"return {self.redispatch(op)};"]

    def fast_path(self, op):
        names = cpp.names(op.schema.tensor_args)
        # An integral tensor that is changed in place stays outside of the graph.
        tracked = " && isDifferentiableType(self.scalar_type())" if op.form == "inplace" else ""
        return [f"const bool any_requires_grad = compute_requires_grad({names}){tracked};", f"const bool any_fw = any_fw_grad({names});",
                f"if (CRESSET_LIKELY(!any_requires_grad && !any_fw)) return {self.redispatch(op)};"]

    def foreach_kernel(self, op):
        """A loop whose elements need recording runs above autograd, where each element records itself; others run below."""
        schema = op.schema
        names = cpp.names(schema.tensor_args)
        recorded = f"ops::{foreach_loop(op)}({cpp.names(schema.args)})"
        lines = [f"const bool any_requires_grad = compute_requires_grad({names});",
                 f"if (CRESSET_UNLIKELY(any_requires_grad || any_fw_grad({names}))) {{"]
        if op.form == "inplace":
            return [*lines, "  check_inplace(self, any_requires_grad);", f"  return {recorded};", "}", f"{self.redispatch(op)};"]
        return [*lines, f"  return {recorded};", "}", "AutoDispatchBelowADInplaceOrView guard;", f"return {self.redispatch(op)};"]

    def parts(self, op):
        """The statements of an operator above autograd: its function's parts record themselves."""
        self.shares_functions = True
        row = op.row
        if op.form == "inplace" and op.derived:
            return [f"ops::copy_to_self(\"{op.schema.name}\", {cpp.functional_above(op)}, self);", "return self;"]
        text = row.get("explicit")
        return cpp.forward(op, f"ops::{text}") if cpp.is_name(text) else [f"return {text};"]

    def through_parts(self, op):
        lines = self.fast_path(op)
        if op.form == "inplace":
            lines.append("check_inplace(self, any_requires_grad);")
        return [*lines, *self.parts(op)]

    def tangents_through_parts(self, op):
        return ["if (any_fw) {", *("  " + line for line in self.parts(op)), "}"] if op.row.get("through_parts") else []

    def not_implemented(self, op):
        schema = op.schema
        lines = self.fast_path(op)
        lines.append(f"if (any_fw) throw_error_no_forward_ad(\"{schema.full_name}\");")
        lines.append(f"auto node = not_implemented_node(\"{schema.full_name}\", collect_next_edges({cpp.names(schema.tensor_args)}));")
        lines.append(f"auto result = [&] {{ AutoDispatchBelowAutograd guard; return {self.redispatch(op)}; }}();")
        if len(schema.returns) == 1:
            lines.append("set_history(result, node);")
        else:
            lines += [f"set_history(std::get<{i}>(result), node);" for i, (n, r) in enumerate(zip(schema.result_names, schema.returns))
                      if r.type.is_tensor and n not in op.row.nondiff]
        return [*lines, "return result;"]

    def inplace_without_formula(self, op):
        """In place on a tensor with history: no gradient flows back when the row says nondiff, else an error node."""
        edges = f"collect_next_edges({cpp.names(op.schema.tensor_args)})"
        lines = self.fast_path(op)
        lines.append("check_inplace(self, any_requires_grad);")
        lines.append("std::shared_ptr<Node> node;")
        if op.row.all_nondiff:
            self.add_node(op.row, zero_node_class(op.row))
            lines.append(f"if (any_requires_grad) node = make_node<{op.row.node}>({edges});")
        else:
            lines.append(f"if (any_fw) throw_error_no_forward_ad(\"{op.schema.full_name}\");")
            lines.append(f"if (any_requires_grad) node = not_implemented_node(\"{op.schema.full_name}\", {edges});")
        lines += ["{", "  AutoDispatchBelowAutograd guard;", f"  {self.redispatch(op)};", "}",
                  "if (node) rebase_history(self, std::move(node));"]
        if op.row.all_nondiff:
            lines.append("if (any_fw) set_fw_grad(self, cresset::zeros_like(self), true);")
        return [*lines, "return self;"]

    # --- operators with formulas ----------------------------------------------------------------------------------------

    def differentiable(self, op):
        row = op.row
        try:
            d = Derivative(row, op.form)
            d.check_jvp()
            self.add_node(row, node_class(row, d))
            forward = ForwardMode(op, d, op.form == "inplace")
            body = self.inplace(op, d, forward) if op.form == "inplace" else self.functional(op, d, forward)
        except FormulaError as error:
            self.errors.append(str(row.error(str(error), "grad")))
            return
        self.add(op, body)

    def make_node(self, op, d, original=None):
        """The block that makes the node and saves what is known before the call."""
        lines, names = [], {i.name for i in d.inputs}
        for a in op.schema.tensor_args:
            if a.name not in names:
                lines.append(f"CRESSET_CHECK_NOT_IMPLEMENTED(!compute_requires_grad({a.name}), \"{op.schema.name}: the derivative for "
                             f"'{a.name}' is not implemented; a tensor that does not require grad was required.\");")
        lines.append(f"node = make_node<{op.row.node}>(collect_next_edges({cpp.names(d.inputs)}));")
        lines += [f"node->{a.name}_count_ = {a.name}.size();" for a in d.inputs if a.type.is_list]
        for s in d.saved.values():
            if not s.after:
                lines += self.save(op, d, s, original)
        return [f"std::shared_ptr<{op.row.node}> node;", "if (any_requires_grad) {", *("  " + x for x in lines), "}"]

    def save(self, op, d, s, original=None):
        if not s.is_tensor:
            return [f"node->{s.member} = {owned(s.arg) if s.arg else s.expr};"]
        value = original if original and s.source == "self" and not s.output else s.expr
        if s.kind in ("tensors", "optional_tensors"):
            text = f"node->{s.member} = make_saved_variable_list({value});"
        else:
            # An output that never requires grad has no history, so nothing ties it to the node.
            output = s.output and s.source not in op.row.nondiff
            view = ", self.is_view()" if output and op.form == "inplace" else ""
            text = f"node->{s.member} = SavedVariable({value}, {'true' if output else 'false'}{view});"
        # A tensor that only some formulas read is not kept alive when those gradients are not wanted.
        if len(s.users) == len(d.formulas):
            return [text]
        conditions = []
        for n in [n for i in sorted(s.users) for n in d.formulas[i].inputs]:
            start, count = d.offset(n)
            if count or "_count_" in start:
                return [text]
            conditions.append(f"node->should_compute_output({start})")
        return [f"if ({' || '.join(conditions)}) {text}"]

    def functional(self, op, d, forward):
        schema = op.schema
        lines = self.fast_path(op) + self.tangents_through_parts(op) + self.make_node(op, d)
        guard = "AutoDispatchBelowAutograd" if schema.is_view or schema.written else "AutoDispatchBelowADInplaceOrView"
        single = len(schema.returns) == 1
        target = schema.result_names[0] if single else "result_tuple"
        lines.append(f"auto {target} = [&] {{ {guard} guard; return {self.redispatch(op)}; }}();")
        if not single:
            lines += [f"[[maybe_unused]] auto& {n} = std::get<{i}>(result_tuple);" for i, n in enumerate(schema.result_names)]
        tensors = {n for n, r in zip(schema.result_names, schema.returns) if r.type.is_tensor}
        recorded = [n for n in d.diff_outputs if n in tensors]
        late = [x for s in d.saved.values() if s.after for x in self.save(op, d, s)]
        if len(recorded) == 1 and not late:
            lines.append(f"if (node) set_history({recorded[0]}, std::move(node));" if not schema.returns[0].type.is_list
                         else f"if (node) set_history({recorded[0]}, node);")
        else:
            lines += ["if (node) {", *(f"  set_history({n}, node);" for n in recorded), "}"]
        return [*lines, *forward.after, *self.save_results(late), f"return {target};"]

    def inplace(self, op, d, forward):
        lines = self.fast_path(op)
        lines.append("check_inplace(self, any_requires_grad);")
        lines += self.tangents_through_parts(op)
        original = None
        if d.uses_self_tensor() or forward.needs_original:
            original = "original_self"
            conditions = (["any_requires_grad"] if d.uses_self_tensor() else []) + (["any_fw"] if forward.needs_original else [])
            lines.append("Tensor original_self;")
            lines.append(f"if ({' || '.join(conditions)}) original_self = self.clone();")
        lines += self.make_node(op, d, original)
        lines += forward.before
        lines += ["{", "  AutoDispatchBelowAutograd guard;", f"  {self.redispatch(op)};", "}"]
        late = [s for s in d.saved.values() if s.after]
        if late:
            lines.append("if (node) rebase_history(self, node);")
        elif "inplace_view" in op.row.tags:
            # The elements of a view's base stay as they are: only the view has another place in the graph.
            lines += ["if (node) {", "  const uint32_t nr = node->add_input_metadata(self);",
                      "  impl::set_gradient_edge(self, Edge(std::move(node), nr));", "}"]
        else:
            lines.append("if (node) rebase_history(self, std::move(node));")
        saves = [x for s in late for x in self.save(op, d, s)]
        if late:
            saves.insert(0, f"[[maybe_unused]] const Tensor& {late[0].source} = self;")
        return [*lines, *forward.after, *self.save_results(saves), "return self;"]

    @staticmethod
    def save_results(lines):
        """Results are saved when they have their tangents, so that forward mode can pass through backward."""
        return ["if (node) {", *("  " + x for x in lines), "}"] if lines else []
