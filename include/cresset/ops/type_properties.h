// DeprecatedTypeProperties: what Tensor::type() gave before dtype and device were asked for directly.
#pragma once

#include <string>

#include <cresset/core/tensor.h>

namespace cresset {

class DeprecatedTypeProperties {
 public:
  explicit DeprecatedTypeProperties(TensorOptions options) : options_(options) {}
  ScalarType scalarType() const { return options_.dtype(); }
  TypeMeta typeMeta() const { return options_.dtype(); }
  Device device() const { return options_.device(); }
  DeviceType device_type() const { return device().type(); }
  Layout layout() const { return options_.layout(); }
  bool is_cuda() const { return device().is_cuda(); }
  bool is_sparse() const { return layout() == Layout::Sparse; }
  TensorOptions options(DeviceIndex index = -1) const { return options_.device(Device(device().type(), index)); }
  operator TensorOptions() const { return options_; }
  /// "CPUFloatType".
  std::string toString() const { return DeviceTypeName(device().type(), false) + cresset::toString(scalarType()) + "Type"; }
  DeprecatedTypeProperties toScalarType(ScalarType t) const { return DeprecatedTypeProperties(options_.dtype(t)); }
  DeprecatedTypeProperties cpu() const { return DeprecatedTypeProperties(options_.device(kCPU)); }
  friend bool operator==(const DeprecatedTypeProperties& a, const DeprecatedTypeProperties& b) {
    return a.scalarType() == b.scalarType() && a.device() == b.device() && a.layout() == b.layout();
  }

 private:
  TensorOptions options_;
};
inline std::string to_string(const DeprecatedTypeProperties& t) { return t.toString(); }

inline DeprecatedTypeProperties Tensor::type() const { return DeprecatedTypeProperties(options()); }

}  // namespace cresset
