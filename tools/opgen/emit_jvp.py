"""Forward mode: tangents of outputs from tangents of inputs. Inside, forward mode is off, so that `x_p` is x itself."""

from formulas import words
from table import split_names


class ForwardMode:
    """The statements around one kernel: `before` the call (in-place forms) and `after` it."""

    def __init__(self, op, d, inplace):
        self.op, self.d, self.inplace = op, d, inplace
        self.row, self.jvp = op.row, op.row.jvp
        self.before, self.after = [], []
        self.needs_original = False
        if self.jvp is None and self.row.get("through_parts"):
            return
        if self.jvp is None:
            self.after = [f"if (any_fw) throw_error_no_forward_ad(\"{op.schema.full_name}\");"]
            return
        self.used = words(self.jvp) if isinstance(self.jvp, str) else set().union(*map(words, self.jvp.values()))
        self.formula_words = set().union(*map(words, self.row.formulas.values()))
        if inplace:
            primal = "self_p" in self.used or (self.jvp == "auto_element_wise" and "self" in self.formula_words)
            self.needs_original = primal
        body = self._tangents() + self._nothing() + self._result()
        # Rare and large: kept out of the way of the code that records.
        self.after = ["if (CRESSET_UNLIKELY(any_fw)) [&]() __attribute__((cold, noinline)) {", "  const AutoFwGradMode off(false);",
                      *("  " + x for x in body), "}();"]

    def _tangents(self):
        lines = []
        automatic = self.jvp in ("auto_linear", "auto_element_wise")
        for a in self.d.inputs:
            t = f"{a.name}_t"
            if automatic or t in self.used:
                kind, get = self._tangent(a)
                if self.inplace and a.name == "self":
                    self.before += [f"{kind} self_t;", f"if (any_fw) self_t = {get}(self);"]
                else:
                    lines.append(f"const {kind} {t} = {get}({a.name});")
        for a in self.row.schema.tensor_args:
            p = f"{a.name}_p"
            if p in self.used:
                source = "original_self" if self.inplace and a.name == "self" else a.name
                lines.append(f"const Tensor {p} = {source}.value_or(Tensor());" if a.type.opt and not a.type.is_list else f"const auto& {p} = {source};")
        return lines

    def _tangent(self, a):
        """The type of an input's tangent and what gives it. Only beside others can a tensor be a constant, which has none."""
        if a.type.is_list:
            return "std::vector<Tensor>", "fw_grad_or_zeros"
        if self.jvp == "auto_element_wise":
            return "Tensor", "fw_grad"
        if self.jvp == "auto_linear" or a.type.opt or len(self.d.inputs) == 1:
            return "Tensor", "fw_grad_or_zeros"
        return "Tangent", "Tangent::of"

    def _nothing(self):
        """A new result that depends on one of the inputs has no tangent when that input has none."""
        if self.inplace or self.row.schema.written:
            return []
        used = [a for a in self.d.inputs if f"{a.name}_t" in self.used]
        return [f"if ({used[0].name}_t.is_nothing()) return;"] if len(used) == 1 and self._tangent(used[0])[0] == "Tangent" else []

    def _linear_args(self):
        names = {a.name for a in self.d.inputs}
        out = []
        for a in self.row.schema.args:
            if a.name not in names:
                out.append(a.name)
            elif a.type.opt and not a.type.is_list:
                out.append(f"{a.name} ? std::optional<Tensor>({a.name}_t) : std::nullopt")
            else:
                out.append(f"{a.name}_t")
        return ", ".join(out)

    def _element_wise(self):
        """The reverse formula with the conjugated tangent in place of grad, summed over the inputs that have one."""
        lines = ["Tensor tangent;"]
        if self.inplace and "result" in self.formula_words:
            lines.append("[[maybe_unused]] const Tensor& result = self;")
        for names, text in self.row.formulas.items():
            name = names[0]
            lines.append(f"if ({name}_t.defined()) {{")
            lines.append(f"  const Tensor grad = conjugate({name}_t);")
            if self.needs_original and "self" in words(text):
                lines.append("  const Tensor& self = original_self;")
            if len(self.row.formulas) == 1:
                lines.append(f"  tangent = conjugate({text});")
            else:
                lines.append(f"  add_tangent(tangent, conjugate({text}));")
            lines.append("}")
        return lines

    def _result(self):
        d, jvp = self.d, self.jvp
        target = "self" if self.inplace else d.diff_outputs[0]
        flag = "true" if self.inplace else "false"
        if jvp == "auto_element_wise":
            return [*self._element_wise(), f"set_fw_grad({target}, tangent, {flag});"]
        if isinstance(jvp, dict):
            lines, stores = [], []
            for names, text in ((split_names(key), text) for key, text in jvp.items()):
                if len(names) == 1:
                    lines.append(f"const Tensor {names[0]}_t = {text};")
                else:
                    lines.append(f"const auto {names[0]}_ts = {text};")
                stores += [f"set_fw_grad({n}, {f'std::get<{i}>({names[0]}_ts)' if len(names) > 1 else f'{n}_t'}, {flag});"
                           for i, n in enumerate(names)]
            return lines + stores
        if jvp == "auto_linear":
            if self.inplace and self.row.main.form == "inplace":
                rest = ", ".join(self._linear_args().split(", ")[1:])
                return ["Tensor tangent = self_t.clone();", f"cresset::{self.row.schema.name}(tangent{', ' + rest if rest else ''});",
                        f"set_fw_grad(self, tangent, {flag});"]
            call = f"cresset::{self.row.schema.name}({self._linear_args()})"
            if len(d.results) > 1:
                return [f"auto tangents = {call};",
                        *(f"set_fw_grad({n}, std::get<{i}>(tangents), {flag});" for i, n in enumerate(d.results) if n in d.diff_outputs)]
            return [f"set_fw_grad({target}, {call}, {flag});"]
        lines = []
        if self.inplace and "result" in self.used:
            lines.append("[[maybe_unused]] const Tensor& result = self;")
        return [*lines, f"set_fw_grad({target}, {jvp}, {flag});"]
