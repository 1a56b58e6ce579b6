// TensorOptions: how a new tensor should be made; unset fields mean the default.
#pragma once

#include <optional>

#include <cresset/core/device.h>
#include <cresset/core/dispatch_key_set.h>
#include <cresset/core/layout.h>
#include <cresset/core/scalar_type.h>

namespace cresset {

/// Builder of dtype, layout, device, requires_grad, pinned memory and memory format.
struct TensorOptions {
  TensorOptions() = default;
  TensorOptions(ScalarType t) : dtype_(t) {}
  TensorOptions(TypeMeta t) : dtype_(t.toScalarType()) {}
  TensorOptions(DeviceType d) : device_(Device(d)) {}
  TensorOptions(Layout l) : layout_(l) {}
  TensorOptions(MemoryFormat f) : memory_format_(f) {}
  /// Whatever is a Device or makes one: "cpu". A template, so that braces mean the pair below.
  template <class T, class = std::enable_if_t<std::is_constructible_v<Device, const T&> && !std::is_convertible_v<T, ScalarType> &&
                                              !std::is_same_v<std::decay_t<T>, TensorOptions>>>
  TensorOptions(const T& device) : device_(Device(device)) {}
  /// TensorOptions({kCPU, 0}), x.to({kCUDA, 1}).
  template <class I, class = std::enable_if_t<std::is_integral_v<I>>>
  TensorOptions(DeviceType type, I index) : device_(Device(type, static_cast<DeviceIndex>(index))) {}

  [[nodiscard]] TensorOptions dtype(std::optional<ScalarType> t) const {
    auto r = *this;
    r.dtype_ = t;
    return r;
  }
  [[nodiscard]] TensorOptions device(std::optional<Device> d) const {
    auto r = *this;
    r.device_ = d;
    return r;
  }
  [[nodiscard]] TensorOptions device(DeviceType t, DeviceIndex i = -1) const { return device(Device(t, i)); }
  /// The CUDA device of this number, as in PyTorch.
  [[nodiscard]] TensorOptions device_index(DeviceIndex i) const { return device(kCUDA, i); }
  [[nodiscard]] TensorOptions layout(std::optional<Layout> l) const {
    auto r = *this;
    r.layout_ = l;
    return r;
  }
  [[nodiscard]] TensorOptions requires_grad(std::optional<bool> v) const {
    auto r = *this;
    r.requires_grad_ = v;
    return r;
  }
  [[nodiscard]] TensorOptions pinned_memory(std::optional<bool> v) const {
    auto r = *this;
    r.pinned_memory_ = v;
    return r;
  }
  [[nodiscard]] TensorOptions memory_format(std::optional<MemoryFormat> f) const {
    auto r = *this;
    r.memory_format_ = f;
    return r;
  }

  template <class T>
  [[nodiscard]] TensorOptions dtype() const {
    return dtype(CppTypeToScalarType<T>::value);
  }
  TypeMeta dtype() const { return dtype_.value_or(get_default_dtype()); }
  Device device() const { return device_.value_or(Device(kCPU)); }
  Layout layout() const { return layout_.value_or(kStrided); }
  bool requires_grad() const { return requires_grad_.value_or(false); }
  bool pinned_memory() const { return pinned_memory_.value_or(false); }
  bool has_dtype() const { return dtype_.has_value(); }
  bool has_device() const { return device_.has_value(); }
  bool has_layout() const { return layout_.has_value(); }
  bool has_requires_grad() const { return requires_grad_.has_value(); }
  bool has_pinned_memory() const { return pinned_memory_.has_value(); }
  bool has_memory_format() const { return memory_format_.has_value(); }
  DispatchKey computeDispatchKey() const { return backendKey(device().type()); }
  std::optional<ScalarType> dtype_opt() const { return dtype_; }
  std::optional<Device> device_opt() const { return device_; }
  std::optional<Layout> layout_opt() const { return layout_; }
  std::optional<bool> requires_grad_opt() const { return requires_grad_; }
  std::optional<bool> pinned_memory_opt() const { return pinned_memory_; }
  std::optional<MemoryFormat> memory_format_opt() const { return memory_format_; }
  /// These options, with unset fields taken from `other` where it sets them.
  TensorOptions merge_in(const TensorOptions& o) const {
    auto r = *this;
    if (o.dtype_) r.dtype_ = o.dtype_;
    if (o.device_) r.device_ = o.device_;
    if (o.layout_) r.layout_ = o.layout_;
    if (o.requires_grad_) r.requires_grad_ = o.requires_grad_;
    if (o.pinned_memory_) r.pinned_memory_ = o.pinned_memory_;
    if (o.memory_format_) r.memory_format_ = o.memory_format_;
    return r;
  }

 private:
  std::optional<ScalarType> dtype_;
  std::optional<Device> device_;
  std::optional<Layout> layout_;
  std::optional<bool> requires_grad_;
  std::optional<bool> pinned_memory_;
  std::optional<MemoryFormat> memory_format_;
};

inline TensorOptions dtype(ScalarType t) { return TensorOptions(t); }
template <class T>
TensorOptions dtype() {
  return dtype(CppTypeToScalarType<T>::value);
}
inline TensorOptions dtype(TypeMeta t) { return TensorOptions(t); }
inline TensorOptions device(Device d) { return TensorOptions(d); }
inline TensorOptions device_index(DeviceIndex i) { return TensorOptions().device_index(i); }
inline TensorOptions layout(Layout l) { return TensorOptions(l); }
inline TensorOptions memory_format(MemoryFormat f) { return TensorOptions(f); }

// Values of arguments that were left out.
inline ScalarType dtype_or_default(std::optional<ScalarType> t) { return t.value_or(get_default_dtype()); }
inline TypeMeta dtype_or_default(std::optional<TypeMeta> t) { return t ? *t : TypeMeta(get_default_dtype()); }
inline Device device_or_default(std::optional<Device> d) { return d.value_or(Device(kCPU)); }
inline Layout layout_or_default(std::optional<Layout> l) { return l.value_or(kStrided); }
inline bool pinned_memory_or_default(std::optional<bool> v) { return v.value_or(false); }
inline std::optional<ScalarType> optTypeMetaToScalarType(std::optional<TypeMeta> t) {
  return t ? std::optional<ScalarType>(t->toScalarType()) : std::nullopt;
}
inline TensorOptions requires_grad(bool v = true) { return TensorOptions().requires_grad(v); }

}  // namespace cresset
