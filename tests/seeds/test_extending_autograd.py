"""The samples on autograd of "Extending PyTorch", as they are written there."""

import cresset as torch
from cresset import nn
from cresset.autograd import Function


# Inherit from Function
class LinearFunction(Function):
    # Note that both forward and backward are @staticmethods
    @staticmethod
    # bias is an optional argument
    def forward(ctx, input, weight, bias=None):
        ctx.save_for_backward(input, weight, bias)
        output = input.mm(weight.t())
        if bias is not None:
            output += bias.unsqueeze(0).expand_as(output)
        return output

    # This function has only a single output, so it gets only one gradient
    @staticmethod
    def backward(ctx, grad_output):
        # This is a pattern that is very convenient - at the top of backward
        # unpack saved_tensors and initialize all gradients w.r.t. inputs to
        # None. Thanks to the fact that additional trailing Nones are
        # ignored, the return statement is simple even when the function has
        # optional inputs.
        input, weight, bias = ctx.saved_tensors
        grad_input = grad_weight = grad_bias = None
        # These needs_input_grad checks are optional and there only to
        # improve efficiency. If you want to make your code simpler, you can
        # skip them. Returning gradients for inputs that don't require it is
        # not an error.
        if ctx.needs_input_grad[0]:
            grad_input = grad_output.mm(weight)
        if ctx.needs_input_grad[1]:
            grad_weight = grad_output.t().mm(input)
        if bias is not None and ctx.needs_input_grad[2]:
            grad_bias = grad_output.sum(0)
        return grad_input, grad_weight, grad_bias


linear = LinearFunction.apply


class MulConstant(Function):
    @staticmethod
    def forward(ctx, tensor, constant):
        # ctx is a context object that can be used to stash information
        # for backward computation
        ctx.constant = constant
        return tensor * constant

    @staticmethod
    def backward(ctx, grad_output):
        # We return as many input gradients as there were arguments.
        # Gradients of non-Tensor arguments to forward must be None.
        return grad_output * ctx.constant, None


class MulConstantUnmaterialized(Function):
    @staticmethod
    def forward(ctx, tensor, constant):
        ctx.set_materialize_grads(False)
        ctx.constant = constant
        return tensor * constant

    @staticmethod
    def backward(ctx, grad_output):
        # Here we must handle None grad_output tensor. In this case we
        # can skip unnecessary computations and just return None.
        if grad_output is None:
            return None, None

        # We return as many input gradients as there were arguments.
        # Gradients of non-Tensor arguments to forward must be None.
        return grad_output * ctx.constant, None


class Linear(nn.Module):
    def __init__(self, input_features, output_features, bias=True):
        super(Linear, self).__init__()
        self.input_features = input_features
        self.output_features = output_features

        # nn.Parameter is a special kind of Tensor, that will get
        # automatically registered as Module's parameter once it's assigned
        # as an attribute.
        self.weight = nn.Parameter(torch.empty(output_features, input_features))
        if bias:
            self.bias = nn.Parameter(torch.empty(output_features))
        else:
            # You should always register all possible parameters, but the
            # optional ones can be None if you want.
            self.register_parameter("bias", None)

        # Not a very smart way to initialize weights
        nn.init.uniform_(self.weight, -0.1, 0.1)
        if self.bias is not None:
            nn.init.uniform_(self.bias, -0.1, 0.1)

    def forward(self, input):
        # See the autograd section for explanation of what happens here.
        return LinearFunction.apply(input, self.weight, self.bias)

    def extra_repr(self):
        # (Optional)Set the extra information about this module. You can test
        # it by printing an object of this class.
        return "input_features={}, output_features={}, bias={}".format(self.input_features, self.output_features, self.bias is not None)


def test_gradcheck_sample():
    from cresset.autograd import gradcheck

    # gradcheck takes a tuple of tensors as input, check if your gradient
    # evaluated with these tensors are close enough to numerical
    # approximations and returns True if they all verify this condition.
    input = (torch.randn(20, 20, dtype=torch.double, requires_grad=True), torch.randn(30, 20, dtype=torch.double, requires_grad=True))
    assert gradcheck(linear, input, eps=1e-6, atol=1e-4)


def test_linear_with_and_without_bias():
    x, w, b = (torch.randn(*s, dtype=torch.double, requires_grad=True) for s in ((4, 3), (2, 3), (2,)))
    assert torch.autograd.gradcheck(linear, (x, w, b))
    assert torch.autograd.gradgradcheck(linear, (x, w, b))
    assert torch.equal(linear(x, w), torch.nn.functional.linear(x, w))


def test_mul_constant():
    for function in (MulConstant, MulConstantUnmaterialized):
        x = torch.randn(3, dtype=torch.double, requires_grad=True)
        assert torch.autograd.gradcheck(lambda v, function=function: function.apply(v, 5.5), (x,))
        function.apply(x, 5.5).sum().backward()
        assert x.grad.tolist() == [5.5] * 3


def test_linear_module():
    module = Linear(3, 2)
    assert repr(module) == "Linear(input_features=3, output_features=2, bias=True)"
    module(torch.randn(4, 3)).sum().backward()
    assert module.weight.grad.shape == (2, 3) and module.bias.grad.tolist() == [4.0, 4.0]
    assert Linear(3, 2, bias=False).bias is None


class ForwardMode(Function):
    """What the section on forward mode asks for: state on ctx, views and in-place writes repeated by jvp."""

    @staticmethod
    def forward(ctx, x, changed, k):
        ctx.k, ctx.foo = k, x
        ctx.mark_dirty(changed)
        return x.view(-1), changed.mul_(k), x * k

    @staticmethod
    def backward(ctx, of_view, of_changed, of_product):
        return (of_view.view(2, 1) + of_product * ctx.k), of_changed * ctx.k, None

    @staticmethod
    def jvp(ctx, x_t, changed_t, k_t):
        assert k_t is None
        del ctx.foo
        return x_t.view(-1), changed_t.mul_(ctx.k), x_t * ctx.k


def test_forward_mode_samples():
    ad = torch.autograd.forward_ad
    with ad.dual_level():
        x = ad.make_dual(torch.ones(2, 1), torch.full((2, 1), 2.0))
        y = ad.make_dual(torch.ones(2), torch.full((2,), 3.0))
        view, changed, product = ForwardMode.apply(x, y, 4.0)
        assert changed is y
        assert [ad.unpack_dual(t).tangent.tolist() for t in (view, changed, product)] == [[2, 2], [12, 12], [[8], [8]]]
