"""L-BFGS, with a line search for the strong Wolfe conditions."""

from collections import namedtuple

import cresset

from .optimizer import Optimizer, as_float, check_lr

__all__ = ["LBFGS"]

# One place on the line of a search: step, loss, gradient, slope.
_Point = namedtuple("_Point", "t loss grad slope")


def _cubic_minimum(a, b, bounds=None):
    """Where the cubic through two points with their slopes is lowest, within bounds (Nocedal and Wright 2006, eq. 3.59)."""
    low, high = bounds or (min(a.t, b.t), max(a.t, b.t))
    if a.t > b.t:
        a, b = b, a
    if a.t == b.t:  # both ends of a bracket met: no cubic
        return (low + high) / 2.0
    d1 = a.slope + b.slope - 3 * (a.loss - b.loss) / (a.t - b.t)
    square = d1 * d1 - a.slope * b.slope
    if not square >= 0:
        return (low + high) / 2.0
    d2 = square**0.5
    bend = b.slope - a.slope + 2 * d2
    if bend == 0:  # a straight line
        return (low + high) / 2.0
    t = b.t - (b.t - a.t) * ((b.slope + d2 - d1) / bend)
    return min(max(t, low), high)


def _search(evaluate, start, t, length, tolerance, c1=1e-4, c2=0.9, limit=25):
    """(point, evaluations): a step from `start` that lowers the loss enough and flattens the slope (Nocedal and Wright 2006, 3.5 and 3.6).

    `length` is the largest element of the direction, `evaluate(t)` the point at a step.
    """
    previous, new = start, evaluate(t)
    evaluations, rounds, bracket, done = 1, 0, None, False

    def lowers_too_little(point):
        return point.loss > start.loss + c1 * point.t * start.slope

    while rounds < limit:
        if lowers_too_little(new) or (rounds > 1 and new.loss >= previous.loss):
            bracket = [previous, new]
            break
        if abs(new.slope) <= -c2 * start.slope:
            bracket, done = [new], True
            break
        if new.slope >= 0:
            bracket = [previous, new]
            break
        t = _cubic_minimum(previous, new, (new.t + 0.01 * (new.t - previous.t), new.t * 10))
        previous, new = new, evaluate(t)
        evaluations += 1
        rounds += 1
    if bracket is None:
        bracket = [start, new]

    bracket.sort(key=lambda point: point.loss)
    stuck = False  # was the last step already near an end of the bracket?
    while not done and rounds < limit:
        low, high = sorted(point.t for point in bracket)
        if (high - low) * length < tolerance:
            break
        t = _cubic_minimum(*bracket)
        margin = 0.1 * (high - low)
        if min(high - t, t - low) < margin:
            if stuck or t >= high or t <= low:
                t = high - margin if abs(t - high) < abs(t - low) else low + margin
                stuck = False
            else:
                stuck = True
        else:
            stuck = False
        new = evaluate(t)
        evaluations += 1
        rounds += 1
        best, other = bracket
        if lowers_too_little(new) or new.loss >= best.loss:
            bracket = sorted((best, new), key=lambda point: point.loss)
        else:
            if abs(new.slope) <= -c2 * start.slope:
                done = True
            elif new.slope * (other.t - best.t) >= 0:
                other = best
            bracket = [new, other]
    return bracket[0], evaluations


# The parts of the search under PyTorch's names, for libraries that search for themselves.


def _cubic_interpolate(x1, f1, g1, x2, f2, g2, bounds=None):
    """Where the cubic through (x1, f1) and (x2, f2) with slopes g1 and g2 is lowest, within bounds."""
    return _cubic_minimum(_Point(x1, f1, None, g1), _Point(x2, f2, None, g2), bounds)


def _strong_wolfe(obj_func, x, t, d, f, g, gtd, c1=1e-4, c2=0.9, tolerance_change=1e-9, max_ls=25):
    """(loss, gradient, step, evaluations) of a step from x along d: f, g and gtd are loss, gradient and slope at x, `t` the first step to try, and
    obj_func(x, t, d) gives loss and gradient at x + t d."""

    def evaluate(step):
        loss, grad = obj_func(x, step, d)
        return _Point(step, loss, grad.clone(memory_format=cresset.contiguous_format), grad.dot(d))

    point, evaluations = _search(evaluate, _Point(0, f, g, gtd), t, d.abs().max(), tolerance_change, c1, c2, max_ls)
    return point.loss, point.grad, point.t, evaluations


class LBFGS(Optimizer):
    """Quasi-Newton steps from the last `history_size` changes of parameters and gradients.

    `step(closure)` calls the closure several times: it clears the gradients, computes the loss, runs backward and returns the loss. There is one
    group of parameters (ValueError otherwise). `line_search_fn` is None (steps of size lr) or "strong_wolfe".
    """

    def __init__(
        self, params, lr=1, max_iter=20, max_eval=None, tolerance_grad=1e-7, tolerance_change=1e-9, history_size=100, line_search_fn=None,
    ):  # fmt: skip
        check_lr(lr)
        super().__init__(
            params,
            {
                "lr": lr, "max_iter": max_iter, "max_eval": max_iter * 5 // 4 if max_eval is None else max_eval,
                "tolerance_grad": tolerance_grad, "tolerance_change": tolerance_change, "history_size": history_size,
                "line_search_fn": line_search_fn,
            },
        )  # fmt: skip
        if len(self.param_groups) != 1:
            raise ValueError("LBFGS doesn't support per-parameter options (parameter groups)")
        self._params = self.param_groups[0]["params"]

    # All parameters as one vector of real numbers --------------------------------------------------------------------

    def _flat_grad(self):
        parts = []
        for p in self._params:
            part = p.new_zeros(p.numel()) if p.grad is None else (p.grad.to_dense() if p.grad.is_sparse else p.grad).reshape(-1)
            parts.append(cresset.view_as_real(part).reshape(-1) if part.is_complex() else part)
        return cresset.cat(parts, 0)

    def _move(self, t, direction):
        """Parameters plus t times the direction."""
        at = 0
        for p in self._params:
            real = cresset.view_as_real(p) if p.is_complex() else p
            real.add_(direction[at : at + real.numel()].view_as(real), alpha=t)
            at += real.numel()

    def _restore(self, values):
        for p, value in zip(self._params, values):
            p.copy_(value)

    # The step ---------------------------------------------------------------------------------------------------------

    def _direction(self, state, grad, history_size):
        """Minus the inverse Hessian's estimate times the gradient, by the two-loop recursion (Nocedal and Wright 2006, 7.4)."""
        y, s = grad.sub(state["prev_flat_grad"]), state["d"].mul(state["t"])
        # Numbers of the parameters' type: what they cannot hold becomes inf, and a step that is nan.
        curvature = y.dot(s)
        directions, steps, inverse = state["old_dirs"], state["old_stps"], state["ro"]
        if curvature.item() > 1e-10:
            if len(directions) == history_size:
                del directions[0], steps[0], inverse[0]
            directions.append(y)
            steps.append(s)
            inverse.append(1.0 / curvature)
            state["H_diag"] = curvature / y.dot(y)
        state.setdefault("al", [None] * history_size)
        weights = state["al"]
        q = grad.neg()
        for i in reversed(range(len(directions))):
            weights[i] = steps[i].dot(q) * inverse[i]
            q.add_(directions[i], alpha=-weights[i])
        r = q.mul(state["H_diag"])
        for i in range(len(directions)):
            r.add_(steps[i], alpha=weights[i] - directions[i].dot(r) * inverse[i])
        return r

    @cresset.no_grad()
    def step(self, closure):
        """Up to max_iter iterations; returns the loss before the first."""
        group = self.param_groups[0]
        lr, max_iter, tolerance = as_float(group["lr"]), group["max_iter"], group["tolerance_change"]
        search = group["line_search_fn"]

        def evaluate():
            with cresset.enable_grad():
                return float(closure()), self._flat_grad()

        state = self.state[self._params[0]]  # for the whole optimiser
        state.setdefault("func_evals", 0)
        state.setdefault("n_iter", 0)
        with cresset.enable_grad():
            first_loss = closure()
        loss, grad = float(first_loss), self._flat_grad()
        evaluations = 1
        state["func_evals"] += 1
        if grad.abs().max().item() <= group["tolerance_grad"]:
            return first_loss

        iteration = 0
        while iteration < max_iter:
            iteration += 1
            state["n_iter"] += 1
            if state["n_iter"] == 1:
                state.update(d=grad.neg(), old_dirs=[], old_stps=[], ro=[], H_diag=1)
            else:
                state["d"] = self._direction(state, grad, group["history_size"])
            d = state["d"]
            state["prev_flat_grad"], state["prev_loss"] = grad.clone(), loss
            # At most 1, the size for a gradient of zero; of nan, too, as min(1, nan) is.
            length = grad.abs().sum().item()
            state["t"] = (1.0 / length if length > 1.0 else 1.0) * lr if state["n_iter"] == 1 else lr
            slope = grad.dot(d).item()
            if slope > -tolerance:
                break

            calls = 0
            if search is None:
                self._move(state["t"], d)
                if iteration != max_iter:
                    loss, grad = evaluate()
                    calls = 1
            elif search != "strong_wolfe":
                raise RuntimeError("only 'strong_wolfe' is supported")
            else:
                values = [p.clone() for p in self._params]

                def along(t, values=values, d=d):
                    self._move(t, d)
                    new_loss, new_grad = evaluate()
                    self._restore(values)
                    return _Point(t, new_loss, new_grad, new_grad.dot(d).item())

                start = _Point(0, loss, grad, slope)
                point, calls = _search(along, start, state["t"], d.abs().max().item(), tolerance)
                loss, grad, state["t"] = point.loss, point.grad, point.t
                self._move(point.t, d)
            evaluations += calls
            state["func_evals"] += calls

            if (
                iteration == max_iter
                or evaluations >= group["max_eval"]
                or grad.abs().max().item() <= group["tolerance_grad"]
                or d.mul(state["t"]).abs().max().item() <= tolerance
                or abs(loss - state["prev_loss"]) < tolerance
            ):
                break
        return first_loss
