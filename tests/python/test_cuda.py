"""cresset.cuda on a machine without CUDA: what PyTorch 2.13 for the CPU says there."""

import pytest

import cresset


def test_states_of_a_machine_without_cuda():
    assert not cresset.cuda.is_available() and not cresset.cuda.is_initialized()
    assert cresset.cuda.device_count() == 0
    assert cresset.cuda.memory_allocated() == cresset.cuda.max_memory_reserved("cuda") == 0
    assert cresset.cuda.get_rng_state_all() == []
    assert cresset.cuda.empty_cache() is None and cresset.cuda.manual_seed_all(3) is None


@pytest.mark.parametrize("name", ["current_device", "current_stream", "get_device_properties", "synchronize", "mem_get_info", "init"])
def test_what_needs_a_device_refuses(name):
    with pytest.raises(AssertionError, match="^Torch not compiled with CUDA enabled$"):
        getattr(cresset.cuda, name)()


def test_streams_and_devices():
    with pytest.raises(RuntimeError, match=r"^torch\.cuda\.Stream requires CUDA support$"):
        cresset.cuda.Stream()
    with pytest.raises(RuntimeError, match=r"^torch\.cuda\.Event requires CUDA support$"):
        cresset.cuda.Event(enable_timing=True)
    with cresset.cuda.device(-1), cresset.cuda.device(None), cresset.cuda.stream(None):
        pass
    with pytest.raises(RuntimeError, match="^PyTorch was compiled without CUDA support$"), cresset.cuda.device("cuda:1"):
        pass
    with pytest.raises(ValueError, match="^Expected a cuda device, but got: cpu$"):
        cresset.cuda.device("cpu")


def test_older_names_of_amp():
    with pytest.warns(FutureWarning, match=r"custom_fwd\(args...\)` is deprecated. Please use `torch.amp.custom_fwd"):

        class Double(cresset.autograd.Function):
            @staticmethod
            @cresset.cuda.amp.custom_fwd(cast_inputs=cresset.float32)
            def forward(ctx, x):
                return x * 2

            @staticmethod
            @cresset.cuda.amp.custom_bwd
            def backward(ctx, g):
                return g * 2

    x = cresset.ones(2, requires_grad=True)
    with pytest.warns(UserWarning, match="CUDA is not available"), cresset.cuda.amp.autocast():
        assert not cresset.is_autocast_enabled("cuda")
        Double.apply(x).sum().backward()
    assert x.grad.tolist() == [2, 2]
    with pytest.warns(UserWarning):
        scaler = cresset.cuda.amp.GradScaler()
    assert not scaler.is_enabled() and isinstance(scaler, cresset.amp.GradScaler)


def test_typed_tensors_and_storages_cannot_be_made():
    with pytest.raises(TypeError, match=r"^type torch.cuda.IntTensor not available. Torch not compiled with CUDA enabled.$"):
        cresset.cuda.IntTensor(3)
    with pytest.raises(AssertionError, match="^Torch not compiled with CUDA enabled$"):
        cresset.cuda.IntStorage(3)
    assert not isinstance(cresset.ones(1), cresset.cuda.FloatTensor)
    for way in ("from_buffer", "_new_with_weak_ptr", "_new_shared_filename"):
        with pytest.raises(RuntimeError, match=f"^{way}: Not available for CUDA storage$"):
            getattr(cresset.cuda.FloatStorage, way)()


def test_types_of_tensors_are_no_default():
    import cresset

    for kind in (cresset.cuda.FloatTensor, "torch.cuda.FloatTensor"):
        with pytest.raises(TypeError, match=r"^type torch.cuda.FloatTensor not available. Torch not compiled with CUDA enabled.$"):
            cresset.set_default_tensor_type(kind)
    assert cresset.cuda.HalfTensor.dtype is cresset.float16
