"""Promises in scripts and in Python: what is computed when it is needed first."""

import io
from typing import List, Tuple

import pytest

import cresset
from cresset import Tensor, jit
from cresset._awaits import _Await as Await

RAN = []


def plus_three(z: int) -> int:
    return z + 3


def halves(x: Tensor) -> Tuple[Tensor, List[Tensor]]:
    return x * 100, [x * i for i in range(5)]


class Two:
    def __init__(self, a: Tensor, b: Tensor):
        self.a = a
        self.b = b

    def sum(self) -> Tensor:
        return self.a + self.b


def doubled(t: Two) -> Two:
    return Two(t.a * 2, t.b * 2)


def waits(x: Tensor):
    promise: Await[int] = jit._awaitable(plus_three, 9)
    return x + jit._awaitable_wait(promise)


def known(x: Tensor):
    return x + jit._awaitable_wait(jit._awaitable_nowait(13))


def of_objects(x: Tensor):
    promise = jit._awaitable(doubled, Two(x, x))
    return promise.a + promise.sum()


def several(x: Tensor):
    promise = jit._awaitable(halves, x)
    y = x.relu()
    (_, parts) = jit._awaitable_wait(promise)
    return parts[3] + y


def nested(x: Tensor):
    return jit._awaitable_wait(jit._awaitable_wait(jit._awaitable(inner, x)))


def inner(x: Tensor) -> Await[Tensor]:
    return jit._awaitable_nowait(3 * x)


def taken(promise: Await[Tensor]) -> Tensor:
    return 3 * jit._awaitable_wait(promise)


def negated(x: Tensor) -> Tensor:
    return -x


def handed_on(x: Tensor) -> Tensor:
    return taken(jit._awaitable(negated, x)) + x


X = cresset.eye(2)


@pytest.mark.parametrize("f", [waits, known, of_objects, several, nested, handed_on], ids=lambda f: f.__name__)
def test_as_in_python(f):
    script = jit.script(f)
    assert cresset.equal(script(X), f(X))
    file = io.BytesIO()
    jit.save(script, file)
    file.seek(0)
    assert cresset.equal(jit.load(file)(X), f(X))


def test_graphs():
    assert str(jit.script(of_objects).graph).count("prim::awaitable_wait") == 2
    assert "Await[int] = prim::awaitable" in str(jit.script(waits).graph)


def failing(x: Tensor) -> Tensor:
    raise RuntimeError("it ran")


def never(x: Tensor):
    promise = jit._awaitable(failing, x)
    return x, promise


def test_what_nobody_asks_for_does_not_run():
    x, promise = jit.script(never)(X)
    assert cresset.equal(x, X)
    for _ in range(2):
        with pytest.raises(Exception, match="it ran"):
            jit._awaitable_wait(promise)


def test_isinstance():
    @jit.script
    def f(x: Tensor) -> Tensor:
        promise = jit._awaitable(negated, x)
        assert isinstance(promise, jit._Await)
        return jit._awaitable_wait(promise)

    assert cresset.equal(f(X), -X)


def test_in_python():
    calls = []

    def once(x):
        calls.append(x)
        return cresset.ones(2) * x

    promise = jit._awaitable(once, 3)
    assert isinstance(promise, cresset._C._Await) and calls == [] and promise.fn() is once and promise.args() == (3,) and not promise.is_nowait()
    assert promise.dtype == cresset.float32 and jit._awaitable_wait(promise).tolist() == [3.0, 3.0] and calls == [3]
    ready = jit._awaitable_nowait(33)
    assert ready.is_nowait() and ready.args() == (33,) and jit._awaitable_wait(ready) == 33
