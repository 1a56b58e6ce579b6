// Which element types tensors can have.
#pragma once

#include <cresset/base/error.h>
#include <cresset/core/scalar_type.h>

namespace cresset {

/// Raises NotImplementedError for types that are names in schemas and files only (qint8).
inline void check_supported_type(ScalarType type) {
  CRESSET_CHECK_NOT_IMPLEMENTED(element_size(type) != 0, "tensors of type ", type,
                                " are not supported: it is a name in schemas and files only.");
}

}  // namespace cresset
