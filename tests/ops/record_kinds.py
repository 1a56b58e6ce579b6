"""Records operator_kinds.json with PyTorch: `python record_kinds.py` where torch is installed. Which of its operators are composed of others before
autograd and before a backend sees them, and which a backend gets."""

import json
import pathlib

import torch

kinds = {"composite": [], "backend": []}
for name in sorted(torch._C._dispatch_get_all_op_names()):
    if name.startswith("aten::"):
        composed = torch._C._dispatch_has_kernel_for_dispatch_key(name, "CompositeImplicitAutograd")
        kinds["composite" if composed else "backend"].append(name[6:])
text = "{\n" + ",\n".join(f'"{kind}": {json.dumps(" ".join(names))}' for kind, names in kinds.items()) + "\n}\n"
(pathlib.Path(__file__).parent / "operator_kinds.json").write_text(text)
