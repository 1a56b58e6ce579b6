// The Python that commands written in Python run in.
#pragma once

#include <string>
#include <vector>

namespace cresset::cli {

/// The interpreter: CRESSET_PYTHON, else the first that has the package: beside this program, in the active virtual environment, in PATH,
/// the one of the build.
std::string python();

/// What a program of Python prints that is given one argument; nothing when it does not start. No shell is between.
std::string python_output(const char* program, const std::string& argument);

/// Becomes a program of Python with these arguments; returns only by an exception, in the words of `command`, where there is no Python.
void become_python(const std::string& command, const char* program, const std::vector<std::string>& arguments);

}  // namespace cresset::cli
