// TensorType: what is known of a tensor before it exists.
#pragma once

#include <optional>

#include <cresset/core/tensor.h>
#include <cresset/dispatch/symbolic_shape.h>
#include <cresset/dispatch/type.h>

namespace cresset {

/// Every type of kind Tensor is a TensorType; the plain `Tensor` knows nothing.
struct CRESSET_API TensorType final : Type {
  static constexpr TypeKind Kind = TypeKind::Tensor;
  using Dims = std::vector<std::optional<int64_t>>;  // an entry without value: unknown
  struct GradFact : std::optional<bool> {
    GradFact() = default;
    explicit GradFact(std::optional<bool> known) : std::optional<bool>(known) {}
    GradFact& operator=(std::optional<bool> known) {
      std::optional<bool>::operator=(known);
      return *this;
    }
    bool operator()() const { return value_or(true); }  // unknown: perhaps
    friend bool operator==(const GradFact& a, const GradFact& b) { return base(a) == base(b); }
    friend bool operator==(const GradFact& a, const std::optional<bool>& b) { return base(a) == b; }

   private:
    static const std::optional<bool>& base(const GradFact& g) { return g; }
  };

  std::optional<ScalarType> dtype;
  Field<VaryingShape<int64_t>> sizes;  // present: the rank is known; also sizes()
  Field<VaryingShape<int64_t>> strides;
  GradFact requires_grad;
  Field<std::optional<cresset::Device>> device;
  /// All this was seen on one example (of a trace) and need not hold for others: printed, and ignored by rewrites. It is no part of a
  /// type's equality.
  bool hint = false;
  /// Names of sizes that are not known (see ShapeSymbol): none, or one for each dimension. No part of a type's equality.
  std::vector<ShapeSymbol> size_symbols;

  TensorType() : Type(TypeKind::Tensor) {}
  static std::shared_ptr<TensorType> get() { return basic_type(TypeKind::Tensor)->expect<TensorType>(); }
  /// Everything about a tensor that exists.
  static std::shared_ptr<TensorType> create(const Tensor& t);
  static std::shared_ptr<TensorType> create(std::optional<ScalarType> dtype, std::optional<Dims> sizes, std::optional<Dims> strides = {},
                                            std::optional<bool> requires_grad = {}, std::optional<cresset::Device> device = {});
  /// The same from dtype, device and number of dimensions.
  template <class D, class N>
    requires std::is_convertible_v<D, std::optional<cresset::Device>> && std::is_convertible_v<N, std::optional<std::size_t>> &&
             (!std::is_same_v<D, std::nullopt_t> || !std::is_same_v<N, std::nullopt_t>)
  static std::shared_ptr<TensorType> create(std::optional<ScalarType> dtype, D device, N dim, std::optional<bool> requires_grad = {}) {
    auto type = create(dtype, VaryingShape<int64_t>(std::optional<std::size_t>(dim)), {}, requires_grad);
    type->device = std::optional<cresset::Device>(device);
    return type;
  }
  /// The same in PyTorch's order of arguments.
  static std::shared_ptr<TensorType> create(std::optional<ScalarType> dtype, std::optional<cresset::Device> device,
                                            const SymbolicShape& sizes, const VaryingShape<Stride>& strides,
                                            std::optional<bool> requires_grad, std::optional<bool> undefined = false);
  /// Complete strides need complete sizes of as many dimensions. `undefined` has to be false, or not known: types say nothing of undefined
  /// tensors. Whether the tensor is contiguous is what sizes and strides say.
  static std::shared_ptr<TensorType> create(std::optional<ScalarType> dtype, std::optional<cresset::Device> device,
                                            const VaryingShape<int64_t>& sizes, const VaryingShape<int64_t>& strides,
                                            std::optional<bool> requires_grad, std::optional<bool> undefined = false,
                                            bool tensor_contiguity = false);
  static std::shared_ptr<TensorType> createContiguous(ScalarType dtype, cresset::Device device, IntArrayRef sizes);
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
  // Under PyTorch's names; sizes(), strides() and device() are the members.
  std::optional<ScalarType> scalarType() const { return dtype; }
  std::optional<bool> requiresGrad() const { return requires_grad; }
  std::optional<std::size_t> ndim() const { return dim(); }
  bool isComplete() const { return is_complete(); }
  /// Types say nothing of undefined tensors.
  std::optional<bool> undefined() const { return false; }
  /// The sizes, where the unknown ones have names: the same ones in every call.
  SymbolicShape symbolic_sizes() const;
  /// Dimensions by stride, the smallest first, with what is known of them; nothing where no stride is.
  VaryingShape<Stride> stride_properties() const;
  /// May the tensor be one of this type?
  bool matchTensor(const Tensor& t) const;
  static std::vector<int64_t> contiguousStridesOf(IntArrayRef sizes, MemoryFormat format = MemoryFormat::Contiguous);
  // Copies that know another thing.
  std::shared_ptr<TensorType> withScalarType(std::optional<ScalarType> dtype) const;
  std::shared_ptr<TensorType> withDevice(std::optional<cresset::Device> device) const;
  std::shared_ptr<TensorType> withRequiresGrad(std::optional<bool> requires_grad) const;
  std::shared_ptr<TensorType> withDim(std::optional<std::size_t> dim) const;
  /// With strides of a contiguous tensor.
  std::shared_ptr<TensorType> withSizes(IntArrayRef sizes) const;
  std::shared_ptr<TensorType> withSizesStrides(IntArrayRef sizes, IntArrayRef strides) const;
  /// With strides of a contiguous tensor; its sizes must be known.
  std::shared_ptr<TensorType> contiguous() const;
  /// The number of dimensions only.
  std::shared_ptr<TensorType> dimensionedOnly() const { return withDim(dim()); }
  /// The same: types say nothing of undefined tensors.
  std::shared_ptr<TensorType> withPossiblyUndefined() const { return copy(); }
  /// With these sizes and names of sizes; the strides stay.
  std::shared_ptr<TensorType> withSymbolicShapes(const SymbolicShape& sizes) const;
  std::shared_ptr<TensorType> withStrides(const VaryingShape<Stride>& strides) const;
  /// What both know and agree about; with merge_sizes = false the sizes and strides of this one.
  std::shared_ptr<TensorType> merge(const TensorType& other, bool merge_sizes = true) const;

 protected:
  std::string own_str() const override;
  std::string own_annotation_str() const override { return "Tensor"; }
  bool same_details(const Type& other) const override;
  bool details_below(const Type& other, std::string* why_not) const override;
};

using TensorTypePtr = std::shared_ptr<TensorType>;

/// "Float", "ComplexDouble", …: the word for a dtype in IR text, and back.
CRESSET_API const char* dtype_word(ScalarType t);
CRESSET_API std::optional<ScalarType> dtype_of_word(std::string_view word);

}  // namespace cresset
