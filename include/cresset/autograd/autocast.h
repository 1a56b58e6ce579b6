// Autocast: for a thread and a device type, operators that gain from a lower precision compute in it, and operators that
// need range or precision compute in float32. Which operators do what is the key `autocast` of the operator table; a backend may have
// lists of its own.
#pragma once

#include <cresset/core/tensor.h>

namespace cresset::autocast {

/// Is autocast on in this thread for a device type, or for any?
CRESSET_API bool is_autocast_enabled(DeviceType device);
CRESSET_API bool is_any_autocast_enabled();
CRESSET_API void set_autocast_enabled(DeviceType device, bool enabled);

/// The lower precision of a device type in this thread; unless set, bfloat16 for the CPU, and for other devices what their backend says,
/// else float16.
CRESSET_API ScalarType get_autocast_dtype(DeviceType device);
CRESSET_API void set_autocast_dtype(DeviceType device, ScalarType dtype);

/// Are casts of parameters kept until the outermost block ends? (Yes, unless switched off.)
CRESSET_API bool is_autocast_cache_enabled();
CRESSET_API void set_autocast_cache_enabled(bool enabled);
CRESSET_API void clear_cache();

/// Depth of nested autocast blocks, after the change.
CRESSET_API int increment_nesting();
CRESSET_API int decrement_nesting();

/// Does autocast change the type of this tensor? It must be of the device, floating-point and not double.
CRESSET_API bool is_eligible(const Tensor& t, DeviceType device);
/// The tensor in another floating-point type when it is eligible, else itself. Casts of float32 parameters to the lower
/// precision are made once in a block.
CRESSET_API Tensor cached_cast(ScalarType to, const Tensor& t, DeviceType device);

}  // namespace cresset::autocast
