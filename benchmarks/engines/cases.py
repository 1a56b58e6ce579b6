"""Runs one compiled model: `cases.py PROGRAM THREADS NAME [CLOCK [SECONDS]]`; prints one JSON object: "s" seconds a run (median), "build" seconds from the
module to the compiled program, its first run included, "peak" MiB that building and running added, "check" the mean of the result's magnitudes.
`cases.py --list` prints the names of the models.

PROGRAM: cresset (its engine), cresset-bf16 and cresset-int8 (the engine in less than float32; "check" is then near the others', not the same),
cresset-compile (cresset.compile(module) without inputs), cresset-eager, torch-eager, torch-frozen (traced, frozen, optimised for inference), torch-compile, and onnxruntime and
openvino, which read what `torch.onnx.export` wrote.
"""

import importlib
import json
import os
import resource
import statistics
import sys
import tempfile
import time
import warnings
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.append(str(HERE.parent / "models"))
from networks import networks_of

RUNS = 200  # as many as fit into the seconds, three at least


def image(batch, size=224):
    return lambda T: T.randn(batch, 3, size, size)


def tokens(vocabulary, batch, length=128):
    return lambda T: T.randint(0, vocabulary, (batch, length))


def models(batch):
    return {
        "ResNet-18": (lambda N: N.ResNet([2, 2, 2, 2], 1), image(batch)),
        "ResNet-50": (lambda N: N.ResNet([3, 4, 6, 3], 4), image(batch)),
        "MobileNetV2": (lambda N: N.MobileNetV2(), image(batch)),
        "MobileNetV3-large": (lambda N: N.MobileNetV3(), image(batch)),
        "EfficientNet-B0": (lambda N: N.EfficientNetB0(), image(batch)),
        "BERT-base 128": (lambda N: N.Bert(), tokens(30522, batch)),
        "ViT-B/16": (lambda N: N.ViT(), image(batch)),
        "GPT-2 small, prompt of 128": (lambda N: N.Prompt(), tokens(50257, batch)),
        "GPT-2 small, a token behind 128": (lambda N: N.Decode(), lambda T: T.randn(12, 2, batch, 12, 128, 64)),
        "LSTM 2x650": (lambda N: N.LanguageLSTM(650), lambda T: T.randint(0, 10000, (35, batch))),
        "U-Net 128x128": (lambda N: N.UNet(), image(batch, 128)),
        "recommender": (lambda N: N.Recommender(), lambda T: T.randint(0, 1000, (16 * batch, 26))),
    }


CASES = {f"{name}, batch {batch}": case for batch in (1, 8) for name, case in models(batch).items()}


def made(T, name):
    T.manual_seed(0)
    make, example = CASES[name]
    model = make(networks_of(T)).eval()
    for p in model.parameters():
        p.requires_grad_(False)
    T.manual_seed(1)
    return model, example(T)


def model_of(program, name, threads):
    """The module of a case and its input, in the package that the program's name begins with."""
    T = importlib.import_module(program.split("-")[0])
    T.set_num_threads(threads)
    return made(T, name)


def cresset_engine(model, x):
    import cresset

    return cresset.engine.compile(cresset.jit.trace(model, (x,), check_trace=False), inputs=[x])


def cresset_bf16(model, x):
    import cresset

    return cresset.engine.compile(cresset.jit.trace(model, (x,), check_trace=False), inputs=[x], enabled_precisions={cresset.bfloat16})


def cresset_int8(model, x):
    import cresset

    script, calibrator = cresset.jit.trace(model, (x,), check_trace=False), cresset.engine.Calibrator([x], "max")
    compiled = cresset.engine.compile(script, inputs=[x], enabled_precisions={cresset.int8}, calibrator=calibrator)
    print(cresset.engine.accuracy(compiled), file=sys.stderr)
    return compiled


def cresset_compile(model, x):
    import cresset

    return cresset.compile(model)


def eager(model, x):
    return model


def torch_frozen(model, x):
    import torch

    return torch.jit.optimize_for_inference(torch.jit.freeze(torch.jit.trace(model, (x,), check_trace=False)))


def torch_compile(model, x):
    import torch
    import torch._inductor.config

    torch._inductor.config.freezing = True
    return torch.compile(model)


def onnx_file(name, threads):
    """The exported model, kept between runs: it is not part of the building that is timed."""
    import torch

    model, x = model_of("torch", name, threads)
    path = Path(tempfile.gettempdir()) / "cresset_engine_benchmark" / f"{name.replace('/', '_')}.onnx"
    if not path.exists():
        path.parent.mkdir(exist_ok=True)
        unfinished = path.with_suffix(f".{os.getpid()}")
        torch.onnx.export(model, (x,), str(unfinished), dynamo=False, opset_version=17, input_names=["x"])
        unfinished.rename(path)
    return path, x.numpy()


def of_onnxruntime(path, threads):
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.inter_op_num_threads = threads, 1
    session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    return lambda x: session.run(None, {"x": x})[0]


def of_openvino(path, threads):
    import openvino

    compiled = openvino.Core().compile_model(str(path), "CPU", {"INFERENCE_NUM_THREADS": threads, "PERFORMANCE_HINT": "LATENCY", "INFERENCE_PRECISION_HINT": "f32"})
    return lambda x: compiled(x)[0]


PROGRAMS = {
    "cresset": cresset_engine, "cresset-bf16": cresset_bf16, "cresset-int8": cresset_int8, "cresset-compile": cresset_compile,
    "cresset-eager": eager, "torch-eager": eager, "torch-frozen": torch_frozen, "torch-compile": torch_compile,
}  # fmt: skip
ONNX = {"onnxruntime": of_onnxruntime, "openvino": of_openvino}


def run(program: str, threads: int, name: str, clock, seconds: float = 4.0) -> dict:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss  # the module's weights count, the time to make them does not
    if program in ONNX:
        path, x = onnx_file(name, threads)
        build = lambda: ONNX[program](path, threads)
    else:
        module, x = model_of(program, name, threads)
        build = lambda: PROGRAMS[program](module, x)
    at = time.perf_counter()
    model = build()
    guard = __import__(program.split("-")[0]).inference_mode() if program not in ONNX else warnings.catch_warnings()
    times = []
    with guard:
        check = float(abs(model(x)).mean())
        built = time.perf_counter() - at
        model(x)
        start = time.perf_counter()
        while len(times) < 3 or (time.perf_counter() - start < seconds and len(times) < RUNS):
            at = clock()
            model(x)
            times.append(clock() - at)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    return {"s": statistics.median(times), "build": built, "peak": peak / 1024, "check": check}


def main() -> None:
    if sys.argv[1] == "--list":
        print(json.dumps(list(CASES)))
        return
    warnings.simplefilter("ignore")
    clock = time.process_time if sys.argv[4:5] == ["cpu"] else time.perf_counter
    print(json.dumps(run(sys.argv[1], int(sys.argv[2]), sys.argv[3], clock, *map(float, sys.argv[5:6]))))


if __name__ == "__main__":
    main()
