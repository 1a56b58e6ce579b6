"""stft: one function over two operators, of which only one pads the signal."""

import cresset

from . import _C
from ._overridable import overridable


@overridable
def stft(
    input, n_fft, hop_length=None, win_length=None, window=None, center=True, pad_mode="reflect", normalized=False, onesided=None,
    return_complex=None, align_to_window=None,
):  # fmt: skip
    """Fourier transforms of overlapping frames of a signal.

    input is (time) or (batch, time); the result (batch?, frequency, frame) is complex, with n_fft // 2 + 1 frequencies when onesided (the
    default for real input and window), else n_fft. Frames begin every hop_length samples (n_fft // 4 unless given), are multiplied by
    the window of win_length samples (n_fft unless given; zeros around a shorter one), and with center=True the signal is first padded by
    n_fft // 2 samples at both ends, as `nn.functional.pad` does with pad_mode. normalized divides by the square root of n_fft.
    For real input return_complex must be given; False gives real and imaginary parts in a last dimension of 2.
    """
    if _C._is_tracing() and input.dim() in (1, 2) and (align_to_window is None or not center):
        # Traces have the padding, of any size, and the operator without it, as PyTorch's do.
        if center:
            padded = _C._nn.pad(input.view([1] * (3 - input.dim()) + list(input.size())), (n_fft // 2, n_fft // 2), pad_mode)
            input = padded.view(padded.size()[-input.dim() :])
        return cresset.ops.aten.stft.default(
            input, n_fft, hop_length, win_length, window, normalized, onesided, return_complex, align_to_window
        )
    return _C._VariableFunctions.stft(
        input, n_fft, hop_length, win_length, window, center=center, pad_mode=pad_mode, normalized=normalized, onesided=onesided,
        return_complex=return_complex, align_to_window=align_to_window,
    )  # fmt: skip
