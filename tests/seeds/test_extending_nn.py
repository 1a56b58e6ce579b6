"""The samples of the page "Extending torch.nn": a function with its gradient, and the module around it."""

import cresset as torch
from cresset import nn
from cresset.autograd import Function, gradcheck


class LinearFunction(Function):
    @staticmethod
    def forward(ctx, input, weight, bias=None):
        ctx.save_for_backward(input, weight, bias)
        output = input.mm(weight.t())
        if bias is not None:
            output += bias.unsqueeze(0).expand_as(output)
        return output

    @staticmethod
    def backward(ctx, grad_output):
        input, weight, bias = ctx.saved_tensors
        grad_input = grad_weight = grad_bias = None
        if ctx.needs_input_grad[0]:
            grad_input = grad_output.mm(weight)
        if ctx.needs_input_grad[1]:
            grad_weight = grad_output.t().mm(input)
        if bias is not None and ctx.needs_input_grad[2]:
            grad_bias = grad_output.sum(0)
        return grad_input, grad_weight, grad_bias


class Linear(nn.Module):
    def __init__(self, input_features, output_features, bias=True):
        super(Linear, self).__init__()
        self.input_features = input_features
        self.output_features = output_features
        self.weight = nn.Parameter(torch.empty(output_features, input_features))
        if bias:
            self.bias = nn.Parameter(torch.empty(output_features))
        else:
            self.register_parameter("bias", None)
        nn.init.uniform_(self.weight, -0.1, 0.1)
        if self.bias is not None:
            nn.init.uniform_(self.bias, -0.1, 0.1)

    def forward(self, input):
        return LinearFunction.apply(input, self.weight, self.bias)

    def extra_repr(self):
        return "input_features={}, output_features={}, bias={}".format(self.input_features, self.output_features, self.bias is not None)


def test_module():
    layer = Linear(3, 2)
    assert repr(layer) == "Linear(input_features=3, output_features=2, bias=True)"
    assert [n for n, _ in layer.named_parameters()] == ["weight", "bias"] and all(p.requires_grad for p in layer.parameters())
    x = torch.randn(4, 3)
    assert torch.allclose(layer(x), nn.functional.linear(x, layer.weight, layer.bias))
    layer(x).sum().backward()
    assert torch.allclose(layer.bias.grad, torch.full((2,), 4.0))
    without = Linear(3, 2, bias=False)
    assert repr(without) == "Linear(input_features=3, output_features=2, bias=False)"
    assert [n for n, _ in without.named_parameters()] == ["weight"] and list(without.state_dict()) == ["weight"] and without.bias is None


def test_gradcheck():
    inputs = (torch.randn(20, 20, dtype=torch.double, requires_grad=True), torch.randn(30, 20, dtype=torch.double, requires_grad=True))
    assert gradcheck(LinearFunction.apply, inputs, eps=1e-6, atol=1e-4)
