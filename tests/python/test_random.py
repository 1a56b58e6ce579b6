"""The functions around the default generator."""

import cresset


def test_manual_seed():
    generator = cresset.manual_seed(7)
    assert generator is cresset.default_generator and cresset.initial_seed() == 7
    a = cresset.rand(3)
    cresset.manual_seed(7)
    assert cresset.equal(cresset.rand(3), a)


def test_states():
    state = cresset.get_rng_state()
    assert state.dtype == cresset.uint8 and state.dim() == 1
    a = cresset.randn(5)
    cresset.set_rng_state(state)
    assert cresset.equal(cresset.randn(5), a)


def test_seed_is_fresh():
    first, second = cresset.seed(), cresset.seed()
    assert first != second and cresset.initial_seed() == second


def test_fork():
    cresset.manual_seed(1)
    with cresset.random.fork_rng():
        inside = cresset.rand(1)
    assert cresset.equal(cresset.rand(1), inside)
    cresset.manual_seed(1)
    with cresset.random.fork_rng(enabled=False):
        cresset.rand(1)
    assert not cresset.equal(cresset.rand(1), inside)
