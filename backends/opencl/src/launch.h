// Setting a kernel's arguments and putting it into the current queue of a device.
#pragma once

#include <cresset/core/tensor.h>

#include <array>
#include <string>

#include "runtime.h"

namespace cresset_opencl {

using cresset::IntArrayRef;
using cresset::ScalarType;
using cresset::Tensor;

/// The device of a tensor.
ClDevice& device_of(const Tensor& t);

/// The text of kernels/<name>.cl, built into this library.
const char* kernel_file(std::string_view name);
/// The part in front of every kernel: types, and where it uses them vectors and rows.
std::string kernel_head(std::string_view file);

/// Macros of an element type for kernel sources: storage type, loads and stores (see kernels/types.cl).
const char* type_letter(ScalarType t);
/// The same for elements that are only moved: not every compiler reads a `half` directly.
const char* moved_letter(ScalarType t);
/// The type that kernels compute in for elements of a type: float for half types, int for small integers and bool.
enum class Compute : uint8_t { Int, Long, Float, Double, None };
Compute compute_of(ScalarType t);
const char* compute_name(Compute c);
/// Can kernels of this device read and compute with elements of the type? (No: complex types, double without hardware for it.)
bool computes(const ClDevice& d, ScalarType t);

/// One launch. Holds the device's launch mutex from the constructor on, so fetch everything else before.
class Launch {
 public:
  /// A kernel of kernels/<file>.cl, compiled with `-D` definitions given in `defines` ("-DT=float …").
  Launch(const Tensor& on, const char* file, const char* name, const std::string& defines);
  Launch(ClDevice& d, cl_command_queue queue, cl_kernel kernel);

  /// Two arguments: the buffer, and the distance of the first element in bytes.
  /// `elements` is added to the distance. Undefined and empty tensors have no buffer.
  Launch& tensor(const Tensor& t, int64_t elements = 0);
  template <class T>
  Launch& value(const T& v) {
    return raw(&v, sizeof v);
  }
  Launch& raw(const void* data, std::size_t nbytes);
  Launch& local(std::size_t nbytes);
  /// The argument FAULTS of kernels that may meet wrong values.
  Launch& faults();
  /// A number of the type that a kernel computes in.
  Launch& number(Compute c, double v);

  /// At least n work items; kernels compare their number with n.
  void run(std::size_t n);
  /// n work items in a group each: for processors, where an item does much and its loops are over vectors (kernels/vectors.cl).
  void run_apart(std::size_t n) { run_groups({n, 1, 1}, {1, 1, 1}); }
  void run_groups(std::array<std::size_t, 3> groups, std::array<std::size_t, 3> group_size);

 private:
  ClDevice& device_;
  cl_command_queue queue_;
  cl_kernel kernel_;
  std::unique_lock<std::mutex> lock_;
  cl_uint next_ = 0;
};

/// The queue of the current stream of a tensor's device.
cl_command_queue queue_for(const Tensor& t);

/// The largest power of two that is at most `wanted` and that a work group may have.
std::size_t group_size(const ClDevice& d, std::size_t wanted);

}  // namespace cresset_opencl
