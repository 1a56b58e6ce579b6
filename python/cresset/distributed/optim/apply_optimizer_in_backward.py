"""Optimizers that step inside of backward, as soon as a parameter has its gradient, which is then given back."""

__all__ = []


def _apply_optimizer_in_backward(optimizer_class, params, optimizer_kwargs, register_hook=True):
    """Give each parameter an optimizer of its own that steps when backward has accumulated its gradient, and lets the gradient go.

    A parameter that is given several times, in a call or in several, has as many optimizers, which step in their order. Without `register_hook` whoever reduces gradients calls them.
    The optimizers are in `param._in_backward_optimizers`.
    """
    for param in params:
        if not hasattr(param, "_in_backward_optimizers"):
            param._in_backward_optimizers, param._optimizer_classes, param._optimizer_kwargs = [], [], []
            if register_hook:
                param.register_post_accumulate_grad_hook(_step_all)
        param._optimizer_classes.append(optimizer_class)
        param._optimizer_kwargs.append(optimizer_kwargs)
        param._in_backward_optimizers.append(optimizer_class([param], **optimizer_kwargs))


def _step_all(param):
    for optimizer in param._in_backward_optimizers:
        optimizer.step()
    param.grad = None


def _get_in_backward_optimizers(module):
    """The optimizers of a module's parameters that step inside of backward, for checkpoints."""
    return [optimizer for param in module.parameters() for optimizer in getattr(param, "_in_backward_optimizers", ())]
