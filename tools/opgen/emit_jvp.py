"""Forward mode: tangents of outputs from tangents of inputs."""

from formulas import words


def _tangent(arg, primal):
    """A local `<name>_t`: the tangent, or zeros of the primal's shape."""
    if arg.type.is_list:
        return f"const std::vector<Tensor> {arg.name}_t = tangents_or_zeros({primal});"
    return f"const Tensor {arg.name}_t = tangent_or_zeros({primal});"


def _primal(arg, primal):
    if arg.type.is_list:
        return f"const std::vector<Tensor> {arg.name}_p = fw_primals({primal});"
    return f"const Tensor {arg.name}_p = fw_primal({primal});"


def _linear_args(op, d):
    """The operator's arguments with every differentiable input replaced by its tangent."""
    names = {a.name for a in d.inputs}
    out = []
    for a in op.row.schema.args:
        if a.name not in names:
            out.append(a.name)
        elif a.type.opt:
            out.append(f"as_optional({a.name}_t)")
        else:
            out.append(f"{a.name}_t")
    return ", ".join(out)


def _element_wise(d):
    """The reverse formula with the conjugated tangent in place of grad, added up over inputs that have a tangent."""
    lines = []
    tensors = [a for a in d.schema.args if a.type.is_tensor]
    for f in d.row.formulas.items():
        names, text = f
        name = names[0]
        lines.append(f"if (has_fw_grad({name}_raw)) {{")
        lines.append(f"  const Tensor grad = fw_conj({name}_t);")
        shadow = [a.name for a in tensors if a.name in words(text) and a in d.inputs]
        lines += [f"  const auto& {n} = {n}_p;" for n in shadow]
        lines.append(f"  add_tangent(tangent, fw_conj({text}));")
        lines.append("}")
    return lines


def forward_mode(op, d, inplace=False):
    """Statements after the call; for in-place forms (before, after, whether the original value is needed)."""
    row, jvp = op.row, op.row.jvp
    if jvp is None:
        lines = [f"if (any_fw) raise_forward_not_implemented(\"{op.schema.name}\");"]
        return ([], lines, False) if inplace else lines
    text = jvp if isinstance(jvp, str) else " ".join(jvp.values())
    needs_original = inplace and (jvp == "auto_element_wise" or "self_p" in words(text))
    body, before = [], []
    source = {a.name: a.name for a in d.inputs}
    if needs_original:
        source["self"] = "original_self"
    used = words(text)
    for a in d.inputs:
        whole = jvp in ("auto_linear", "auto_element_wise")
        if whole or f"{a.name}_t" in used:
            body.append(_tangent(a, a.name))
        if (jvp == "auto_element_wise" and _in_formulas(row, a.name)) or f"{a.name}_p" in used:
            body.append(_primal(a, source[a.name]))
    if jvp == "auto_linear":
        value = _linear(op, d, inplace)
    elif jvp == "auto_element_wise":
        value = None
        body.append("Tensor tangent;")
        for line in _element_wise(d):
            body.append(line.replace("_raw)", ")"))
    else:
        value = jvp
    out = []
    if inplace:
        tangents = [x for x in body if x.startswith("const Tensor self_t")]
        rest = [x for x in body if x not in tangents]
        before = ["Tensor self_t;" if tangents else "", "if (any_fw) self_t = tangent_or_zeros(self);" if tangents else ""]
        before = [x for x in before if x]
        if _mentions_self(jvp, row):
            rest = ["const Tensor& result = self;"] if _uses_result(row, jvp) else []
            rest += [x for x in body if x not in tangents]
        out = ["if (any_fw) {", *("  " + x for x in rest)]
        if value is None:
            out.append("  if (tangent.defined()) set_fw_grad(self, tangent, true);")
        else:
            out += ["  " + x for x in _as_lines(value, "set_fw_grad(self, {}, true);")]
        return before, [*out, "}"], needs_original
    out = ["if (any_fw) {", *("  " + x for x in body)]
    names = d.schema.result_names
    if isinstance(jvp, dict):
        for name, expr in jvp.items():
            out.append(f"  const Tensor {name}_t = {expr};")
        for name in jvp:
            out.append(f"  set_fw_grad({name}, {name}_t, false);")
    elif value is None:
        out.append(f"  if (tangent.defined()) set_fw_grad({d.diff_outputs[0]}, tangent, false);")
    elif jvp == "auto_linear" and len(names) > 1:
        out.append(f"  auto tangents = {value};")
        for i, name in enumerate(names):
            if name in d.diff_outputs:
                out.append(f"  set_fw_grad({name}, std::get<{i}>(tangents), false);")
    else:
        out.append(f"  set_fw_grad({d.diff_outputs[0]}, {value}, false);")
    return [*out, "}"]


def _linear(op, d, inplace):
    row = op.row
    if inplace and row.main.form == "inplace":
        rest = _linear_args(op, d).split(", ")
        return ["Tensor tangent = self_t.clone();", f"cresset::{row.schema.name}({', '.join(['tangent', *rest[1:]])});", "tangent"]
    return f"cresset::{row.schema.name}({_linear_args(op, d)})"


def _as_lines(value, pattern):
    if isinstance(value, list):
        return [*value[:-1], pattern.format(value[-1])]
    return [pattern.format(value)]


def _in_formulas(row, name):
    return any(name in words(text) for text in row.formulas.values())


def _uses_result(row, jvp):
    texts = row.formulas.values() if jvp == "auto_element_wise" else ([jvp] if isinstance(jvp, str) else jvp.values())
    return any("result" in words(t) for t in texts)


def _mentions_self(jvp, row):
    return True
