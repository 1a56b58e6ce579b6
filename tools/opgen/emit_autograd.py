"""Autograd and ADInplaceOrView kernels of every operator that is not a composite of others."""

import cpp
from emit_jvp import forward_mode
from emit_nodes import node_class
from formulas import Derivative, FormulaError
from output import header, source

KS = "DispatchKeySet ks"
# Operators that change what a tensor is, not its values: their autograd kernels are written by hand in src/autograd.
HAND_WRITTEN = {"detach", "detach_", "resize_", "resize_as_", "set_", "requires_grad_", "_fw_primal", "_make_dual", "_unpack_dual", "_backward"}


def emit(table, out):
    errors = []
    for family in table.families:
        nodes, kernels = [], Kernels(family, errors)
        for row in family.rows:
            if row.kind == "composite" or row.schema.name in HAND_WRITTEN:
                continue
            for op in row.ops:
                if not op.alias_of:
                    kernels.operator(op)
        if errors:
            continue
        out.add("autograd", f"src/autograd/nodes_{family.name}.h",
                header(family.name, ['"autograd/generated_support.h"'], "\n".join(kernels.declarations), "cresset::autograd::generated"))
        if kernels.entries or kernels.view_entries or kernels.fallthrough:
            out.add("autograd", f"src/autograd/autograd_{family.name}.cpp", kernels.text())
    if errors:
        from table import TableError
        raise TableError("\n".join(errors))


class Kernels:
    """autograd_<family>.cpp."""

    def __init__(self, family, errors):
        self.family, self.errors = family, errors
        self.declarations, self.definitions, self.code = [], [], []
        self.entries, self.view_entries, self.fallthrough = [], [], []
        self.nodes = {}

    def text(self):
        body = "".join(self.definitions) + "namespace {\n\n" + "\n".join(self.code) + "\n}  // namespace\n\n"
        body += cpp.impl_blocks("Autograd", self.entries + [(op, "CppFunction::makeFallthrough()") for op in self.fallthrough])
        body += cpp.impl_blocks("ADInplaceOrView", self.view_entries)
        includes = ["<cresset/dispatch/library.h>", "<cresset/ops/functions.h>", "<cresset/ops/redispatch.h>",
                    '"autograd/formulas.h"', '"autograd/generated_support.h"', f'"autograd/nodes_{self.family.name}.h"']
        return source(self.family.name, includes, "using namespace formulas;\n\n" + body, "cresset::autograd::generated")

    # --- which kernels an operator gets -------------------------------------------------------------------------------

    def operator(self, op):
        row, schema = op.row, op.schema
        if not schema.tensor_args:
            return
        if schema.written and not (op.form == "functional" and not schema.written):
            self.view(op, self.bump_version(op))
        elif schema.is_view:
            self.view(op, self.as_view(op))
        if op.form == "out":
            self.add(op, self.out_kernel(op))
        elif not any(r.type.is_tensor for r in schema.returns) and not schema.written:
            self.fallthrough.append(op)
        elif row.all_nondiff and not schema.written:
            self.fallthrough.append(op)
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
        self.code.append(cpp.define(op, name, body, leading=KS))
        self.entries.append((op, f"CRESSET_FN({name})"))

    def view(self, op, body):
        name = f"view_{op.ident}"
        self.code.append(cpp.define(op, name, body, leading=KS))
        self.view_entries.append((op, f"CRESSET_FN({name})"))

    # --- shared pieces ------------------------------------------------------------------------------------------------

    def redispatch(self, op, keys="after_autograd_keyset"):
        args = cpp.names(op.schema.args)
        return f"redispatch::{op.ident}(ks & {keys}{', ' + args if args else ''})"

    def leave(self, op, call):
        """Calls and returns; in-place forms return their own argument."""
        if op.schema.returns:
            return f"return {call};"
        return f"return {call};" if not op.schema.returns else call

    def bump_version(self, op):
        call = self.redispatch(op, "after_ADInplaceOrView_keyset")
        lines = ["{", "  AutoDispatchBelowADInplaceOrView guard;", f"  {call};", "}"]
        keeps = not cpp.return_outs(op) or op.form in ("inplace", "out")
        if not keeps:
            lines = [f"{'auto result = ' if op.schema.returns else ''}[&] {{ AutoDispatchBelowADInplaceOrView guard; return {call}; }}();"]
        for arg in op.schema.written:
            lines.append(f"increment_version({arg.name});")
        return [*lines, cpp.return_outs(op) if keeps else ("return result;" if op.schema.returns else "return;")]

    def as_view(self, op):
        schema = op.schema
        base = schema.view_base.name
        others = [a for a in schema.args if a.name != base]
        owned = ", ".join(f"{a.name} = own({a.name})" for a in others)
        used = ", ".join("base" if a.name == base else f"borrow({a.name})" for a in schema.args)
        is_list = schema.returns[0].type.is_list
        differentiable = "false" if op.row.all_nondiff else "true"
        call = self.redispatch(op, "after_ADInplaceOrView_keyset")
        lines = [f"auto result = [&] {{ AutoDispatchBelowADInplaceOrView guard; return {call}; }}();"]
        if is_list:
            return [*lines, f"as_views({base}, result, {differentiable});", "return result;"]
        return [*lines, "ViewReplay replay;",
                f"if (needs_view_replay({base}))",
                f"  replay = [{owned}](const Tensor& base) {{ return cresset::{schema.name}({used}); }};",
                f"return as_view({base}, std::move(result), {differentiable}, std::move(replay));"]

    def out_kernel(self, op):
        schema = op.schema
        inputs = cpp.tensor_inputs(op) if not op.row.all_nondiff else []
        checked = cpp.names([*inputs, *schema.out_args])
        lines = [f"if (compute_requires_grad({checked})) raise_out_requires_grad(\"{schema.name}\");",
                 f"if (any_fw_grad({checked})) raise_out_forward_grad(\"{schema.name}\");"]
        return [*lines, f"return {self.redispatch(op)};"]

    def fast_path(self, op, names):
        lines = [f"const bool any_requires_grad = compute_requires_grad({names});", f"const bool any_fw = any_fw_grad({names});"]
        call = self.redispatch(op)
        return [*lines, f"if (CRESSET_LIKELY(!any_requires_grad && !any_fw)) return {call};"]

    def not_implemented(self, op):
        names = cpp.names(op.schema.tensor_args)
        lines = self.fast_path(op, names)
        lines.append(f"if (any_fw) raise_forward_not_implemented(\"{op.schema.name}\");")
        lines.append(f"auto result = [&] {{ AutoDispatchBelowAutograd guard; return {self.redispatch(op)}; }}();")
        lines.append(f"set_not_implemented_history(result, \"{op.schema.name}\", collect_next_edges({names}));")
        return [*lines, "return result;"]

    def inplace_without_formula(self, op):
        """In place on a tensor with history: zero gradient when the row says nondiff, else an error node."""
        names = cpp.names(op.schema.tensor_args)
        lines = self.fast_path(op, names)
        lines.append("check_inplace(self, any_requires_grad);")
        if op.row.all_nondiff:
            lines.append("std::shared_ptr<Node> grad_fn = any_requires_grad ? zero_gradient_node"
                         f"(\"{op.row.node}\", collect_next_edges({names})) : nullptr;")
        else:
            lines.append("std::shared_ptr<Node> grad_fn = any_requires_grad ? not_implemented_node"
                         f"(\"{op.schema.name}\", collect_next_edges({names})) : nullptr;")
            lines.append(f"if (any_fw) raise_forward_not_implemented(\"{op.schema.name}\");")
        lines += ["{", "  AutoDispatchBelowAutograd guard;", f"  {self.redispatch(op)};", "}",
                  "if (grad_fn) rebase_history(self, std::move(grad_fn));"]
        if op.row.all_nondiff:
            lines.append("if (any_fw && fw_grad(self).defined()) set_fw_grad(self, zeros_like(fw_grad(self)), true);")
        return [*lines, "return self;"]

    # --- operators with formulas ----------------------------------------------------------------------------------------

    def differentiable(self, op):
        row = op.row
        try:
            d = Derivative(row, op.form)
            if row.node not in self.nodes:
                self.nodes[row.node] = d
                declaration, definition = node_class(row, d)
                self.declarations.append(declaration)
                self.definitions.append(definition)
            body = self.inplace(op, d) if op.form == "inplace" else self.functional(op, d)
        except FormulaError as error:
            self.errors.append(str(row.error(str(error), "grad")))
            return
        self.add(op, body)

    def make_node(self, op, d, original=None):
        """Statements inside `if (any_requires_grad)`: the node, its edges, and what is known before the call."""
        lines = []
        without = [a for a in op.schema.tensor_args if a not in d.inputs and a.name not in {i.name for i in d.inputs}]
        for a in without:
            lines.append(f"check_no_requires_grad({a.name}, \"{a.name}\", \"{op.schema.name}\");")
        lines.append(f"grad_fn = make_node<{op.row.node}>();")
        lines.append(f"grad_fn->set_next_edges(collect_next_edges({cpp.names(d.inputs)}));")
        lines += [f"grad_fn->{a.name}_count_ = {a.name}.size();" for a in d.inputs if a.type.is_list]
        for s in d.saved.values():
            if not s.after:
                lines += self.save(op, d, s, original)
        return lines

    def save(self, op, d, s, original):
        value = s.expr
        if s.is_tensor:
            if original and s.source == "self" and not s.output:
                value = original
            if s.kind == "tensor":
                text = f"grad_fn->{s.member} = SavedVariable({value}, {'true' if s.output else 'false'}{self.view_flag(op, s)});"
            elif s.kind == "optional_tensor":
                text = f"grad_fn->{s.member} = SavedVariable({value}.value_or(Tensor()), false);"
            else:
                text = f"grad_fn->{s.member} = save_list({value});"
            # A tensor that only some formulas read is not kept alive when those gradients are not wanted.
            if len(s.users) < len(d.formulas):
                wanted = [n for i in sorted(s.users) for n in d.formulas[i].inputs]
                conditions = []
                for n in wanted:
                    start, count = d.offset(n)
                    if count:
                        return [text]
                    start = start.replace("_count_", ".size()")
                    conditions.append(f"grad_fn->should_compute_output({start})")
                return [f"if ({' || '.join(conditions)}) {text}"]
            return [text]
        if s.kind in ("string", "array"):
            return [f"grad_fn->{s.member} = own({value});"]
        if s.kind in ("opt_string", "opt_array"):
            return [f"grad_fn->{s.member} = own({value});"]
        return [f"grad_fn->{s.member} = {value};"]

    def view_flag(self, op, s):
        return ", self.is_view()" if s.output and op.form == "inplace" else ""

    def functional(self, op, d):
        schema = op.schema
        lines = self.fast_path(op, cpp.names(schema.tensor_args))
        lines.append(f"std::shared_ptr<{op.row.node}> grad_fn;")
        lines += ["if (any_requires_grad) {", *("  " + x for x in self.make_node(op, d)), "}"]
        guard = "AutoDispatchBelowAutograd" if schema.is_view or schema.written else "AutoDispatchBelowADInplaceOrView"
        single = len(schema.returns) == 1
        target = schema.result_names[0] if single else "result_tuple"
        lines.append(f"auto {target} = [&] {{ {guard} guard; return {self.redispatch(op)}; }}();")
        if not single:
            for i, name in enumerate(schema.result_names):
                lines.append(f"[[maybe_unused]] auto& {name} = std::get<{i}>(result_tuple);")
        tensors = {n for n, r in zip(schema.result_names, schema.returns) if r.type.is_tensor}
        recorded = [n for n in d.diff_outputs if n in tensors]
        after = []
        if single:
            after.append(f"set_history({target}, grad_fn);")
        else:
            after.append(f"set_history_of(grad_fn, {', '.join(recorded)});")
        for s in d.saved.values():
            if s.after:
                after += self.save(op, d, s, None)
        lines += ["if (grad_fn) {", *("  " + x for x in after), "}"]
        lines += forward_mode(op, d)
        return [*lines, f"return {target};"]

    def inplace(self, op, d):
        original = None
        lines = self.fast_path(op, cpp.names(op.schema.tensor_args))
        lines.append("check_inplace(self, any_requires_grad);")
        before, after_fw, needs_original = forward_mode(op, d, inplace=True)
        clone = d.uses_self_tensor() or needs_original
        if clone:
            original = "original_self"
            conditions = (["any_requires_grad"] if d.uses_self_tensor() else []) + (["any_fw"] if needs_original else [])
            lines.append(f"Tensor original_self;\nif ({' || '.join(conditions)}) original_self = self.clone();".replace("\n", "\n  "))
        lines.append(f"std::shared_ptr<{op.row.node}> grad_fn;")
        lines += ["if (any_requires_grad) {", *("  " + x for x in self.make_node(op, d, original)), "}"]
        lines += before
        lines += ["{", "  AutoDispatchBelowAutograd guard;", f"  {self.redispatch(op)};", "}"]
        after = ["rebase_history(self, grad_fn);"]
        late = [s for s in d.saved.values() if s.after]
        if late:
            name = late[0].source
            after.append(f"[[maybe_unused]] const Tensor& {name} = self;")
        for s in late:
            after += self.save(op, d, s, None)
        lines += ["if (grad_fn) {", *("  " + x for x in after), "}"]
        lines += after_fw
        return [*lines, "return self;"]
