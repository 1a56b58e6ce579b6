"""What tests ask about CUDA: there is none."""

__all__ = ["SM53OrLater", "SM80OrLater", "TEST_CUDA", "TEST_CUDA_GRAPH", "TEST_CUDNN", "TEST_CUDNN_VERSION", "TEST_MAGMA", "TEST_MULTIGPU", "tf32_on_and_off"]

TEST_CUDA = TEST_CUDNN = TEST_MULTIGPU = TEST_MAGMA = TEST_CUDA_GRAPH = SM53OrLater = SM80OrLater = False
TEST_CUDNN_VERSION = 0


def tf32_on_and_off(tf32_precision=1e-5, *, only_if=True):
    """Products have one precision here: the test as it is."""
    return lambda test: test
