"""GradScaler: factors, steps that are left out, the order of calls."""

import pickle

import pytest

import cresset as torch
from cresset.amp import GradScaler


@pytest.fixture
def parts():
    parameter = torch.nn.Parameter(torch.ones(2))
    return GradScaler("cpu", init_scale=4.0, growth_interval=1), parameter, torch.optim.SGD([parameter], lr=1.0)


def test_a_step(parts):
    scaler, parameter, optimizer = parts
    scaler.scale((parameter * 2).sum()).backward()
    assert parameter.grad.tolist() == [8.0, 8.0]
    scaler.unscale_(optimizer)
    assert parameter.grad.tolist() == [2.0, 2.0]
    with pytest.raises(RuntimeError, match=r"unscale_\(\) has already been called on this optimizer since the last update\(\)."):
        scaler.unscale_(optimizer)
    scaler.step(optimizer)
    assert parameter.tolist() == [-1.0, -1.0]
    with pytest.raises(RuntimeError, match=r"unscale_\(\) is being called after step\(\)."):
        scaler.unscale_(optimizer)
    with pytest.raises(RuntimeError, match=r"step\(\) has already been called since the last update\(\)."):
        scaler.step(optimizer)
    scaler.update()
    assert scaler.get_scale() == 8.0


def test_gradients_that_are_not_finite(parts):
    scaler, parameter, optimizer = parts
    scaler.scale(parameter.sum()).backward()
    parameter.grad[0] = float("inf")
    assert scaler.step(optimizer) is None and parameter.tolist() == [1.0, 1.0]
    scaler.update()
    assert scaler.get_scale() == 2.0
    scaler.update(new_scale=16.0)
    assert scaler.get_scale() == 16.0


def test_growth_interval():
    scaler, parameter = GradScaler("cpu", init_scale=4.0, growth_interval=2), torch.nn.Parameter(torch.ones(1))
    optimizer = torch.optim.SGD([parameter], lr=0.0)
    scales = []
    for _ in range(4):
        scaler.scale(parameter.sum()).backward()
        scaler.step(optimizer)
        scaler.update()
        scales.append(scaler.get_scale())
    assert scales == [4.0, 8.0, 8.0, 16.0]


def test_containers(parts):
    scaled = parts[0].scale([torch.ones(1), (torch.ones(1),)])
    assert scaled[0].item() == 4.0 and isinstance(scaled[1], tuple) and scaled[1][0].item() == 4.0
    with pytest.raises(ValueError, match="outputs must be a Tensor or an iterable of Tensors"):
        parts[0].scale(3)


def test_state():
    scaler = GradScaler("cpu")
    state = {"scale": 65536.0, "growth_factor": 2.0, "backoff_factor": 0.5, "growth_interval": 2000, "_growth_tracker": 0}
    assert scaler.state_dict() == state and scaler.is_enabled()
    scaler.load_state_dict({**state, "scale": 2.0})
    assert scaler.get_scale() == 2.0
    off = GradScaler("cpu", enabled=False)
    assert off.state_dict() == {} and off.get_scale() == 1.0 and off.scale(3) == 3
    with pytest.raises(RuntimeError, match="The source state dict is empty"):
        scaler.load_state_dict({})


def test_order_of_calls(parts):
    scaler, parameter, optimizer = parts
    with pytest.raises(AssertionError, match="Attempted update but _scale is None"):
        scaler.update()
    with pytest.raises(AssertionError, match="Attempted step but _scale is None"):
        scaler.step(optimizer)
    scaler.scale(torch.ones(1))
    with pytest.raises(AssertionError, match="No inf checks were recorded for this optimizer."):
        scaler.step(optimizer)
    with pytest.raises(AssertionError, match="No inf checks were recorded prior to update."):
        scaler.update()
    with pytest.raises(RuntimeError, match="Closure use is not currently supported if GradScaler is enabled."):
        scaler.step(optimizer, closure=print)
    half = torch.nn.Parameter(torch.ones(1).half())
    half.grad = torch.ones(1).half()
    with pytest.raises(ValueError, match="Attempting to unscale FP16 gradients."):
        scaler.unscale_(torch.optim.SGD([half], lr=1.0))
    for options, words in ((dict(growth_factor=1.0), "The growth factor must be > 1.0."), (dict(backoff_factor=1.0), "The backoff factor must be < 1.0.")):
        with pytest.raises(AssertionError, match=words):
            GradScaler("cpu", **options)
    with pytest.warns(UserWarning, match="CUDA is not available"):
        assert not GradScaler().is_enabled()


@pytest.mark.parametrize("takes", ["scaler", "attributes"])
@pytest.mark.parametrize("infinite", [False, True])
@pytest.mark.parametrize("unscaled", [False, True])
def test_optimizers_that_divide_by_themselves(takes, infinite, unscaled):
    seen = []

    class Own(torch.optim.SGD):
        _step_supports_amp_scaling = True

        if takes == "scaler":

            def step(self, closure=None, *, grad_scaler=None):
                seen.append((grad_scaler, getattr(self, "found_inf", None)))
        else:

            def step(self, closure=None):
                seen.append((self.grad_scale, self.found_inf))

    p = torch.nn.Parameter(torch.ones(2))
    optimizer, scaler = Own([p], lr=1.0), torch.amp.GradScaler("cpu", init_scale=4.0)
    scaler.scale(p.sum() * (float("inf") if infinite else 1)).backward()
    if unscaled:
        scaler.unscale_(optimizer)
    before = p.grad.clone()
    if takes == "scaler":
        with pytest.warns(FutureWarning, match="stop passing itself"):
            scaler.step(optimizer)
        assert seen == [(scaler, None)]
    else:
        scaler.step(optimizer)
        ((scale, found),) = seen
        assert (scale is None if unscaled else scale.item() == 4.0) and found.item() == float(infinite)
        assert not hasattr(optimizer, "grad_scale") and not hasattr(optimizer, "found_inf")
    assert torch.equal(p.grad, before)
    if takes == "scaler" and not unscaled:  # such an optimizer asks the scaler itself
        with pytest.raises(AssertionError, match="No inf checks were recorded prior to update."):
            scaler.update()
        assert scaler._check_inf_per_device(optimizer)[p.device].item() == float(infinite) and torch.equal(p.grad, before)
    scaler.update()
    assert scaler.get_scale() == (2.0 if infinite else 4.0)


def test_parts_that_subclasses_use(parts):
    scaler, parameter, optimizer = parts
    assert scaler._scale is None and scaler._growth_tracker is None and scaler._get_growth_tracker() == 0
    scaler.scale(parameter.sum()).backward()
    assert (scaler._scale.item(), scaler._scale.shape, scaler._scale.dtype) == (4.0, (), torch.float32)
    assert (scaler._growth_tracker.item(), scaler._growth_tracker.dtype) == (0, torch.int32)
    scaler.unscale_(optimizer)
    assert scaler._found_inf_per_device(optimizer) == {torch.device("cpu"): torch.tensor(0.0)}
    words = "A GradScaler instance may only be pickled at the beginning of an iteration, or at the end after scaler.update()."
    with pytest.raises(AssertionError) as raised:
        pickle.dumps(scaler)
    assert str(raised.value) == words
    scaler.update(torch.tensor([16.0]))
    copy = pickle.loads(pickle.dumps(scaler))
    assert copy._scale is None and copy.get_scale() == 16.0 and copy._per_optimizer_states["other"] == {"stage": type(copy._per_optimizer_states["x"]["stage"]).READY, "found_inf_per_device": {}}
    for wrong in (torch.ones(2), torch.ones(1, requires_grad=True), torch.ones(1, dtype=torch.float64)):
        with pytest.raises(AssertionError, match="new_scale should be a float or a 1-element torch.cuda.FloatTensor or torch.FloatTensor with requires_grad=False."):
            scaler.update(wrong)


def test_gradients_of_few_places():
    place = torch.tensor([[0, 1, 0], [2, 0, 2]])
    for values, infinite in (([16.0, 32.0, 64.0], 0.0), ([16.0, float("nan"), 64.0], 1.0), ([64000.0, 32.0, 64000.0], 1.0)):
        p = torch.sparse_coo_tensor(place, torch.tensor(values), (2, 3), dtype=torch.float16)
        p.grad = p.clone()
        optimizer, scaler = torch.optim.SGD([p], lr=1.0), GradScaler("cpu")
        with pytest.raises(ValueError, match="Attempting to unscale FP16 gradients."):
            scaler._unscale_grads_(optimizer, torch.tensor(0.25), torch.tensor(0.0), False)
        found = scaler._unscale_grads_(optimizer, torch.full((1,), 0.25), torch.zeros(1), True)
        assert found[p.device].tolist() == [infinite]  # 64000 + 64000 is more than a half holds
        if not infinite:
            assert p.grad.to_dense().tolist() == [[0.0, 0.0, 20.0], [8.0, 0.0, 0.0]]


@pytest.mark.parametrize("kind", ["SGD", "Adam", "AdamW", "Adagrad"])
@pytest.mark.parametrize("infinite", [False, True])
def test_fused_steps_are_those_that_are_not(kind, infinite):
    found = []
    for fused in (False, True):
        p = torch.nn.Parameter(torch.ones(2))
        optimizer, scaler = getattr(torch.optim, kind)([p], lr=0.5, fused=fused), GradScaler("cpu", init_scale=4.0, growth_interval=1)
        for factor in (1.0, float("inf") if infinite else 2.0, 3.0):
            optimizer.zero_grad()
            scaler.scale((p * p).sum() * factor).backward()
            scaler.step(optimizer)
            scaler.update()
        found.append((p.detach().clone(), scaler.get_scale()))
    torch.testing.assert_close(found[0], found[1])
