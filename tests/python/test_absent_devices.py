"""xpu, mps and mtia answer as PyTorch 2.13 does on a machine without them (recorded), and are loaded when they are asked for."""

import pytest

import cresset

ANSWERS = {
    "xpu": {
        "is_available": False, "is_initialized": False, "is_bf16_supported": False, "is_tf32_supported": False, "device_count": 0, "empty_cache": None,
        "get_arch_list": [], "get_gencode_flags": "", "get_rng_state_all": [], "memory_allocated": 0, "max_memory_reserved": 0, "memory_snapshot": [],
        "memory_stats": {}, "seed": None, "seed_all": None,
    },
    "mps": {"is_available": False, "device_count": 0},
    "mtia": {"is_available": False, "is_bf16_supported": True, "device_count": 0, "memory_stats": {}, "get_rng_state_all": [], "seed_all": None},
}  # fmt: skip
REFUSALS = {
    "xpu": {n: (AssertionError, "Torch not compiled with XPU enabled") for n in ("current_device", "init", "synchronize", "mem_get_info", "get_rng_state")}
    | {n: (RuntimeError, f"Tried to instantiate dummy base class {n}") for n in ("Event", "Stream", "XPUGraph", "MemPool")},
    "mps": {
        "compile_shader": (RuntimeError, "MPS is not available"), "synchronize": (RuntimeError, "Cannot execute deviceSynchronize() without MPS backend."),
        "seed": (RuntimeError, "Cannot execute getDefaultGenerator() without MPS backend."),
        "Event": (RuntimeError, "Cannot execute acquireEvent() without MPS backend."),
    },
    "mtia": {
        "current_device": (RuntimeError, "Cannot execute getCurrentDevice() without MTIA backend."),
        "initial_seed": (AssertionError, "Torch not compiled with MTIA enabled"),
    },
}  # fmt: skip


@pytest.mark.parametrize("device, name", [(d, n) for d, names in ANSWERS.items() for n in names])
def test_answers(device, name):
    assert getattr(getattr(cresset, device), name)() == ANSWERS[device][name]


@pytest.mark.parametrize("device, name", [(d, n) for d, names in REFUSALS.items() for n in names])
def test_refusals(device, name):
    error, words = REFUSALS[device][name]
    with pytest.raises(error) as raised:
        getattr(getattr(cresset, device), name)()
    assert str(raised.value).startswith(words)


def test_an_answer_is_the_callers_own():
    cresset.xpu.memory_snapshot().append(1)
    assert cresset.xpu.memory_snapshot() == []


def test_contexts_and_seeds():
    with cresset.xpu.device(0), cresset.xpu.device_of(cresset.ones(1)), cresset.xpu.stream(None), cresset.mtia.device(1):
        for module in (cresset.xpu, cresset.mps, cresset.mtia):
            module.manual_seed(3)
            with pytest.raises(ValueError):
                module.manual_seed("word")
            with pytest.raises(TypeError, match=r"missing 1 required positional argument: 'seed'"):
                module.manual_seed()


def test_what_the_build_has():
    assert not any(getattr(cresset._C, f"_has_{name}") for name in ("cuda", "cudnn", "magma", "mps", "xpu"))
