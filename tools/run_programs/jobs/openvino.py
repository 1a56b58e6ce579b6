from answers import show
import numpy
import openvino
import torch
from lowered import answers

core = openvino.Core()


def _run(model, x):
    compiled = core.compile_model(model, "CPU", {"INFERENCE_PRECISION_HINT": "f32"})
    results = compiled(x.numpy())
    return [numpy.array(results[k]) for k in range(len(compiled.outputs))]


answers(show, "module", lambda m, x: _run(openvino.convert_model(m, example_input=x), x))
answers(show, "trace", lambda m, x: _run(openvino.convert_model(torch.jit.trace(m, x, check_trace=False)), x))
answers(show, "program", lambda m, x: _run(openvino.convert_model(torch.export.export(m, (x,))), x))
