// The Python that commands written in Python run in.
#pragma once

#include <string>

namespace cresset::cli {

/// The interpreter: CRESSET_PYTHON, the one beside this program (a virtual environment), the first in PATH.
std::string python();

}  // namespace cresset::cli
