// ATen/Context.h: which libraries of PyTorch's there are, and what they are asked for.
#pragma once

#include <cstdint>
#include <string_view>

#include <cresset_compat/c10.h>

namespace at {
enum class LinalgBackend : int8_t { Default, Cusolver, Magma };
enum class BlasBackend : int8_t { Default, Cublas, Cublaslt, Ck };
enum class SDPBackend { error = -1, math = 0, flash_attention = 1, efficient_attention = 2, cudnn_attention = 3, overrideable = 4 };
enum class QEngine : uint8_t { NoQEngine, FBGEMM, QNNPACK, ONEDNN, X86 };

enum class CuBLASReductionOption : uint8_t {
  AllowReducedPrecisionWithSplitK = 0,
  DisallowReducedPrecisionAllowSplitK = 1,
  DisallowReducedPrecisionDisallowSplitK = 2,
};

/// Facts about the process.
class Context {
 public:
  static bool hasCUDA() { return false; }
  static bool hasHIP() { return false; }
  static bool hasMPS() { return false; }
  static bool hasXPU() { return false; }
  static bool hasMKL() { return false; }
  static bool hasMAGMA() { return false; }
  static bool hasMKLDNN() { return true; }
  static bool hasLAPACK() { return true; }
  static bool hasOpenMP() { return false; }
  static bool hasCuDNN() { return false; }
  bool deterministicAlgorithms() const { return false; }
  bool deterministicCuDNN() const { return false; }
  bool benchmarkCuDNN() const { return benchmark_; }
  void setBenchmarkCuDNN(bool on) { benchmark_ = on; }
  bool userEnabledCuDNN() const { return cudnn_; }
  void setUserEnabledCuDNN(bool on) { cudnn_ = on; }
  bool userEnabledMkldnn() const { return mkldnn_; }
  void setUserEnabledMkldnn(bool on) { mkldnn_ = on; }
  bool allowTF32CuBLAS() const { return tf32_products_; }
  void setAllowTF32CuBLAS(bool on) { tf32_products_ = on; }
  bool allowTF32CuDNN() const { return tf32_convolutions_; }
  void setAllowTF32CuDNN(bool on) { tf32_convolutions_ = on; }
  CuBLASReductionOption allowFP16ReductionCuBLAS() const { return half_sums_; }
  void setAllowFP16ReductionCuBLAS(bool on, bool split = true) { half_sums_ = sums_of(on, split); }
  CuBLASReductionOption allowBF16ReductionCuBLAS() const { return bfloat16_sums_; }
  void setAllowBF16ReductionCuBLAS(bool on, bool split = true) { bfloat16_sums_ = sums_of(on, split); }
  bool userEnabledFlashSDP() const { return flash_; }
  void setSDPUseFlash(bool on) { flash_ = on; }
  bool userEnabledMemEfficientSDP() const { return memory_efficient_; }
  void setSDPUseMemEfficient(bool on) { memory_efficient_ = on; }
  bool userEnabledMathSDP() const { return math_; }
  void setSDPUseMath(bool on) { math_ = on; }
  void setDeterministicAlgorithms(bool, bool) {}
  void lazyInitCUDA() {}
  void lazyInitDevice(DeviceType) {}
  static void alertNotDeterministic(std::string_view) {}
  const Generator& defaultGenerator(Device device) { return cresset::default_generator_of(device); }

 private:
  static CuBLASReductionOption sums_of(bool on, bool split) {
    using enum CuBLASReductionOption;
    return !on ? (split ? DisallowReducedPrecisionAllowSplitK : DisallowReducedPrecisionDisallowSplitK) : AllowReducedPrecisionWithSplitK;
  }
  // What libraries of other processors are asked for: kept for who asks, and read by nothing here.
  bool benchmark_ = false, cudnn_ = false, mkldnn_ = true;
  bool tf32_products_ = false, tf32_convolutions_ = true, flash_ = true, memory_efficient_ = true, math_ = true;
  CuBLASReductionOption half_sums_ = CuBLASReductionOption::AllowReducedPrecisionWithSplitK, bfloat16_sums_ = half_sums_;
};
inline Context& globalContext() {
  static Context c;
  return c;
}
inline void init() {}
inline bool hasCUDA() { return Context::hasCUDA(); }
inline bool hasHIP() { return Context::hasHIP(); }
inline bool hasMPS() { return Context::hasMPS(); }
inline bool hasXPU() { return Context::hasXPU(); }
inline bool hasMKL() { return Context::hasMKL(); }
inline bool hasMAGMA() { return Context::hasMAGMA(); }
inline bool hasMKLDNN() { return Context::hasMKLDNN(); }
inline bool hasLAPACK() { return Context::hasLAPACK(); }
inline bool hasOpenMP() { return Context::hasOpenMP(); }
}  // namespace at
