// NumPy's arrays and types as tensors and their types. NumPy's headers come along where there are some.
#pragma once

#include <cresset_compat/python.h>

#if __has_include(<numpy/arrayobject.h>)
#include <numpy/arrayobject.h>
#endif

namespace torch::utils {

inline bool is_numpy_available() {
  try {
    py::module_::import("numpy");
    return true;
  } catch (py::error_already_set&) {
    return false;
  }
}
/// Shares the memory of the tensor, or the array.
inline PyObject* tensor_to_numpy(const at::Tensor& tensor, bool force = false) {
  return py::cast(tensor).attr("numpy")(py::arg("force") = force).release().ptr();
}
inline at::Tensor tensor_from_numpy(PyObject* array, bool /*warn_if_not_writeable*/ = true) {
  return py::module_::import("cresset").attr("from_numpy")(py::handle(array)).cast<at::Tensor>();
}
/// From and to the numbers of NumPy's types, which are part of its binary interface. TypeError for others.
inline at::ScalarType numpy_dtype_to_aten(int dtype) {
  switch (dtype) {
    case 0: return at::kBool;
    case 1: return at::kChar;
    case 2: return at::kByte;
    case 3: return at::kShort;
    case 4: return at::kUInt16;
    case 5: return at::kInt;
    case 6: return at::kUInt32;
    case 7: return sizeof(long) == 8 ? at::kLong : at::kInt;
    case 8: return sizeof(long) == 8 ? at::kUInt64 : at::kUInt32;
    case 9: return at::kLong;
    case 10: return at::kUInt64;
    case 11: return at::kFloat;
    case 12: return at::kDouble;
    case 14: return at::kComplexFloat;
    case 15: return at::kComplexDouble;
    case 23: return at::kHalf;
    default: break;
  }
  TORCH_CHECK_TYPE(false, "can't convert a NumPy array of type number ", dtype, " to a tensor.");
}
inline int aten_to_numpy_dtype(at::ScalarType dtype) {
  for (int number = 0; number <= 23; ++number)
    if (number != 13 && (number < 16 || number == 23) && numpy_dtype_to_aten(number) == dtype) return number;
  TORCH_CHECK_TYPE(false, "Got unsupported ScalarType ", dtype);
}

}  // namespace torch::utils
