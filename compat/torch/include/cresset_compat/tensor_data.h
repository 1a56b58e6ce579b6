// torch::tensor: nested lists of numbers as a tensor of any number of dimensions.
#pragma once

#include <sstream>

#include <cresset_compat/aten.h>

namespace torch {
namespace detail {

/// A number, a list of such, or a row of numbers from a vector or ArrayRef.
class TensorDataContainer {
 public:
  TensorDataContainer() : kind_(Kind::List), sizes_({0}), type_(c10::get_default_dtype()) {}
  template <class T>
    requires(std::is_arithmetic_v<T> || requires { cresset::CppTypeToScalarType<T>::value; })
  TensorDataContainer(T value) : kind_(Kind::Scalar), type_(type_of<T>()), scalars_{scalar_of(value)} {}
  TensorDataContainer(std::initializer_list<TensorDataContainer> list) { *this = joined(list); }
  template <class T>
  TensorDataContainer(c10::ArrayRef<T> row) : kind_(Kind::Row), sizes_({static_cast<int64_t>(row.size())}), type_(type_of<T>()) {
    for (const T& value : row) scalars_.push_back(scalar_of(value));
  }
  template <class T>
  TensorDataContainer(const std::vector<T>& row) : kind_(Kind::Row), sizes_({static_cast<int64_t>(row.size())}), type_(type_of<T>()) {
    for (const T value : row) scalars_.push_back(scalar_of(value));
  }

  c10::IntArrayRef sizes() const { return sizes_; }
  c10::ScalarType scalar_type() const { return type_; }
  bool is_scalar() const { return kind_ == Kind::Scalar; }
  bool is_init_list() const { return kind_ == Kind::List; }
  bool is_tensor() const { return kind_ == Kind::Row; }
  const c10::Scalar& scalar() const {
    CRESSET_CHECK(is_scalar(), "Can only call `scalar()` on a TensorDataContainer that has `is_scalar() == true`");
    return scalars_[0];
  }
  /// The elements of a list.
  std::vector<TensorDataContainer> init_list() const {
    CRESSET_CHECK(is_init_list(), "Can only call `init_list()` on a TensorDataContainer that has `is_init_list() == true`");
    std::vector<TensorDataContainer> out(static_cast<std::size_t>(sizes_[0]));
    const std::size_t each = out.empty() ? 0 : scalars_.size() / out.size();
    for (std::size_t i = 0; i < out.size(); ++i) {
      out[i].kind_ = sizes_.size() == 1 ? Kind::Scalar : Kind::List;
      out[i].type_ = type_;
      out[i].sizes_.assign(sizes_.begin() + 1, sizes_.end());
      const auto first = scalars_.begin() + static_cast<std::ptrdiff_t>(i * each);
      out[i].scalars_.assign(first, first + static_cast<std::ptrdiff_t>(each));
    }
    return out;
  }
  /// A row of numbers that came as a vector or ArrayRef.
  at::Tensor tensor() const {
    CRESSET_CHECK(is_tensor(), "Can only call `tensor()` on a TensorDataContainer that has `is_tensor() == true`");
    return convert_to_tensor({});
  }
  /// As it would be written: "{{1, 2}, {3, 4}}".
  friend std::ostream& operator<<(std::ostream& stream, const TensorDataContainer& data) {
    if (data.sizes_.empty()) return stream << data.scalars_[0];
    stream << "{";
    if (data.is_tensor()) {
      for (std::size_t i = 0; i < data.scalars_.size(); ++i) stream << (i ? ", " : "") << data.scalars_[i];
    } else {
      const char* between = "";
      for (const TensorDataContainer& item : data.init_list()) stream << std::exchange(between, ", ") << item;
    }
    return stream << "}";
  }
  at::Tensor convert_to_tensor(c10::TensorOptions options) const {
    if (!options.has_dtype()) options = options.dtype(desired_type());
    if (c10::isComplexType(type_) && !c10::isComplexType(options.dtype().toScalarType())) {
      CRESSET_CHECK(!is_tensor(), "can not do torch::tensor(complex, dtype=non-complex) because complex can not be casted to real number ",
                    "without loss of information");
      for (const c10::Scalar& s : scalars_) options.dtype() == c10::kFloat ? s.to<float>() : s.to<double>();  // raise for imaginary parts
    }
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
  enum class Kind { Scalar, List, Row };
  template <class T>
  static c10::ScalarType type_of() {
    if constexpr (std::is_integral_v<T> && sizeof(T) == 8)
      return c10::kLong;
    else
      return cresset::CppTypeToScalarType<T>::value;
  }
  // As in Python: whole numbers are int64 and other numbers the default type, whatever C++ calls them.
  c10::ScalarType desired_type() const {
    if (type_ == c10::kInt || type_ == c10::kLong) return c10::kLong;
    if (type_ == c10::kFloat || type_ == c10::kDouble) return c10::get_default_dtype();
    return type_;
  }
  std::string sizes_text() const {
    std::string out;
    for (const int64_t n : sizes_) out += (out.empty() ? "" : ", ") + std::to_string(n);
    return out;
  }
  template <class T>
  static c10::Scalar scalar_of(T value) {
    if constexpr (std::is_integral_v<T> && !std::is_same_v<T, bool>)
      return static_cast<int64_t>(value);
    else
      return value;
  }
  static std::string written(const TensorDataContainer& data) {
    std::ostringstream stream;
    stream << data;
    return stream.str();
  }
  static TensorDataContainer joined(std::initializer_list<TensorDataContainer> list) {
    TensorDataContainer out;
    if (list.size() == 0) return out;
    const TensorDataContainer& first = *list.begin();
    out.type_ = first.type_;
    out.sizes_ = first.sizes_;
    out.sizes_.insert(out.sizes_.begin(), static_cast<int64_t>(list.size()));
    for (const TensorDataContainer& item : list) {
      CRESSET_CHECK(item.sizes_ == first.sizes_, "Expected all sub-lists to have sizes: ", first.sizes_text(), " (e.g. ", written(first),
                    "), but got sub-list ", written(item), " with sizes: ", item.sizes_text());
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

  Kind kind_ = Kind::List;
  std::vector<int64_t> sizes_;
  c10::ScalarType type_ = c10::kFloat;
  std::vector<c10::Scalar> scalars_;
};

}  // namespace detail

inline at::Tensor tensor(detail::TensorDataContainer data, const c10::TensorOptions& options = {}) {
  return data.convert_to_tensor(options);
}

}  // namespace torch
