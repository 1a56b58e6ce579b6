// torch::tensor: nested lists of numbers as a tensor of any number of dimensions.
#pragma once

#include <cresset_compat/aten.h>

namespace torch {
namespace detail {

/// A number, a list of such, or a row of numbers from a vector or ArrayRef.
class TensorDataContainer {
 public:
  TensorDataContainer() : sizes_({0}), type_(c10::get_default_dtype()) {}
  template <class T>
    requires(std::is_arithmetic_v<T> || requires { cresset::CppTypeToScalarType<T>::value; })
  TensorDataContainer(T value) : type_(type_of<T>()), scalars_{scalar(value)} {}
  TensorDataContainer(std::initializer_list<TensorDataContainer> list) { *this = joined(list); }
  template <class T>
  TensorDataContainer(c10::ArrayRef<T> row) : sizes_({static_cast<int64_t>(row.size())}), type_(type_of<T>()) {
    for (const T& value : row) scalars_.push_back(scalar(value));
  }
  template <class T>
  TensorDataContainer(const std::vector<T>& row) : sizes_({static_cast<int64_t>(row.size())}), type_(type_of<T>()) {
    for (const T value : row) scalars_.push_back(scalar(value));
  }

  c10::IntArrayRef sizes() const { return sizes_; }
  c10::ScalarType scalar_type() const { return type_; }
  at::Tensor convert_to_tensor(c10::TensorOptions options) const {
    if (!options.has_dtype()) options = options.dtype(type_);
    // Through the widest type of the numbers' kind, which holds every one of them exactly.
    const c10::ScalarType wide = c10::isComplexType(type_) ? c10::kComplexDouble : c10::isFloatingType(type_) ? c10::kDouble : type_;
    at::Tensor flat = cresset::empty({static_cast<int64_t>(scalars_.size())}, c10::TensorOptions(wide));
    switch (wide) {
      case c10::kComplexDouble: return fill<c10::complex<double>>(flat, options);
      case c10::kDouble: return fill<double>(flat, options);
      case c10::kBool: return fill<bool>(flat, options);
      default: flat = flat.to(c10::kLong); return fill<int64_t>(flat, options);
    }
  }

 private:
  // As in Python: whole numbers are int64 and other numbers the default type, whatever C++ calls them.
  template <class T>
  static c10::ScalarType type_of() {
    if constexpr (std::is_same_v<T, bool>)
      return c10::kBool;
    else if constexpr (std::is_same_v<T, float> || std::is_same_v<T, double>)
      return c10::get_default_dtype();
    else if constexpr (std::is_same_v<T, int> || (std::is_integral_v<T> && sizeof(T) == 8))
      return c10::kLong;
    else
      return cresset::CppTypeToScalarType<T>::value;
  }
  template <class T>
  static c10::Scalar scalar(T value) {
    if constexpr (std::is_integral_v<T> && !std::is_same_v<T, bool>)
      return static_cast<int64_t>(value);
    else
      return value;
  }
  static TensorDataContainer joined(std::initializer_list<TensorDataContainer> list) {
    TensorDataContainer out;
    if (list.size() == 0) return out;
    const TensorDataContainer& first = *list.begin();
    out.type_ = first.type_;
    out.sizes_ = first.sizes_;
    out.sizes_.insert(out.sizes_.begin(), static_cast<int64_t>(list.size()));
    for (const TensorDataContainer& item : list) {
      CRESSET_CHECK(item.sizes_ == first.sizes_, "Expected all sub-lists to have sizes: ", c10::IntArrayRef(first.sizes_),
                    " (e.g. the first one), but got a sub-list with sizes: ", c10::IntArrayRef(item.sizes_));
      CRESSET_CHECK(item.type_ == first.type_, "Expected all elements of the tensor to have the same scalar type: ", first.type_,
                    ", but got element of scalar type: ", item.type_);
      out.scalars_.insert(out.scalars_.end(), item.scalars_.begin(), item.scalars_.end());
    }
    return out;
  }
  template <class T>
  at::Tensor fill(const at::Tensor& flat, const c10::TensorOptions& options) const {
    T* to = flat.data_ptr<T>();
    for (const c10::Scalar& s : scalars_) *to++ = s.to<T>();
    at::Tensor out = flat.view(sizes_).to(options.device(), options.dtype());
    if (options.requires_grad()) out.set_requires_grad(true);
    return out;
  }

  std::vector<int64_t> sizes_;
  c10::ScalarType type_ = c10::kFloat;
  std::vector<c10::Scalar> scalars_;
};

}  // namespace detail

inline at::Tensor tensor(detail::TensorDataContainer data, const c10::TensorOptions& options = {}) {
  return data.convert_to_tensor(options);
}

}  // namespace torch
