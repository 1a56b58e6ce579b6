// Kernels of operators other than pointwise ones: how they see a call, and how they are registered.
//
// Shapes, types and errors come from the operator's own Meta kernel, so they are those of every other device. A kernel then finds its
// results allocated, contiguous and apart from all inputs. A kernel that gives false has written nothing; the CPU fallback then runs.
#pragma once

#include <cresset/cresset.h>

#include <optional>

#include "copy.h"
#include "launch.h"

namespace cresset_opencl {

using cresset::IValue;
using cresset::Scalar;

/// One call: arguments by their number in the schema, and the results to write.
class Call {
 public:
  Call(const IValue* values, std::vector<Tensor> results) : results_(std::move(results)), values_(values) {}

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
  cresset::Generator generator(int i) const { return values_[i].toGenerator(); }
  std::vector<Tensor> tensors(int i) const;

  std::size_t count() const { return results_.size(); }
  /// Undefined for a result that the call does not ask for.
  const Tensor& result(int i = 0) const { return results_[static_cast<std::size_t>(i)]; }

 private:
  std::vector<Tensor> results_;
  const IValue* values_;
};

using Kernel = bool (*)(Call&);

/// Registers a kernel for a functional form and, unless null, its out form.
/// `takes`, when given, is asked first, before the Meta kernel: calls that have no shape without their data are not for us.
void give(cresset::Library& m, const char* functional, const char* out, Kernel kernel, bool (*takes)(const Call&) = nullptr);
/// For operators that change their first argument: nothing is allocated, and result() is a contiguous target of its values.
/// Registers the form itself.
void give_in_place(cresset::Library& m, const char* name, Kernel kernel);

/// 0 <= d < ndim for a dimension that may be negative.
inline int64_t wrapped(int64_t d, int64_t ndim) { return d < 0 ? d + std::max<int64_t>(ndim, 1) : d; }
/// The product of sizes[from] to sizes[to - 1].
int64_t product(IntArrayRef sizes, int64_t from, int64_t to);

}  // namespace cresset_opencl
