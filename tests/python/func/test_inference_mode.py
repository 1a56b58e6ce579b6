"""Transforms in inference mode run their functions in the normal mode; gradients were zeros. Values are PyTorch 2.13's."""

import cresset as torch
import pytest
from cresset.func import functional_call, grad, grad_and_value, hessian, jacfwd, jacrev, jvp, linearize, vjp, vmap

X = [1.0, 2.0]


def cube(v):
    return (v**3).sum()


CALLS = {
    "grad": (lambda x: grad(cube)(x), [3.0, 12.0]),
    "grad_and_value": (lambda x: grad_and_value(cube)(x)[0], [3.0, 12.0]),
    "jacrev": (lambda x: jacrev(lambda v: v**2)(x), [[2.0, 0.0], [0.0, 4.0]]),
    "jacfwd": (lambda x: jacfwd(lambda v: v**2)(x), [[2.0, 0.0], [0.0, 4.0]]),
    "vjp": (lambda x: vjp(lambda v: v**2, x)[1](x)[0], [2.0, 8.0]),
    "jvp": (lambda x: jvp(lambda v: v**2, (x,), (x,))[1], [2.0, 8.0]),
    "hessian": (lambda x: hessian(cube)(x), [[6.0, 0.0], [0.0, 12.0]]),
    "vmap of grad": (lambda x: vmap(grad(lambda v: v**2))(x), [2.0, 4.0]),
    "linearize": (lambda x: linearize(lambda v: v**2, x)[1](x), [2.0, 8.0]),
}


@pytest.mark.parametrize("made_inside", [True, False])
@pytest.mark.parametrize("name", CALLS)
def test_derivatives(name, made_inside):
    call, expected = CALLS[name]
    x = torch.tensor(X)
    with torch.inference_mode():
        result = call(torch.tensor(X) if made_inside else x)
        assert torch.is_inference_mode_enabled()
    assert result.tolist() == expected
    assert not result.is_inference()


def test_tensors_of_inference_mode_that_functions_capture():
    with torch.inference_mode():
        y, z = torch.tensor([1.0, 2.0]), torch.tensor([3.0, 4.0])
        model = torch.nn.Linear(2, 1)
        torch.nn.init.ones_(model.weight), torch.nn.init.ones_(model.bias)
        assert grad(lambda v: (v * z).sum())(y).tolist() == [3.0, 4.0]
        assert grad(lambda v: model(v).sum())(y).tolist() == [1.0, 1.0]
        assert hessian(lambda v: (v * v * z).sum())(y).tolist() == [[6.0, 0.0], [0.0, 8.0]]
        assert grad(lambda p: functional_call(model, p, (y,)).sum())(dict(model.named_parameters()))["weight"].tolist() == [[1.0, 2.0]]
    assert grad(lambda v: (v * z).sum())(y).tolist() == [3.0, 4.0]
    assert grad(lambda v: (v * v * z).sum())(torch.ones(2)).tolist() == [6.0, 8.0]


@pytest.mark.parametrize("transform", [grad, lambda f: lambda x: jvp(f, (x,), (x,))])
def test_what_the_function_sees(transform):
    seen = []

    def f(v):
        seen.append((torch.is_inference_mode_enabled(), v.is_inference(), (v * 2).is_inference(), torch.ones(1).is_inference()))
        return v.sum()

    with torch.inference_mode():
        transform(f)(torch.tensor(X))
    assert seen == [(False, False, False, False)]


def test_saving_outside_of_transforms_is_still_refused():
    with torch.inference_mode():
        z = torch.ones(2)
    with pytest.raises(RuntimeError, match="Inference tensors cannot be saved for backward"):
        torch.ones(2, requires_grad=True) * z
