from collections import Counter

from answers import show
import coremltools
import numpy
import torch
from lowered import CASES, made

# Models run on Apple's machines only: what is compared are the operators of the converted program and the shapes of its outputs.


def _converted(source, **kwargs):
    main = coremltools.convert(source, convert_to="milinternal", **kwargs).functions["main"]
    return [sorted(Counter(op.op_type for op in main.operations if op.op_type != "const").items()), [list(v.shape) for v in main.outputs]]


for name in CASES:
    module, x = made(name)
    kind = numpy.int32 if x.dtype == torch.int64 else numpy.float32
    try:
        traced = torch.jit.trace(module, x, check_trace=False)
        show(f"{name} trace", _converted(traced, inputs=[coremltools.TensorType(shape=x.shape, dtype=kind)]))
    except Exception as error:
        show(f"{name} trace", type(error).__name__)
    try:
        show(f"{name} program", _converted(torch.export.export(module, (x,)).run_decompositions({})))
    except Exception as error:
        show(f"{name} program", type(error).__name__)
