// How far a compiled method's results are from those of the method that it was made of.
#pragma once

#include <string>
#include <vector>

#include <cresset/ir/module.h>

namespace cresset::engine {

/// A line of text: the largest difference, the root mean square of all beside that of the results, and in how many rows (the last
/// dimension, of results with two or more) the largest number stands at the same place. Tensors of floats count.
std::string accuracy_of(const jit::Method& compiled, const jit::Method& given, const std::vector<Stack>& data);

}  // namespace cresset::engine
