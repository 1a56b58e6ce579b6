"""Graph nodes: one class for each differentiable row, with what it saves and its backward."""

from formulas import Derivative


def node_class(row, derivative):
    """(declaration, definition) of the node of a row. In-place forms share it."""
    d = derivative
    lines = [f"struct {row.node} final : Node {{",
             f"  std::string name() const override {{ return \"{row.node}\"; }}",
             "  variable_list apply(variable_list&& grads) override;"]
    tensors = [s for s in d.saved.values() if s.is_tensor]
    if tensors:
        lines.append("  void release_variables() override;")
    lines += [f"  {s.type} {s.member}{_initial(s)};" for s in d.saved.values()]
    lines += [f"  std::size_t {a.name}_count_ = 0;" for a in d.inputs if a.type.is_list]
    declaration = "\n".join(lines) + "\n};\n"
    definition = _apply(row, d)
    if tensors:
        body = "".join(f"  release({s.member});\n" for s in tensors)
        definition += f"void {row.node}::release_variables() {{\n{body}}}\n"
    return declaration, definition + "\n"


def _initial(saved):
    return {"int64_t": " = 0", "bool": " = false", "double": " = 0", "std::size_t": " = 0", "ScalarType": " = ScalarType::Undefined",
            "Device": "{kCPU}", "Layout": " = kStrided", "MemoryFormat": " = MemoryFormat::Contiguous"}.get(saved.type, "")


def unpack(saved):
    """A statement that makes the saved value available under its own name."""
    name, member = saved.name, saved.member
    if saved.kind == "tensor":
        return f"const Tensor {name} = {member}.unpack({'shared_from_this()' if saved.output else ''});"
    if saved.kind == "optional_tensor":
        return f"const std::optional<Tensor> {name} = as_optional({member}.unpack());"
    if saved.kind == "tensors":
        return f"const std::vector<Tensor> {name} = unpack_list({member});"
    if saved.kind == "optional_tensors":
        return f"const std::vector<std::optional<Tensor>> {name} = unpack_optional_list({member});"
    if saved.kind == "string":
        return f"const std::string_view {name} = {member};"
    if saved.kind == "opt_string":
        return f"const std::optional<std::string_view> {name} = {member} ? std::optional<std::string_view>(*{member}) : std::nullopt;"
    if saved.kind == "array":
        return f"const {saved.arg.type.cpp_arg()} {name} = {member};"
    if saved.kind == "opt_array":
        if saved.arg.type.cpp_arg() == "OptionalIntArrayRef":
            return f"const OptionalIntArrayRef {name} = {member};"
        inner = saved.arg.type.cpp_arg()
        return f"const {inner} {name} = {member} ? {inner}(*{member}) : std::nullopt;"
    return f"const auto& {name} = {member};"


def _needs_expr(d, name):
    start, count = d.offset(name)
    return f"should_compute_range(*this, {start}, {count})" if count else f"task_should_compute_output({start})"


def _apply(row, d: Derivative):
    lines = [f"variable_list {row.node}::apply(variable_list&& grads) {{", f"  variable_list grad_inputs({d.total()});",
             "  if (!any_grad_defined(grads)) return grad_inputs;"]
    if any(f.uses_grad for f in d.formulas):
        lines.append("  [[maybe_unused]] const Tensor& grad = grads[0];")
    for a in d.inputs:
        lines.append(f"  [[maybe_unused]] const bool needs_{a.name} = {_needs_expr(d, a.name)};")
    lines += [f"  {unpack(s)}" for s in d.saved.values()]
    for f in d.formulas:
        condition = " || ".join(f"needs_{n}" for n in f.inputs)
        if len(f.inputs) == 1:
            name = f.inputs[0]
            start, count = d.offset(name)
            if f.uses_mask:
                lines.append(f"  if ({condition}) {{\n    const std::array<bool, 1> grad_input_mask{{{condition}}};")
                store = f"grad_inputs[{start}] = {f.text};"
                lines.append(f"    {store}\n  }}")
            elif count:
                lines.append(f"  if ({condition}) store_range(grad_inputs, {start}, {f.text});")
            else:
                lines.append(f"  if ({condition}) grad_inputs[{start}] = {f.text};")
            continue
        n = len(f.inputs)
        lines.append(f"  if ({condition}) {{")
        if f.uses_mask:
            lines.append(f"    const std::array<bool, {n}> grad_input_mask{{{', '.join(f'needs_{x}' for x in f.inputs)}}};")
        lines.append(f"    auto result_ = {f.text};")
        for i, name in enumerate(f.inputs):
            start, count = d.offset(name)
            get = f"std::move(std::get<{i}>(result_))"
            if count:
                lines.append(f"    if (needs_{name}) store_range(grad_inputs, {start}, {get});")
            else:
                lines.append(f"    if (needs_{name}) grad_inputs[{start}] = {get};")
        lines.append("  }")
    lines.append("  return grad_inputs;\n}\n")
    return "\n".join(lines)
