// Compiled kernels: in memory by a short key, and on disk by everything a compiler's answer depends on.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <unordered_map>

#include "runtime.h"

namespace cresset_opencl {

struct ProgramText {
  std::string source;
  std::string definitions = {};  // of clBuildProgram: "-DT=float …"
  bool keep = true;              // on disk; false leaves that to the driver
};

/// Where compiled programs of all processes are kept: CRESSET_OPENCL_CACHE, else XDG_CACHE_HOME/cresset/opencl, else
/// ~/.cache/cresset/opencl. Empty, nowhere: with CRESSET_OPENCL_CACHE=off, and without it for a driver that compiles late.
std::string program_folder(const DeviceFacts& facts);

class Programs {
 public:
  explicit Programs(ClDevice& device) : device_(device) {}

  /// The kernel `name` of the program that `text` gives; `key` stands for the program.
  cl_kernel kernel(std::string_view key, const char* name, const std::function<ProgramText()>& text);

  struct Counts {
    int compiled = 0;
    int loaded = 0;  // from disk
  };
  Counts counts();

 private:
  struct Hash {
    using is_transparent = void;
    std::size_t operator()(std::string_view s) const { return std::hash<std::string_view>()(s); }
  };
  cl_program build(const ProgramText& text);
  cl_program load(const std::string& file, const std::string& identity, const std::string& options);
  void store(cl_program program, const std::string& file, const std::string& identity) const;

  ClDevice& device_;
  std::mutex mutex_;
  std::unordered_map<std::string, cl_program, Hash, std::equal_to<>> programs_;
  std::unordered_map<std::string, cl_kernel, Hash, std::equal_to<>> kernels_;
  Counts counts_;
};

}  // namespace cresset_opencl
