// What a profiler keeps of the inputs of a call.
#pragma once

#include <cresset/dispatch/profiler.h>

namespace cresset::profiler {
/// One description a value. Tensors themselves are not kept.
std::vector<Input> describe_inputs(ArrayRef<IValue> values);
/// The same for an observer, which wants to know all of them.
std::vector<ObservedValue> describe_values(ArrayRef<IValue> values);
}  // namespace cresset::profiler
