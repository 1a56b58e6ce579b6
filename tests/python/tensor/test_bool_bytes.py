"""Flags from memory that holds other bytes than 0 and 1: each counts once."""

import cresset

BYTES = cresset.tensor([[0, 1, 2, 254], [3, 0, 128, 0]], dtype=cresset.uint8)
STRANGE, PLAIN = BYTES.view(cresset.bool), BYTES != 0
NUMBERS = cresset.arange(8).view(2, 4)


def test_places_and_selections():
    assert cresset.equal(STRANGE.nonzero(), PLAIN.nonzero())
    assert cresset.equal(NUMBERS.masked_select(STRANGE), NUMBERS.masked_select(PLAIN))
    assert cresset.equal(NUMBERS[STRANGE], NUMBERS[PLAIN])
    assert cresset.equal(NUMBERS.t()[STRANGE.t()], NUMBERS.t()[PLAIN.t()])


def test_writes():
    source = cresset.arange(100, 108)
    for mask in (STRANGE, STRANGE[:1]):
        same = mask.view(cresset.uint8) != 0
        assert cresset.equal(NUMBERS.masked_scatter(mask, source), NUMBERS.masked_scatter(same, source))
        assert cresset.equal(NUMBERS.masked_fill(mask, 9), NUMBERS.masked_fill(same, 9))
    for mask in (STRANGE, PLAIN):
        written = NUMBERS.clone()
        written[mask] = 7
        assert cresset.equal(written, cresset.where(PLAIN, 7, NUMBERS))
