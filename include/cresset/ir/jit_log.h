// Messages of passes by source file, as PyTorch's switch asks for them: "one:>two:>>three" shows the dumps of the file one, the updates of
// two as well, and everything of three. The variable PYTORCH_JIT_LOG_LEVEL gives the first setting.
#pragma once

#include <iosfwd>
#include <string>

#include <cresset/base/macros.h>

namespace cresset::jit {

class Node;

enum class JitLoggingLevels { GRAPH_DUMP = 0, GRAPH_UPDATE, GRAPH_DEBUG };

CRESSET_API std::string get_jit_logging_levels();
CRESSET_API void set_jit_logging_levels(std::string levels);
/// Is this level of the file shown? Folders and the suffix of the name do not count.
CRESSET_API bool is_enabled(const char* file, JitLoggingLevels level);

/// Where these messages go: standard error, unless another stream is given, which must live as long as it is used.
CRESSET_API std::ostream& get_jit_logging_output_stream();
CRESSET_API void set_jit_logging_output_stream(std::ostream& out);

/// The message with "[DUMP name:12] " in front of each line.
CRESSET_API std::string jit_log_prefix(JitLoggingLevels level, const char* file, int line, const std::string& message);
CRESSET_API std::string jit_log_prefix(const std::string& prefix, const std::string& message);
/// The node on one line.
CRESSET_API std::string getHeader(const Node* node);

}  // namespace cresset::jit
