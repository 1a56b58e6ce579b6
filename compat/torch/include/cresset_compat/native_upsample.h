// at::native: upsampling.
#pragma once

#include <cresset_compat/aten.h>

namespace at::native {

// --- upsampling: in this namespace only the forms with a list of factors, as in PyTorch, where the others are structured kernels
#define CRESSET_COMPAT_UPSAMPLE_(name)                                                                                               \
  inline Tensor name(const Tensor& input, at::OptionalIntArrayRef output_size, std::optional<c10::ArrayRef<double>> scale_factors) { \
    return ::cresset::name(input, output_size, scale_factors);                                                                       \
  }
CRESSET_COMPAT_UPSAMPLE_(upsample_nearest1d)
CRESSET_COMPAT_UPSAMPLE_(upsample_nearest2d)
CRESSET_COMPAT_UPSAMPLE_(upsample_nearest3d)
CRESSET_COMPAT_UPSAMPLE_(_upsample_nearest_exact1d)
CRESSET_COMPAT_UPSAMPLE_(_upsample_nearest_exact2d)
CRESSET_COMPAT_UPSAMPLE_(_upsample_nearest_exact3d)
#undef CRESSET_COMPAT_UPSAMPLE_
#define CRESSET_COMPAT_UPSAMPLE_(name)                                                             \
  inline Tensor name(const Tensor& input, at::OptionalIntArrayRef output_size, bool align_corners, \
                     std::optional<c10::ArrayRef<double>> scale_factors) {                         \
    return ::cresset::name(input, output_size, align_corners, scale_factors);                      \
  }
CRESSET_COMPAT_UPSAMPLE_(upsample_linear1d)
CRESSET_COMPAT_UPSAMPLE_(upsample_bilinear2d)
CRESSET_COMPAT_UPSAMPLE_(upsample_trilinear3d)
CRESSET_COMPAT_UPSAMPLE_(upsample_bicubic2d)
CRESSET_COMPAT_UPSAMPLE_(_upsample_bilinear2d_aa)
CRESSET_COMPAT_UPSAMPLE_(_upsample_bicubic2d_aa)
#undef CRESSET_COMPAT_UPSAMPLE_

}  // namespace at::native
