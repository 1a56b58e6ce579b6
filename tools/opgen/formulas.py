"""Derivative formulas: which values they save and how they read in the generated code."""

import difflib
import re
from dataclasses import dataclass, field

# Methods of a tensor whose value is saved instead of the tensor: name -> C++ type of the copy.
SAVED_VALUES = {
    "sizes": "DimVector", "strides": "DimVector", "dim": "int64_t", "numel": "int64_t", "scalar_type": "ScalarType",
    "options": "TensorOptions", "device": "Device", "layout": "Layout", "is_complex": "bool", "storage_offset": "int64_t",
}
LIST_VALUES = {
    "sizes": "std::vector<DimVector>", "scalar_type": "std::vector<ScalarType>", "size": "std::size_t",
}
LIST_HELPERS = {"sizes": "sizes_of", "scalar_type": "scalar_types_of"}
WORD = re.compile(r"(?<![\w.:])(?<!->)([A-Za-z_]\w*)(?!\w)(?!\s*::)")


@dataclass
class Saved:
    """One member of a node. `expr` is what the forward pass stores."""
    name: str                 # the local name inside apply()
    type: str                 # C++ type of the member
    expr: str
    kind: str                 # tensor, optional_tensor, tensors, optional_tensors, value, string, array, opt_array
    output: bool = False
    after: bool = False       # known only after the operator ran
    source: str = ""          # the argument or output it is of
    users: set = field(default_factory=set)   # indices of the formulas that mention it
    arg: object = None

    @property
    def member(self):
        return self.name + "_"

    @property
    def is_tensor(self):
        return self.kind in ("tensor", "optional_tensor", "tensors", "optional_tensors")


@dataclass
class Formula:
    inputs: tuple             # names on the left side
    text: str                 # rewritten C++
    raw: str
    uses_mask: bool = False
    uses_grad: bool = False
    grads: set = field(default_factory=set)    # indices of `grads[i]`, counted over the differentiable outputs
    needs: set = field(default_factory=set)    # inputs asked for with needs(name)


class FormulaError(Exception):
    pass


class Derivative:
    """The reverse formulas of a row, seen from one of its forms (functional or in place)."""

    def __init__(self, row, form):
        self.row, self.form = row, form
        self.schema = row.schema
        self.args = {a.name: a for a in self.schema.args}
        self.results = self.schema.result_names if not (form == "inplace" and row.main.form == "inplace") else ["result"]
        self.saved = {}
        self.inputs = [a for a in self.schema.args if any(a.name in names for names in row.formulas)]
        self.diff_outputs = [n for n in self.results if n not in row.nondiff]
        self.declared_needs = set()
        self.formulas = [self._rewrite(i, names, text) for i, (names, text) in enumerate(sorted(row.formulas.items()))]  # evaluated in PyTorch's order

    @property
    def has_lists(self):
        return any(a.type.is_list for a in self.inputs)

    def offset(self, name):
        """(start, count) of an input's edges as C++ expressions; count is None for a single tensor."""
        terms, number = [], 0
        for arg in self.inputs:
            if arg.name == name:
                start = " + ".join([*terms, str(number)] if number or not terms else terms)
                return start, (f"{arg.name}_count_" if arg.type.is_list else None)
            if arg.type.is_list:
                terms.append(f"{arg.name}_count_")
            else:
                number += 1
        raise KeyError(name)

    def total(self):
        terms = [f"{a.name}_count_" for a in self.inputs if a.type.is_list]
        number = sum(not a.type.is_list for a in self.inputs)
        return " + ".join([*terms, str(number)] if number or not terms else terms)

    def _save(self, index, name, **fields):
        saved = self.saved.setdefault(name, Saved(name, **fields))
        saved.users.add(index)
        return saved

    def _rewrite(self, index, names, text):
        raw = text
        tensors = {a.name: a for a in self.schema.args if a.type.is_tensor}
        outputs = {n: i for i, n in enumerate(self.results)}

        def value(match):
            name, method = match.group(1), match.group(2)
            is_list = name in tensors and tensors[name].type.is_list
            if name not in tensors and name not in outputs or name in self.args and name not in tensors:
                return match.group(0)
            types = LIST_VALUES if is_list else SAVED_VALUES
            if method not in types:
                return match.group(0)
            if name in tensors and tensors[name].type.opt:
                raise FormulaError(f"'{name}.{method}()': '{name}' is optional and has no methods.")
            expr = f"{name}.{method}()"
            if is_list and method != "size":
                expr = f"{LIST_HELPERS[method]}({name})"
            elif method == "strides":
                expr = f"strides_or_none({name})"
            elif types[method] == "DimVector":
                expr = f"DimVector({expr})"
            after = name not in tensors
            self._save(index, f"{name}_{method}", type=types[method], expr=expr, kind="value", after=after, source=name)
            return f"{name}_{method}"

        def size(match):
            name, inner = match.group(1), match.group(2).strip()
            if name not in tensors and name not in outputs or (name in tensors and tensors[name].type.is_list):
                return match.group(0)
            local = f"{name}_size_" + re.sub(r"\W+", "_", inner.replace("-", "m"))
            self._save(index, local, type="int64_t", expr=f"{name}.size({inner})", kind="value", after=name not in tensors, source=name)
            return local

        text = re.sub(r"(?<![\w.:])([A-Za-z_]\w*)\.size\(([^()]+)\)", size, text)
        text = re.sub(r"(?<![\w.:])([A-Za-z_]\w*)\.(\w+)\(\)", value, text)
        needs, grads = set(), set()
        text = re.sub(r"\bneeds\(\s*(\w+)\s*\)", lambda m: self._needs(m.group(1), needs), text)
        text = re.sub(r"\bgrads\[\s*(\d+)\s*\]", lambda m: self._grad_index(int(m.group(1)), grads), text)
        formula = Formula(names, text, raw, needs=needs, grads=grads)
        for match in WORD.finditer(_without_strings(text)):
            word = match.group(1)
            called = text[match.end():].lstrip().startswith("(")
            if word == "grad":
                formula.uses_grad = True
            elif word == "grad_input_mask":
                formula.uses_mask = True
            elif word in self.args and not called:
                self._save_argument(index, self.args[word])
            elif word in outputs and not called:
                self._save_output(index, word, self.schema.returns[outputs[word]])
        locals_ = {f"needs_{n}" for n in needs} | {f"grads_{i}" for i in grads}
        known = set(self.args) | set(outputs) | set(self.saved) | locals_ | {"grad", "grads", "grad_input_mask"}
        self._refuse_unknown(text, known, f"the formula for '{', '.join(names)}'")
        return formula

    def _refuse_unknown(self, text, known, what):
        word = unknown_word(text, known)
        if word:
            close = difflib.get_close_matches(word, known, n=1)
            raise FormulaError(f"{what} names '{word}', which is no argument, output or function."
                               + (f" Did you mean '{close[0]}'?" if close else ""))

    def check_jvp(self):
        jvp = self.row.jvp
        if jvp is None or jvp in ("auto_linear", "auto_element_wise"):
            return
        known = set(self.args) | set(self.results)
        known |= {f"{a.name}_t" for a in self.inputs} | {f"{a.name}_p" for a in self.schema.tensor_args}
        for text in jvp.values() if isinstance(jvp, dict) else [jvp]:
            self._refuse_unknown(text, known, "jvp")

    def _needs(self, name, needs):
        if name not in [a.name for a in self.inputs]:
            raise FormulaError(f"needs({name}): '{name}' has no formula of its own.")
        needs.add(name)
        return f"needs_{name}"

    def _grad_index(self, i, grads):
        if i >= len(self.results):
            raise FormulaError(f"grads[{i}]: there are {len(self.results)} outputs.")
        if self.results[i] not in self.diff_outputs:
            raise FormulaError(f"grads[{i}]: output '{self.results[i]}' is declared nondiff.")
        position = self.diff_outputs.index(self.results[i])
        grads.add(position)
        return f"grads_{position}"

    def _save_argument(self, index, arg):
        t = arg.type
        if t.is_tensor:
            if t.is_list:
                kind = "optional_tensors" if t.inner_opt else "tensors"
                self._save(index, arg.name, type="std::vector<SavedVariable>", expr=arg.name, kind=kind, source=arg.name)
            else:
                kind = "optional_tensor" if t.opt else "tensor"
                self._save(index, arg.name, type="SavedVariable", expr=arg.name, kind=kind, source=arg.name)
            return
        owned = t.cpp_owned()
        if t.base == "str":
            kind = "opt_string" if t.opt else "string"
        elif owned.startswith("std::vector"):
            kind = "array"
        elif owned.startswith("std::optional<std::vector"):
            kind = "opt_array"
        else:
            kind = "value"
        self._save(index, arg.name, type=owned, expr=arg.name, kind=kind, source=arg.name, arg=arg)

    def _save_output(self, index, name, ret):
        if not ret.type.is_tensor:
            raise FormulaError(f"output '{name}' is no tensor and cannot be saved.")
        if ret.type.is_list:
            raise FormulaError(f"output '{name}' is a list and cannot be saved.")
        self._save(index, name, type="SavedVariable", expr=name, kind="tensor", output=name in self.diff_outputs, after=True,
                   source=name)

    def uses_self_tensor(self):
        saved = self.saved.get("self")
        return saved is not None and saved.is_tensor


# Bare words that are C++ and not names of values.
CPP_WORDS = {"true", "false", "nullptr", "auto", "const", "int", "int64_t", "double", "float", "bool", "static_cast", "return", "if", "else",
             "this", "sizeof"}


def unknown_word(text, known):
    """The first lower-case word of a C++ expression that is neither called nor known, or None."""
    plain = _without_strings(text)
    for match in WORD.finditer(plain):
        word, rest = match.group(1), plain[match.end():].lstrip()
        if word[0].isupper() or word in known or word in CPP_WORDS or rest.startswith(("(", "<", "{")):
            continue
        if len(word) > 1 and word[0] == "k" and word[1].isupper():
            continue
        return word
    return None


def _without_strings(text):
    return re.sub(r'"[^"]*"', lambda m: '"' + " " * (len(m.group(0)) - 2) + '"', text)


def words(text):
    return {m.group(1) for m in WORD.finditer(_without_strings(text))}
