"""What PyTorch 2.13 says about an `out` of another type, word for word; `{op}` is the test's name of the call."""

import cresset
import pytest

A = cresset.rand(3, 3) + 3 * cresset.eye(3)
S, V, I = A @ A.T, cresset.rand(3), cresset.tensor([0, 1, 2])
L = cresset.linalg
SAFELY = "Expected result to be safely castable from Float dtype, but got result with dtype Short"
WORDS = {
    "cummax": (lambda o: cresset.cummax(A, 0, out=(o, I.new_empty(0))), "expected scalar_type Float but found Short"),
    "cummin": (lambda o: cresset.cummin(A, 0, out=(A.new_empty(0), o)), "expected scalar_type Long but found Short"),
    "logcumsumexp": (lambda o: cresset.logcumsumexp(A, 0, out=o), "expected scalar_type Float but found Short"),
    "multi_dot": (lambda o: L.multi_dot([A, A], out=o), "multi_dot(): expected out tensor to have dtype float but got short int"),
    "chain_matmul": (lambda o: cresset.chain_matmul(A, A, out=o), "multi_dot(): expected out tensor to have dtype float but got short int"),
    "dot": (lambda o: cresset.dot(V, V, out=o), "result dtype Short does not match input dtype Float"),
    "tensordot": (lambda o: cresset.tensordot(A, A, out=o), "tensordot: Expected the output tensor to have dtype Float, but got an output tensor with dtype Short"),
    "addbmm": (lambda o: cresset.addbmm(A, A[None], A[None], out=o), "self and mat2 must have the same dtype, but got Short and Float"),
    "kthvalue": (lambda o: cresset.kthvalue(V, 2, out=(o, I.new_empty(0))), "output values must be of same type as input"),
    "mode": (lambda o: cresset.mode(A, 0, out=(o, I.new_empty(0))), "expected scalar type 'Float' but got 'Short' for values output"),
    "quantile": (lambda o: cresset.quantile(V, 0.5, out=o), "quantile() out tensor must be same dtype as the input tensor"),
    "linalg.norm": (lambda o: L.norm(A, out=o), "linalg.norm expected out tensor dtype Float but got: Short"),
    "linalg.matrix_norm": (lambda o: L.matrix_norm(A, out=o), "linalg.matrix_norm expected out tensor dtype Float but got: Short"),
    "amax": (lambda o: cresset.amax(A, 0, out=o), "Expected the dtype for input and out to match, but got Float for input's dtype and Short for out's dtype."),
    "logsumexp": (lambda o: cresset.logsumexp(A, 0, out=o), "logsumexp(): Expected floating point type for result tensor, but got: Short"),
    "index_select": (lambda o: cresset.index_select(A, 0, I, out=o), "index_select(): self and result must have the same scalar type"),
    "masked_select": (lambda o: cresset.masked_select(A, A > 0, out=o), "masked_select(): self and result must have the same scalar type"),
    "take": (lambda o: cresset.take(A, I, out=o), "take(): self and out expected to have the same dtype, but got self.dtype = Float and out.dtype = Short"),
    "where": (lambda o: cresset.where(A > 0, A, A, out=o), "Expected out type to be Float but got Short"),
    "multinomial": (lambda o: cresset.multinomial(V, 2, out=o), "multinomial expects Long tensor out, got: Short"),
    "cholesky": (lambda o: cresset.cholesky(S, out=o), f"cholesky: {SAFELY}"),
    "linalg.eigvals": (lambda o: L.eigvals(A, out=o), "torch.linalg.eigvals: Expected eigenvalues to be safely castable from ComplexFloat dtype, but got eigenvalues with dtype Short"),
    "linalg.pinv": (lambda o: L.pinv(A, out=o), f"linalg.pinv: {SAFELY}"),
    "linalg.cond": (lambda o: L.cond(A, out=o), f"linalg.cond: {SAFELY}"),
    "linalg.matrix_power": (lambda o: L.matrix_power(A, 2, out=o), f"matrix_power: {SAFELY}"),
    "cholesky_solve": (lambda o: cresset.cholesky_solve(A, S, out=o), f"cholesky_solve: {SAFELY}"),
    "cholesky_inverse": (lambda o: cresset.cholesky_inverse(S, out=o), f"cholesky_inverse: {SAFELY}"),
    "linalg.tensorinv": (lambda o: L.tensorinv(cresset.eye(6).reshape(6, 2, 3), ind=1, out=o), f"tensorinv: {SAFELY}"),
    "linalg.tensorsolve": (lambda o: L.tensorsolve(A, V, out=o), f"tensorsolve: {SAFELY}"),
    "linalg.householder_product": (lambda o: L.householder_product(A, V, out=o), f"torch.linalg.householder_product: {SAFELY}"),
    "geqrf": (lambda o: cresset.geqrf(A, out=(o, V.new_empty(0))), "torch.geqrf: Expected a to be safely castable from Float dtype, but got a with dtype Short"),
    "linalg.vecdot": (lambda o: L.vecdot(A, A, out=o), "linalg.vecdot: Expected out of dtypeFloat but found Short"),
    "histc": (lambda o: cresset.histc(V, out=o), "torch.histogram: input tensor and hist tensor should have the same dtype, but got input float and hist short int"),
    "complex": (lambda o: cresset.complex(V, V, out=o), "Expected object of scalar type ComplexFloat but got scalar type Short for argument 'out'"),
    "frexp": (lambda o: cresset.frexp(V, out=(o, o)), "torch.frexp() expects mantissa to have dtype float but got short int"),
    "isposinf": (lambda o: cresset.isposinf(V, out=o), "isposinf does not support non-boolean outputs."),
    "signbit": (lambda o: cresset.signbit(V, out=o), "signbit does not support non-boolean outputs."),
    "clamp": (lambda o: cresset.clamp(V, 0, 1, out=o), "Found dtype Short but expected Float"),
    "abs": (lambda o: cresset.abs(V, out=o), "Found dtype Short but expected Float"),
    "nan_to_num": (lambda o: cresset.nan_to_num(V, out=o), "nan_to_num: dtype of out: Short should be same as input: Float"),
    "float_power": (lambda o: cresset.float_power(V, 2, out=o), "the output given to float_power has dtype Short but the operation's result requires dtype Double"),
    "nonzero": (lambda o: cresset.nonzero(V, out=o), "nonzero: Expected out tensor to have scalar type Long but got scalar typeShort"),
    "mm": (lambda o: cresset.mm(A, A, out=o), "Expected out tensor to have dtype float, but got short int instead"),
}


@pytest.mark.parametrize("name", WORDS)
def test_words(name):
    call, words = WORDS[name]
    out = cresset.full((2,), 7, dtype=cresset.int16)
    with pytest.raises(RuntimeError) as caught:
        call(out)
    assert str(caught.value) == words
    assert out.tolist() == [7, 7]  # as it was
