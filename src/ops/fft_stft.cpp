// Short-time Fourier transforms: windowed frames of a signal, and the signal back from them (Griffin and Lim 1984).
#include <algorithm>
#include <array>
#include <string>

#include <cresset/base/warn_always.h>
#include <cresset/ops/functions_arith.h>
#include <cresset/ops/functions_compare.h>
#include <cresset/ops/functions_concat.h>
#include <cresset/ops/functions_copy.h>
#include <cresset/ops/functions_creation.h>
#include <cresset/ops/functions_fft.h>
#include <cresset/ops/functions_math.h>
#include <cresset/ops/functions_reduce.h>
#include <cresset/ops/functions_view.h>

#include "ops/ops_decl_fft.h"
#include "ops/shared/seen_values.h"
#include "ops/shared/shape_util.h"

namespace cresset::ops {
namespace {

using OptionalTensor = std::optional<Tensor>;

template <class T>
std::string text_of(const std::optional<T>& v) {
  return v ? std::to_string(*v) : "None";
}

// "n_fft=8, hop_length=2, win_length=8, window=torch.FloatTensor{[8]}": the arguments that both operators name in errors.
std::string frame_text(int64_t n_fft, int64_t hop, int64_t win, const OptionalTensor& window) {
  return "n_fft=" + std::to_string(n_fft) + ", hop_length=" + std::to_string(hop) + ", win_length=" + std::to_string(win) +
         ", window=" + (window ? type_name(*window) + "{" + to_string(window->sizes()) + "}" : "None");
}

// The window over all of a frame: zeros around one that is shorter, ones where none is given.
Tensor frame_window(const OptionalTensor& window, int64_t win, int64_t n_fft, const Tensor& like) {
  const Tensor w = window ? *window : cresset::ones({win}, like.options().dtype(toRealValueType(like.scalar_type())));
  const int64_t left = (n_fft - win) / 2;
  return win == n_fft ? w : cresset::constant_pad_nd(w, {left, n_fft - win - left}, 0);
}

bool is_complex(const OptionalTensor& t) { return t && t->is_complex(); }

}  // namespace

Tensor stft_center(const Tensor& self, int64_t n_fft, std::optional<int64_t> hop_length, std::optional<int64_t> win_length,
                   const OptionalTensor& window, bool center, std::string_view pad_mode, bool normalized, std::optional<bool> onesided,
                   std::optional<bool> return_complex, std::optional<bool> align_to_window) {
  if (!window)
    CRESSET_WARN_FIRST(
        "A window was not provided. A rectangular window will be applied,which is known to cause spectral leakage. Other windows such as "
        "torch.hann_window or torch.hamming_window are recommended to reduce spectral leakage.To suppress this warning and use a "
        "rectangular window, explicitly set `window=torch.ones(n_fft, device=<device>)`.");
  CRESSET_CHECK(!center || !align_to_window, "stft align_to_window should only be set when center = false");
  Tensor x = self;
  if (center) {
    // Padding by reflection wants a batch and a channel.
    DimVector extended(self.sizes());
    while (extended.size() < 3) extended.insert(extended.begin(), 1);
    const int64_t pad = n_fft / 2;
    x = cresset::pad(self.view(extended), {pad, pad}, pad_mode);
    x = x.view(x.sizes().slice(x.dim() - self.dim()));
  }
  return cresset::stft(x, n_fft, hop_length, win_length, window, normalized, onesided, return_complex, align_to_window);
}

Tensor stft_impl(const Tensor& self, int64_t n_fft, std::optional<int64_t> hop_length, std::optional<int64_t> win_length,
                 const OptionalTensor& window, bool normalized, std::optional<bool> onesided, std::optional<bool> return_complex,
                 std::optional<bool> align_to_window) {
  const int64_t hop = hop_length.value_or(n_fft / 4), win = win_length.value_or(n_fft);
  const bool complex = self.is_complex() || is_complex(window);
  CRESSET_CHECK(
      complex || return_complex,
      "stft requires the return_complex parameter be given for real inputs, and will further require that return_complex=True in a "
      "future PyTorch release.");
  const auto where = [&] {
    return "stft(" + type_name(self) + to_string(self.sizes()) + ", " + frame_text(n_fft, hop, win, window) +
           ", normalized=" + std::to_string(normalized) + ", onesided=" + text_of(onesided) +
           ", return_complex=" + text_of(return_complex) + ", align_to_window=" + text_of(align_to_window) + ") : ";
  };
  CRESSET_CHECK(self.is_floating_point() || self.is_complex(), where(), "expected a tensor of floating point or complex values");
  CRESSET_CHECK(self.dim() == 1 || self.dim() == 2, where(), "expected a 1D or 2D tensor");
  const bool single = self.dim() == 1;
  Tensor x = single ? self.unsqueeze(0) : self;
  const int64_t length = x.size(1);
  CRESSET_CHECK(n_fft > 0 && n_fft <= length, where(), "expected 0 < n_fft < ", length, ", but got n_fft=", n_fft);
  CRESSET_CHECK(hop > 0, where(), "expected hop_length > 0, but got hop_length=", hop);
  CRESSET_CHECK(win > 0 && win <= n_fft, where(), "expected 0 < win_length <= n_fft, but got win_length=", win);
  CRESSET_CHECK(!window || (window->dim() == 1 && window->size(0) == win), where(),
                "expected a 1D window tensor of size equal to win_length=", win, ", but got window with size ",
                window ? window->sizes() : IntArrayRef());
  CRESSET_CHECK(!complex || !onesided.value_or(false), "Cannot have onesided output if window or input is complex");

  // Frames that begin where their window begins: the zeros around a short window may lie outside of the signal.
  if (align_to_window.value_or(false)) {
    const int64_t left = (n_fft - win) / 2;
    x = cresset::constant_pad_nd(x, {left, n_fft - win - left}, 0);
  }
  Tensor frames = x.unfold(1, n_fft, hop);
  if (window || win < n_fft) frames = frames * frame_window(window, win, n_fft, self);
  const int64_t normalization = normalized ? 1 : 0;
  const Tensor spectrum = complex ? cresset::_fft_c2c(frames, {2}, normalization, true)
                                  : cresset::_fft_r2c(frames, {2}, normalization, onesided.value_or(true));
  Tensor result = spectrum.transpose(1, 2);
  if (single) result = result.squeeze(0);
  if (return_complex.value_or(true)) return result;
  CRESSET_WARN_FIRST(
      "stft with return_complex=False is deprecated. In a future pytorch release, stft will return complex tensors for all inputs, and "
      "return_complex=False will raise an error.\nNote: you can still call torch.view_as_real on the complex output to recover the old "
      "return format.");
  return cresset::view_as_real(result);
}

Tensor istft_impl(const Tensor& self, int64_t n_fft, std::optional<int64_t> hop_length, std::optional<int64_t> win_length,
                  const OptionalTensor& window, bool center, bool normalized, std::optional<bool> onesided, std::optional<int64_t> length,
                  bool return_complex) {
  if (!window)
    CRESSET_WARN_FIRST(
        "A window was not provided. A rectangular window will be applied.Please provide the same window used by stft to make the inversion "
        "lossless.To suppress this warning and use a rectangular window, explicitly set `window=torch.ones(n_fft, device=<device>)`.");
  const int64_t hop = hop_length.value_or(n_fft / 4), win = win_length.value_or(n_fft);
  const auto where = [&] {
    return "istft(" + type_name(self) + to_string(self.sizes()) + ", " + frame_text(n_fft, hop, win, window) +
           ", center=" + std::to_string(center) + ", normalized=" + std::to_string(normalized) + ", onesided=" + text_of(onesided) +
           ", length=" + text_of(length) + ", return_complex=" + std::to_string(return_complex) + ")";
  };
  CRESSET_CHECK(self.is_complex(), "istft requires a complex-valued input tensor matching the output from stft with return_complex=True.");
  CRESSET_CHECK(self.numel() != 0, where(), " : input tensor cannot be empty.");
  CRESSET_CHECK_INDEX(self.dim() >= 2, "Dimension out of range (expected to be in range of [", -self.dim() - 1, ", ", self.dim(),
                      "], but got -3)");
  CRESSET_CHECK(self.dim() <= 3, where(), " : expected a tensor with 3 or 4 dimensions, but got ", self.dim() + 1);
  const bool single = self.dim() == 2;
  const Tensor spectrum = (single ? self.unsqueeze(0) : self).transpose(1, 2);
  const int64_t frames = spectrum.size(1), bins = spectrum.size(2);
  const bool half = onesided.value_or(bins != n_fft);
  CRESSET_CHECK(bins == (half ? n_fft / 2 + 1 : n_fft), where(),
                " : expected the frequency dimension (3rd to the last) of the input tensor to match ",
                half ? "n_fft / 2 + 1 when onesided=True" : "n_fft when onesided=False", ", but got ", bins);
  CRESSET_CHECK(hop > 0 && hop <= win, where(), " : expected 0 < hop_length <= win_length");
  CRESSET_CHECK(win > 0 && win <= n_fft, where(), " : expected 0 < win_length <= n_fft");
  CRESSET_CHECK(!window || (window->dim() == 1 && window->size(0) == win), where(),
                " : Invalid window shape. window has to be 1D and length of `win_length`");
  CRESSET_CHECK(return_complex || !is_complex(window), "Complex windows are incompatible with return_complex=False");
  CRESSET_CHECK(!return_complex || !half, "Cannot have onesided output if window or input is complex");
  CRESSET_CHECK(!length || *length > 0, where(), " : expected length > 0");

  const int64_t normalization = normalized ? 1 : 2;
  Tensor x;
  if (return_complex)
    x = cresset::_fft_c2c(spectrum, {2}, normalization, false);
  else
    x = cresset::_fft_c2r(half ? spectrum : spectrum.narrow(2, 0, n_fft / 2 + 1), {2}, normalization, n_fft);

  // Frames are added up where they overlap, and so are the squares of the window.
  const Tensor given = frame_window(window, win, n_fft, x), w = given.to(promote_types(given.scalar_type(), x.scalar_type()));
  const int64_t total = n_fft + hop * (frames - 1);
  const auto added_up = [&](const Tensor& t) { return cresset::unfold_backward(t, {t.size(0), total}, 1, n_fft, hop); };
  const Tensor signal = added_up(x * w), envelope = added_up((w * w).expand({1, frames, n_fft}));

  const int64_t start = center ? n_fft / 2 : 0;
  const int64_t wanted = length ? start + *length : center ? total - n_fft / 2 : total, end = std::min(wanted, total);
  CRESSET_CHECK(start < end, where(), " : expected frames longer than the n_fft / 2 values cut from the beginning and the end");
  const Tensor divisor = envelope.narrow(1, start, end - start);
  if (has_seen_values(divisor)) {
    const bool lossless = cresset::min(divisor.abs()).item<double>() > 1e-11;
    CRESSET_CHECK(lossless, where(), " window overlap add min: 1");
  }
  Tensor result = signal.narrow(1, start, end - start) / divisor;
  if (single) result = result.squeeze(0);
  if (end == wanted) return result;
  CRESSET_WARN_FIRST(
      "The length of signal is shorter than the length parameter. Result is being padded with zeros in the tail. Please check your center "
      "and hop_length settings.");
  return cresset::constant_pad_nd(result, {0, wanted - end}, 0);
}

}  // namespace cresset::ops
