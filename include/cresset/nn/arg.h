// What the options of modules are made of: named arguments, choices by name, and sizes that expand to every dimension.
#pragma once

#include <algorithm>
#include <array>
#include <functional>
#include <initializer_list>
#include <optional>
#include <variant>
#include <vector>

#include <cresset/base/array_ref.h>
#include <cresset/base/error.h>

/// A member `name_` with a reader, a reference and setters that give back the object, so that calls can be chained. A default follows:
/// CRESSET_ARG(double, lr) = 1e-3;
#define CRESSET_ARG(T, name)                               \
 public:                                                   \
  auto name(const T& value) -> decltype(*this) {           \
    this->name##_ = value;                                 \
    return *this;                                          \
  }                                                        \
  auto name(T&& value) -> decltype(*this) {                \
    this->name##_ = std::move(value);                      \
    return *this;                                          \
  }                                                        \
  const T& name() const noexcept { return this->name##_; } \
  T& name() noexcept { return this->name##_; }             \
                                                           \
 private:                                                  \
  T name##_

/// Choices that options take, each a type of its own so that a variant says which ones an option knows.
// clang-format off: it turns from one layout of this list to another
#define CRESSET_FORALL_CHOICES(X) \
  X(kLinear) X(kConv1D) X(kConv2D) X(kConv3D) X(kConvTranspose1D) X(kConvTranspose2D) X(kConvTranspose3D) X(kSigmoid) \
  X(kTanh) X(kReLU) X(kGELU) X(kSiLU) X(kMish) X(kLeakyReLU) X(kFanIn) X(kFanOut) X(kConstant) X(kReflect) X(kReplicate) \
  X(kCircular) X(kNearest) X(kNearestExact) X(kBilinear) X(kBicubic) X(kTrilinear) X(kArea) X(kSum) X(kMean) X(kMax) \
  X(kNone) X(kBatchMean) X(kZeros) X(kBorder) X(kReflection) X(kRNN_TANH) X(kRNN_RELU) X(kLSTM) X(kGRU) X(kValid) X(kSame)
// clang-format on

namespace cresset::nn {

namespace enumtype {
#define CRESSET_CHOICE(name)                   \
  struct name {                                \
    name() = default;                          \
    static constexpr const char* text = #name; \
  };
CRESSET_FORALL_CHOICES(CRESSET_CHOICE)
#undef CRESSET_CHOICE

/// The name of the choice: "kSum".
template <class V>
std::string get_enum_name(const V& variant) {
  return std::visit([](const auto& v) { return std::string(std::decay_t<decltype(v)>::text); }, variant);
}
}  // namespace enumtype

#define CRESSET_CHOICE(name) inline const enumtype::name name{};
CRESSET_FORALL_CHOICES(CRESSET_CHOICE)
#undef CRESSET_CHOICE

/// D values, from D values or from one that stands for all.
template <std::size_t D, class T = int64_t>
class ExpandingArray {
 public:
  ExpandingArray(std::initializer_list<T> list) : ExpandingArray(ArrayRef<T>(list)) {}
  ExpandingArray(std::vector<T> values) : ExpandingArray(ArrayRef<T>(values)) {}
  ExpandingArray(ArrayRef<T> values) {
    CRESSET_CHECK(values.size() == D, "Expected ", D, " values, but instead got ", values.size());
    std::copy(values.begin(), values.end(), values_.begin());
  }
  ExpandingArray(T single) { values_.fill(single); }
  ExpandingArray(const std::array<T, D>& values) : values_(values) {}

  std::array<T, D>& operator*() { return values_; }
  const std::array<T, D>& operator*() const { return values_; }
  std::array<T, D>* operator->() { return &values_; }
  const std::array<T, D>* operator->() const { return &values_; }
  operator ArrayRef<T>() const { return values_; }
  T operator[](std::size_t i) const { return values_[i]; }
  std::size_t size() const { return D; }

 protected:
  std::array<T, D> values_;
};

/// The same with values that may be left out.
template <std::size_t D, class T = int64_t>
class ExpandingArrayWithOptionalElem : public ExpandingArray<D, std::optional<T>> {
 public:
  using ExpandingArray<D, std::optional<T>>::ExpandingArray;
  ExpandingArrayWithOptionalElem(std::initializer_list<T> list) : ExpandingArrayWithOptionalElem(ArrayRef<T>(list)) {}
  ExpandingArrayWithOptionalElem(std::vector<T> values) : ExpandingArrayWithOptionalElem(ArrayRef<T>(values)) {}
  ExpandingArrayWithOptionalElem(ArrayRef<T> values) : ExpandingArray<D, std::optional<T>>(std::optional<T>()) {
    CRESSET_CHECK(values.size() == D, "Expected ", D, " values, but instead got ", values.size());
    std::copy(values.begin(), values.end(), this->values_.begin());
  }
  ExpandingArrayWithOptionalElem(T single) : ExpandingArray<D, std::optional<T>>(std::optional<T>(single)) {}
};

}  // namespace cresset::nn
