// Example inputs on the command line of `cresset lower`.
#pragma once

#include <string>
#include <vector>

#include <cresset/dispatch/ivalue.h>
#include <cresset/ir/input_spec.h>

namespace cresset::cli {

/// "float32[2,3]" is a tensor of that dtype and these sizes with the same random contents each time; "3", "1.5", "true", "None" and other
/// texts are what they say. Raises with what was given.
std::vector<IValue> example_inputs(const std::vector<std::string>& texts);
/// Those that are written (1,3)@f32 or [(min);(opt);(max)]; nothing in the places of others. Empty where there is none.
jit::InputSpecs input_specs(const std::vector<std::string>& texts);

}  // namespace cresset::cli
