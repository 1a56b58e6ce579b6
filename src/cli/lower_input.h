// Example inputs on the command line of `cresset lower`.
#pragma once

#include <string>
#include <vector>

#include <cresset/dispatch/ivalue.h>

namespace cresset::cli {

/// "float32[2,3]" is a tensor of that dtype and these sizes with the same random contents each time; "3", "1.5", "true", "None" and other
/// texts are what they say. Raises with what was given.
std::vector<IValue> example_inputs(const std::vector<std::string>& texts);

}  // namespace cresset::cli
