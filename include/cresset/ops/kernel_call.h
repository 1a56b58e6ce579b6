// Kernels of a device that are written as loops over plain memory: what the operator's contract asks for around the loop is done here.
//
//   bool relu(cresset::KernelCall& call) {
//     const Tensor x = call.operand(0);                       // contiguous, of the result's type and sizes
//     my_relu(x.const_data_ptr<float>(), call.result().mutable_data_ptr<float>(), call.result().numel());
//     return true;                                            // false: not this case, run it on the CPU
//   }
//   CRESSET_BACKEND_IMPL(MyChip, aten, m) { cresset::register_kernel(m, "relu", "relu.out", &relu); }
//
// Sizes, types and errors come from the operator's own Meta kernel, so they are those of every other device. The kernel finds its results
// allocated, contiguous and apart from all inputs, whatever the caller's `out` looks like: of other sizes, another type, strided, or one
// of the inputs. Numbers that arrive as tensors of the CPU without dimensions are lifted to the device.
#pragma once

#include <optional>
#include <vector>

#include <cresset/core/tensor.h>
#include <cresset/dispatch/dispatcher.h>
#include <cresset/dispatch/library.h>

namespace cresset {

/// One call of an operator: its arguments by their number in the schema, and the results to write.
class CRESSET_API KernelCall {
 public:
  /// `given`: the arguments before numbers were lifted.
  KernelCall(const IValue* values, std::vector<Tensor> results, const IValue* given = nullptr)
      : results_(std::move(results)), values_(values), given_(given ? given : values) {}

  /// Of any strides and type, as the caller gave it.
  const Tensor& tensor(int i) const { return values_[i].toTensor(); }
  /// Is there a defined tensor?
  bool has(int i) const { return values_[i].isTensor() && values_[i].toTensor().defined(); }
  bool none(int i) const { return values_[i].isNone(); }
  int64_t integer(int i) const { return values_[i].toInt(); }
  int64_t integer_or(int i, int64_t absent) const { return none(i) ? absent : integer(i); }
  double real(int i) const { return values_[i].toDouble(); }
  bool flag(int i) const { return values_[i].toBool(); }
  Scalar scalar(int i) const { return values_[i].toScalar(); }
  std::vector<int64_t> ints(int i) const { return none(i) ? std::vector<int64_t>() : values_[i].toIntVector(); }
  Generator generator(int i) const { return values_[i].toGenerator(); }
  std::vector<Tensor> tensors(int i) const;

  std::size_t count() const { return results_.size(); }
  /// Undefined for a result that the call does not ask for.
  const Tensor& result(int i = 0) const { return results_[static_cast<std::size_t>(i)]; }

  /// The tensor argument i as a pointwise loop wants it: contiguous, with the sizes of the result and in its type, or in the one given. It
  /// is the argument itself where it is so already.
  Tensor operand(int i) const { return operand(i, result().scalar_type()); }
  Tensor operand(int i, ScalarType type) const;
  /// The same without a copy where only strides differ: strides of 0 where it is broadcast.
  Tensor strided_operand(int i) const { return strided_operand(i, result().scalar_type()); }
  Tensor strided_operand(int i, ScalarType type) const;
  /// The type that the operator computes in by type promotion of tensor arguments, numbers among them.
  ScalarType common_type(std::initializer_list<int> arguments) const;

 private:
  std::vector<Tensor> results_;
  const IValue *values_, *given_;
};

/// Writes the results of a call. False when the case is not for it, before anything was written: the CPU fallback then runs.
using DeviceKernel = bool (*)(KernelCall&);

struct KernelOptions {
  /// Asked first, before the Meta kernel: calls that have no shape without their data are not for it.
  bool (*takes)(const KernelCall&) = nullptr;
  /// Can the device compute in this type? Calls with other tensors run on the CPU.
  bool (*takes_type)(Device, ScalarType) = nullptr;
  /// Tensors of the CPU without dimensions become tensors of the device. Otherwise calls with them run on the CPU.
  bool lifts_numbers = true;
};

/// Registers a kernel for a functional form ("relu") and, unless null, its out form ("relu.out"). In-place forms come from the out form.
CRESSET_API void register_kernel(Library& m, const char* functional, const char* out, DeviceKernel kernel, KernelOptions options = {});
/// For operators that change their first argument ("uniform_"): nothing is allocated, and result() is a contiguous tensor with its values,
/// which are copied back when they lie elsewhere.
CRESSET_API void register_in_place_kernel(Library& m, const char* name, DeviceKernel kernel, KernelOptions options = {});

}  // namespace cresset
