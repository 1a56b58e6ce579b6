"""Graph nodes: one class for each differentiable row, with what it saves and its backward."""

import re

from formulas import Derivative

INITIAL = {"int64_t": " = 0", "bool": " = false", "double": " = 0", "std::size_t": " = 0", "ScalarType": " = ScalarType::Undefined",
           "Device": "{kCPU}", "Layout": " = kStrided", "MemoryFormat": " = MemoryFormat::Contiguous"}


def node_class(row, d: Derivative):
    """(declaration, definition) of the node of a row. In-place forms share it."""
    lines = [f"struct {row.node} final : Node {{", "  using Node::Node;",
             f"  std::string name() const override {{ return \"{row.node}\"; }}"]
    tensors = [s for s in d.saved.values() if s.is_tensor]
    if tensors:
        lines.append("  void release_variables() override;")
    if d.saved:
        lines.append("  void visit_saved(SavedValueVisitor& visitor) override;")
    lines += [f"  {s.type} {s.member}{INITIAL.get(s.type, '')};" for s in d.saved.values()]
    lines += [f"  std::size_t {a.name}_count_ = 0;" for a in d.inputs if a.type.is_list]
    if _has_saved_lists(tensors):
        lines.append("  bool released_ = false;")
    lines += ["", " protected:", "  variable_list apply(variable_list&& grads) override;"]
    definition = _apply(row, d, tensors)
    if tensors:
        body = ["  const SavedLock lock(*this);"]
        for s in tensors:
            body.append(f"  {s.member}.reset_data();" if s.type == "SavedVariable" else f"  reset_saved_list({s.member});")
        if _has_saved_lists(tensors):
            body.append("  released_ = true;")
        definition += f"void {row.node}::release_variables() {{\n" + "\n".join(body) + "\n}\n"
    if d.saved:
        definition += f"void {row.node}::visit_saved(SavedValueVisitor& visitor) {{\n" + "\n".join(map(_show, d.saved.values())) + "\n}\n"
    return "\n".join(lines) + "\n};\n", definition + "\n"


def _show(saved):
    """The line that shows a saved value to a visitor, under PyTorch's name: sizes read self_sym_sizes."""
    name = re.sub(r"_(sizes|strides|numel)$", r"_sym_\1", saved.name) if saved.kind == "value" else saved.name
    if saved.kind in ("tensors", "optional_tensors"):
        return f'  visitor.tensors("{name}", {saved.member}, released_);'
    if saved.is_tensor:
        return f'  visitor.tensor("{name}", {saved.member});'
    return f'  visitor.value("{name}", saved_value({saved.member}));'


def zero_node_class(row):
    """The node of an in-place form whose results do not depend on the input smoothly: it passes no gradient on."""
    declaration = (f"struct {row.node} final : Node {{\n  using Node::Node;\n  std::string name() const override {{ return \"{row.node}\"; }}\n\n"
                   " protected:\n  variable_list apply(variable_list&&) override { return variable_list(num_outputs()); }\n};\n")
    return declaration, ""


def _has_saved_lists(tensors):
    return any(s.kind in ("tensors", "optional_tensors") for s in tensors)


def _local(saved):
    """(type, expression) of the local variable that stands for a saved value inside apply()."""
    member = saved.member
    if saved.kind == "tensor":
        return "Tensor", f"{member}.unpack_in(*this)"
    if saved.kind == "optional_tensor":
        return "std::optional<Tensor>", f"unpack_opt({member}, *this)"
    if saved.kind == "tensors":
        return "std::vector<Tensor>", f"unpack_list({member}, *this)"
    if saved.kind == "optional_tensors":
        return "std::vector<std::optional<Tensor>>", f"unpack_opt_list({member}, *this)"
    if saved.kind in ("string", "array", "opt_array", "opt_string"):
        kind = saved.arg.type.cpp_arg()
        if saved.kind in ("string", "array") or kind == "OptionalIntArrayRef":
            return f"const {kind}", member
        return f"const {kind}", f"{member} ? {kind}(*{member}) : std::nullopt"
    return "const auto&", member


def _range(d, name):
    start, count = d.offset(name)
    return f"IndexRange{{{start}, {start} + {count}}}" if count else None


def _needs_expr(d, name):
    start, count = d.offset(name)
    return f"task_should_compute_output({{{_range(d, name)}}})" if count else f"task_should_compute_output({start})"


def _store(d, name, value):
    start, count = d.offset(name)
    if count:
        return f"copy_range(grad_inputs, {_range(d, name)}, {value});"
    return f"grad_inputs[{start}] = {value};"


def _apply(row, d: Derivative, tensors):
    lines = [f"variable_list {row.node}::apply(variable_list&& grads) {{", f"  variable_list grad_inputs({d.total()});",
             "  if (!any_grad_defined(grads)) return grad_inputs;"]
    several = len(d.diff_outputs) > 1
    if any(f.uses_grad for f in d.formulas):
        lines.append("  const Tensor grad = materialized(grads, 0, *this);" if several else "  const Tensor& grad = grads[0];")
    for i in sorted({i for f in d.formulas for i in f.grads}):
        lines.append(f"  const Tensor grads_{i} = materialized(grads, {i}, *this);" if several else f"  const Tensor& grads_{i} = grads[{i}];")
    for s in d.saved.values():
        if not s.is_tensor:
            kind, value = _local(s)
            lines.append(f"  {kind} {s.name} = {value};")
    if tensors:
        lines += [f"  {_local(s)[0]} {s.name};" for s in tensors]
        lines += ["  {", "    const SavedLock lock(*this);"]
        if _has_saved_lists(tensors):
            lines.append("    if (released_) raise_backward_twice();")
        lines += [f"    {s.name} = {_local(s)[1]};" for s in tensors]
        lines.append("  }")
    for f in d.formulas:
        lines += _formula(d, f)
    lines.append("  return grad_inputs;\n}\n")
    return "\n".join(lines)


def _formula(d, f):
    asked = {n for n in f.needs} | (set(f.inputs) if len(f.inputs) > 1 else set())
    lines = []
    for n in sorted(asked - d.declared_needs):
        lines.append(f"  [[maybe_unused]] const bool needs_{n} = {_needs_expr(d, n)};")
    d.declared_needs |= asked
    wanted = lambda n: f"needs_{n}" if n in d.declared_needs else _needs_expr(d, n)
    condition = " || ".join(wanted(n) for n in f.inputs)
    mask = f"const std::array<bool, {len(f.inputs)}> grad_input_mask{{{', '.join(wanted(n) for n in f.inputs)}}};"
    if len(f.inputs) == 1:
        store = _store(d, f.inputs[0], f.text)
        if f.uses_mask:
            return [*lines, f"  if ({condition}) {{", f"    {mask}", f"    {store}", "  }"]
        return [*lines, f"  if ({condition}) {store}"]
    lines.append(f"  if ({condition}) {{")
    if f.uses_mask:
        lines.append(f"    {mask}")
    lines.append(f"    auto gradients_ = {f.text};")
    for i, name in enumerate(f.inputs):
        store = _store(d, name, f"std::move(std::get<{i}>(gradients_))")
        lines.append(f"    if (needs_{name}) {store}")
    return [*lines, "  }"]
