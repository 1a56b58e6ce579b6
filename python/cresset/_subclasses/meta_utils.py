"""Tensors without values that are otherwise as given ones, and comparing what a tensor is besides its values."""

import weakref

import cresset
from cresset.utils.weak import WeakIdKeyDictionary

__all__ = ["MetaConverter", "MetaTensorDescriber", "assert_eq", "assert_metadata_eq", "is_sparse_any"]


def assert_eq(a, b):
    """AssertionError unless a == b."""
    assert a == b, f"{a} != {b}"


def _grad_of(t):
    """The gradient, of what can have one."""
    return t.grad if t.is_leaf or t.retains_grad else None


def assert_metadata_eq(assert_eq, m1, m2, *, skip_symbolic=False, skip_leaf=False):
    """Call assert_eq(of m1, of m2) for everything that tensors are but their values and devices: sizes, type, strides, flags, the gradient, the base.

    With skip_leaf, whether they are leaves is not compared.
    """
    assert_eq(m1.dtype, m2.dtype)
    if not skip_symbolic:
        assert_eq(m1.shape, m2.shape)
    assert_eq(m1.requires_grad, m2.requires_grad)
    if not skip_leaf:
        assert_eq(m1.is_leaf, m2.is_leaf)
    assert_eq(m1.grad_fn is None, m2.grad_fn is None)
    assert_eq(m1.is_inference(), m2.is_inference())
    assert_eq(m1.is_conj(), m2.is_conj())
    assert_eq(m1.is_neg(), m2.is_neg())
    grads = [_grad_of(m) for m in (m1, m2)]
    assert_eq(grads[0] is not None, grads[1] is not None)
    if all(grad is not None for grad in grads):
        assert_metadata_eq(assert_eq, *grads, skip_symbolic=skip_symbolic, skip_leaf=skip_leaf)
    assert_eq(m1._is_view(), m2._is_view())
    if m1._is_view() and m2._is_view():
        assert_metadata_eq(assert_eq, m1._base, m2._base, skip_symbolic=skip_symbolic, skip_leaf=skip_leaf)
    if not skip_symbolic and m1.layout == cresset.strided:
        assert_eq(m1.stride(), m2.stride())
        assert_eq(m1.storage_offset(), m2.storage_offset())


def is_sparse_any(t):
    """Is the value a tensor that keeps only some of its elements?"""
    return isinstance(t, cresset.Tensor) and t.layout is not cresset.strided


class MetaTensorDescriber:
    """Numbers of tensors and of their memories: equal ones for equal objects, while those live."""

    def __init__(self, *, copy_data=False):
        self.copy_data, self.next_tensor_id, self.next_storage_id = copy_data, 0, 0
        self.lookup_tensor, self.lookup_storage = WeakIdKeyDictionary(), WeakIdKeyDictionary()

    def get_tensor_id(self, t):
        """The number of a tensor."""
        if t not in self.lookup_tensor:
            self.lookup_tensor[t] = self.next_tensor_id
            self.next_tensor_id += 1
        return self.lookup_tensor[t]

    def get_storage_id(self, s):
        """The number of a memory."""
        if s not in self.lookup_storage:
            self.lookup_storage[s] = self.next_storage_id
            self.next_storage_id += 1
        return self.lookup_storage[s]


class MetaConverter:
    """Tensors without values, that are otherwise as the given ones: what shares memory, and what is a view of what, does so, too.

    `converter(t)` gives the same for the same tensor; `successful()` says whether all that were given could be converted. `hit`, `miss` and `del_hook` count.
    """

    def __init__(self, *, copy_data=False):
        self.tensor_memo, self.storage_memo = weakref.WeakValueDictionary(), weakref.WeakValueDictionary()
        self.describer = MetaTensorDescriber(copy_data=copy_data)
        self.copy_data = copy_data
        self.hit = self.miss = self.del_hook = self.arg_cnt = 0

    def successful(self):
        """Were tensors given, and all of them converted?"""
        return self.hit > 0 and self.miss == 0

    def get_tensor_memo(self, t):
        """What the tensor was converted to, or None."""
        number = self.describer.lookup_tensor.get(t)
        return None if number is None else self.tensor_memo.get(number)

    def set_tensor_memo(self, t, v):
        """Let the tensor be converted to v."""
        self.tensor_memo[self.describer.get_tensor_id(t)] = v

    def _memory(self, t):
        """A meta tensor of bytes for the memory of a tensor."""
        storage = t.untyped_storage()
        number = self.describer.get_storage_id(storage)
        found = self.storage_memo.get(number)
        if found is not None:
            found._fix_weakref()
        else:
            found = self.storage_memo[number] = cresset.empty(storage.size(), dtype=cresset.uint8, device="meta").untyped_storage()
        return found

    def strided(self, t):
        """A meta tensor of the memory of the tensor, with its sizes."""
        made = cresset.empty(0, dtype=t.dtype, device="meta")
        with cresset.no_grad():
            return made.set_(self._memory(t), t.storage_offset(), t.size(), t.stride())

    def _converted(self, t):
        known = self.get_tensor_memo(t)
        if known is not None:
            return known
        if is_sparse_any(t):
            made = cresset.sparse_coo_tensor(t.size(), dtype=t.dtype, device="meta") if t.layout is cresset.sparse_coo else t.to("meta")
            made = made.requires_grad_(t.requires_grad)
        elif t._is_view():
            made = self._view(t)
        else:
            made = self.strided(t)
            if t.requires_grad:
                made = made.requires_grad_()
                made = made if t.is_leaf else _not_a_leaf(made)
        grad = _grad_of(t)
        if grad is not None:
            made.grad = self._converted(grad)
        self.set_tensor_memo(t, made)
        return made

    def _view(self, t):
        """The same view of what its base was converted to."""
        base = self._converted(t._base)
        with cresset.enable_grad():
            if t.is_leaf:
                with cresset.set_grad_enabled(not base.requires_grad):
                    made = _as_strided(base, t)
                return made.requires_grad_(t.requires_grad)
            if t.requires_grad and not base.requires_grad:  # the view it was made of had one of its own
                with cresset.no_grad():
                    middle = base.view(base.shape)
                return _as_strided(middle.requires_grad_(), t)
            return _as_strided(base, t)

    def meta_tensor(self, t, shape_env=None, callback=None, source=None, symbolic_context=None):
        """The meta tensor of a tensor. Sizes are numbers, also with a shape_env."""
        made = self._converted(t)
        return made if callback is None else callback(lambda: made)

    def __call__(self, t, shape_env=None, *, callback=None, source=None, symbolic_context=None, **options):
        """The meta tensor of a tensor, a Parameter for a Parameter; other values as they are."""
        if not isinstance(t, cresset.Tensor):
            return t
        if t.is_quantized or not (type(t) in (cresset.Tensor, cresset.nn.Parameter, cresset.nn.Buffer) or is_sparse_any(t)):
            self.miss += 1
            return NotImplemented
        self.hit += 1
        made = self.meta_tensor(t, shape_env, callback, source, symbolic_context)
        if isinstance(t, cresset.nn.Parameter) and not isinstance(made, cresset.nn.Parameter):
            made = cresset.nn.Parameter(made, requires_grad=made.requires_grad)
            self.set_tensor_memo(t, made)
        return made


def _as_strided(base, t):
    if base.dtype != t.dtype:  # parts of complex numbers, or numbers of other bits
        if t.is_complex() == base.is_complex():
            base = base.view(t.dtype)
        else:
            base = cresset.view_as_complex(base) if t.is_complex() else cresset.view_as_real(base)
    return base.as_strided(t.size(), t.stride(), t.storage_offset())


def _not_a_leaf(made):
    """The same memory, as what an operation gave."""
    with cresset.enable_grad():
        result = made.clone()
    with cresset.no_grad():
        result.set_(made.untyped_storage(), made.storage_offset(), made.size(), made.stride())
    return result
