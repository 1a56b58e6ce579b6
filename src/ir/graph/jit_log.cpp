// Which files' messages are shown, and where.
#include <cresset/ir/jit_log.h>

#include <atomic>
#include <cstdlib>
#include <iostream>
#include <mutex>
#include <string_view>
#include <unordered_map>

#include <cresset/base/fork.h>
#include <cresset/ir/ir.h>

namespace cresset::jit {
namespace {

std::string_view base_name(std::string_view path) {
  path.remove_prefix(path.find_last_of("/\\") + 1);
  return path.substr(0, path.find('.'));
}

class Levels {
 public:
  static Levels& get() {
    static Levels* levels = new Levels;
    return *levels;
  }
  void set(std::string text) {
    std::unordered_map<std::string, int> files;
    for (std::string_view rest = text; !rest.empty();) {
      std::string_view name = rest.substr(0, rest.find(':'));
      rest.remove_prefix(std::min(rest.size(), name.size() + 1));
      const std::size_t level = std::min(name.find_first_not_of('>'), name.size());
      if (const auto file = base_name(name.substr(level)); !file.empty()) files[std::string(file)] = static_cast<int>(level);
    }
    const std::lock_guard lock(mutex_);
    text_ = std::move(text);
    files_ = std::move(files);
    any_ = !files_.empty();
  }
  std::string text() {
    const std::lock_guard lock(mutex_);
    return text_;
  }
  bool enabled(const char* file, JitLoggingLevels level) {
    if (!any_.load(std::memory_order_relaxed)) return false;
    const std::lock_guard lock(mutex_);
    const auto found = files_.find(std::string(base_name(file)));
    return found != files_.end() && static_cast<int>(level) <= found->second;
  }
  std::atomic<std::ostream*> out = &std::cerr;

 private:
  Levels() {
    if (const char* text = std::getenv("PYTORCH_JIT_LOG_LEVEL")) set(text);
  }
  ForkSafe<std::mutex> mutex_;
  std::string text_;
  std::unordered_map<std::string, int> files_;
  std::atomic<bool> any_ = false;
};

}  // namespace

std::string get_jit_logging_levels() { return Levels::get().text(); }
void set_jit_logging_levels(std::string levels) { Levels::get().set(std::move(levels)); }
bool is_enabled(const char* file, JitLoggingLevels level) { return Levels::get().enabled(file, level); }
std::ostream& get_jit_logging_output_stream() { return *Levels::get().out.load(); }
void set_jit_logging_output_stream(std::ostream& out) { Levels::get().out = &out; }

std::string jit_log_prefix(const std::string& prefix, const std::string& message) {
  std::string out;
  for (std::string_view rest = message; !rest.empty();) {
    const std::string_view line = rest.substr(0, rest.find('\n'));
    rest.remove_prefix(std::min(rest.size(), line.size() + 1));
    out += prefix + std::string(line) + "\n";
  }
  return out;
}
std::string jit_log_prefix(JitLoggingLevels level, const char* file, int line, const std::string& message) {
  constexpr const char* kWords[] = {"DUMP", "UPDATE", "DEBUG"};
  std::string_view name = file;
  name.remove_prefix(name.find_last_of("/\\") + 1);
  return jit_log_prefix("[" + std::string(kWords[static_cast<int>(level)]) + " " + std::string(name) + ":" + std::to_string(line) + "] ",
                        message);
}
std::string getHeader(const Node* node) { return node->str(); }

}  // namespace cresset::jit
