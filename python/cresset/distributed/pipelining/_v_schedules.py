"""Orders of actions for ranks that have two stages in a V: rank r of n has the stages r and 2n - 1 - r, so that one rank has the first and the last."""

from ._actions import B, F, I, W, _Action

__all__ = []


def stages_of_rank(rank, size):
    """The two stages of a rank, the one nearer to the input first."""
    return rank, 2 * size - 1 - rank


class _Progress:
    """How far the ranks are, at a time that is counted in actions, all of them of one length."""

    def __init__(self, size, count):
        self.size, self.count, self.time = size, count, 0
        self.next = {kind: [0] * (2 * size) for kind in (F, I, W)}
        self.ready_at = {}  # when an action has ended

    def ended(self, stage, kind, microbatch):
        return self.ready_at.get((stage, kind, microbatch), self.time + 1) <= self.time

    def possible(self, stage, kind):
        microbatch = self.next[kind][stage]
        if microbatch == self.count:
            return False
        if kind == F:
            return stage == 0 or self.ended(stage - 1, F, microbatch)
        if kind == W:
            return self.ended(stage, I, microbatch)
        return self.ended(stage, F, microbatch) and (stage == 2 * self.size - 1 or self.ended(stage + 1, I, microbatch))

    def held(self, rank):
        """Microbatches whose activations the rank has, of both stages."""
        return sum(self.next[F][s] - self.next[W][s] for s in stages_of_rank(rank, self.size))

    def choose(self, rank):
        """The next action of a rank: gradients that others wait for, then activations, those near the end first, then weights; None: wait."""
        near, far = stages_of_rank(rank, self.size)
        room = self.held(rank) < 2 * self.size + 1
        order = [(far, I), (near, I), *([(far, F), (near, F)] if room else []), (near, W), (far, W)]
        return next(((stage, kind) for stage, kind in order if self.possible(stage, kind)), None)

    def begin(self, stage, kind):
        microbatch = self.next[kind][stage]
        self.next[kind][stage] += 1
        self.ready_at[stage, kind, microbatch] = self.time + 1
        return _Action(stage, kind, microbatch)


def zero_bubble(size, count):
    """Rank -> actions: Qi et al., "Zero Bubble Pipeline Parallelism" (2023), section 6, as what a rank does that never waits when it need not.

    With `count` >= `size` microbatches and F, I and W of one length it takes size - 1 steps more than the work of a rank. A rank has the activations of
    2 * size + 1 microbatches of a stage at most.
    """
    progress = _Progress(size, count)
    actions = {rank: [] for rank in range(size)}
    while any(len(row) < 6 * count for row in actions.values()):
        chosen = {rank: progress.choose(rank) for rank in actions}  # what begins together does not see each other
        for rank, choice in chosen.items():
            if choice is not None:
                actions[rank].append(progress.begin(*choice))
        progress.time += 1
    return actions


def dual_pipe(rank, size, count):
    """The actions of a rank: DeepSeek-AI, "DeepSeek-V3 Technical Report" (2024), section 3.2.1, DualPipe cut in half to a V ("DualPipeV").

    In its middle a forward of one direction stands beside a backward of the other, which a device may do at once. `count` >= 2 * `size`.
    """
    near, far = stages_of_rank(rank, size)
    behind = size - rank - 1  # ranks between this one and the point of the V
    actions, weights = [], []
    done = dict.fromkeys([(near, F), (far, F), (near, B), (far, B)], 0)

    def add(stage, kind):
        microbatch = done[stage, kind]
        done[stage, kind] += 1
        actions.append(_Action(stage, kind, microbatch))

    def add_input(stage):
        microbatch = done[stage, B]
        done[stage, B] += 1
        actions.append(_Action(stage, I, microbatch))
        weights.append(_Action(stage, W, microbatch))

    for _ in range(2 * behind):
        add(near, F)
    for _ in range(rank + 1):
        add(near, F)
        add(far, F)
    for _ in range(behind):
        add_input(far)
        actions.append(weights.pop(0))
        add(far, F)
    for _ in range(count - 2 * size + rank + 1):
        add(near, F)
        add(far, B)
        add(far, F)
        add(near, B)
    for _ in range(behind):
        add(far, B)
        add(far, F)
        add(near, B)
    for n in range(2 * (rank + 1)):  # towards the end weights wait, as nobody waits for them
        stage = near if n % 2 else far
        add(stage, B) if n <= rank else add_input(stage)
    for _ in range(behind):
        actions.append(weights.pop(0))
        add_input(near)
    return actions + weights
