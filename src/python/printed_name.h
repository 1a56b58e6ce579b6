// The package's name in what Python objects print: "cresset", or "torch" where programs know it as that (cresset.as_torch).
#pragma once

#include <string>

namespace cresset::python {

// Read and written with the interpreter lock held.
extern std::string printed_name;

}  // namespace cresset::python
