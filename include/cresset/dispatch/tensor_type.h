// TensorType: what is known of a tensor before it exists.
#pragma once

#include <optional>

#include <cresset/core/tensor.h>
#include <cresset/dispatch/type.h>

namespace cresset {

/// Every type of kind Tensor is a TensorType; the plain `Tensor` knows nothing.
struct CRESSET_API TensorType final : Type {
  using Dims = std::vector<std::optional<int64_t>>;  // an entry without value: unknown

  std::optional<ScalarType> dtype;
  std::optional<Dims> sizes;  // present: the rank is known
  std::optional<Dims> strides;
  std::optional<bool> requires_grad;
  std::optional<cresset::Device> device;
  /// All this was seen on one example (of a trace) and need not hold for others: printed, and ignored by rewrites. It is no part of a
  /// type's equality.
  bool hint = false;

  TensorType() : Type(TypeKind::Tensor) {}
  static TypePtr get() { return basic_type(TypeKind::Tensor); }
  /// Everything about a tensor that exists.
  static std::shared_ptr<TensorType> create(const Tensor& t);
  static std::shared_ptr<TensorType> create(std::optional<ScalarType> dtype, std::optional<Dims> sizes, std::optional<Dims> strides = {},
                                            std::optional<bool> requires_grad = {}, std::optional<cresset::Device> device = {});
  /// The same, as a statement: no hint.
  std::shared_ptr<TensorType> copy() const;

  std::optional<std::size_t> dim() const { return sizes ? std::optional(sizes->size()) : std::nullopt; }
  /// All sizes when every one of them is known.
  std::optional<std::vector<int64_t>> concrete_sizes() const;
  std::optional<std::vector<int64_t>> concrete_strides() const;
  std::optional<int64_t> numel() const;
  /// Are dtype, device, sizes and strides all known?
  bool is_complete() const { return dtype && device && concrete_sizes() && concrete_strides(); }
  bool is_refined() const { return dtype || sizes || strides || requires_grad || device; }
  /// What both know and agree about.
  std::shared_ptr<TensorType> merge(const TensorType& other) const;

 protected:
  std::string own_str() const override;
  std::string own_annotation_str() const override { return "Tensor"; }
  bool same_details(const Type& other) const override;
  bool details_below(const Type& other, std::string* why_not) const override;
};

/// "Float", "ComplexDouble", …: the word for a dtype in IR text, and back.
CRESSET_API const char* dtype_word(ScalarType t);
CRESSET_API std::optional<ScalarType> dtype_of_word(std::string_view word);

}  // namespace cresset
