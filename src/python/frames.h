// Where a Python program is.
#pragma once

#include <string>
#include <vector>

namespace cresset::python {

/// "file.py(12): function" for each Python frame of this thread, the innermost first. A thread that runs Python may have given the
/// interpreter lock away for this operator; threads that only work for one never ask for it, as that one may wait for them with the lock.
std::vector<std::string> python_stack();

}  // namespace cresset::python
