// A pickle machine that can make values of scripts and nothing else: tensors, numbers, strings, containers, enumerators, and objects of
// classes that its owner knows. No pickle can call anything that is not in the table of unpickler.cpp.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include <cresset/dispatch/ivalue.h>

namespace cresset::jit {

struct UnpicklerHooks {
  /// Class or enum by qualified name ("__torch__.Foo"); null when there is none.
  std::function<TypePtr(const std::string& name)> type;
  /// An object of a class from what was pickled for it.
  std::function<IValue(const TypePtr& type, IValue state)> object;
  /// A one-dimensional tensor on the whole storage of this key.
  std::function<Tensor(const std::string& key, ScalarType dtype, const std::string& device, int64_t elements)> storage;
  /// Bytes that the values may take, about, where no limit of memory is set; 0: in proportion to the pickle.
  uint64_t budget = 0;
};

/// The value of a pickle. `name` is the file's, for errors. Values may nest kDeepestPickle deep, and containers may not contain
/// themselves.
IValue unpickle(std::string_view bytes, const std::string& name, const UnpicklerHooks& hooks);
inline constexpr uint32_t kDeepestPickle = 1000;

/// Gives containers the element types (and tuples the names) that their static type says; `v` must be of that type otherwise. False when
/// it is not.
bool restore_type(const IValue& v, const TypePtr& type);

/// "FloatStorage" of kFloat, as pickles name a storage's type; null for types without one.
const char* storage_name(ScalarType t);
/// "QInt8Storage" of kChar: the same for quantized tensors of these numbers.
const char* quantized_storage_name(ScalarType t);

}  // namespace cresset::jit
