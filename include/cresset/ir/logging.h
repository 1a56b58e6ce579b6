// Messages of lowering: six levels, a logger for each context, changeable at any time.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include <cresset/base/macros.h>

namespace cresset::jit::logging {

/// From quiet to loud: a level prints itself and all that stand left of it. At `graph` the whole graph is printed behind every pass.
enum class Level : uint8_t { internal_error, error, warning, info, debug, graph };
CRESSET_API const char* to_string(Level level);
/// Of "warning"; raises with the words there are.
CRESSET_API Level level_from(std::string_view word);

/// Where messages of one context go. All members may be used from any thread.
class CRESSET_API Logger {
 public:
  /// Gets each line with prefix and colour applied, without its newline.
  using Sink = std::function<void(Level, const std::string& line)>;
  explicit Logger(std::string prefix = "[Cresset] - ", Level level = Level::warning, bool colour = false);
  ~Logger();
  Logger(const Logger&) = delete;
  Level level() const;
  void set_level(Level level);
  std::string prefix() const;
  void set_prefix(std::string prefix);
  bool colour() const;
  void set_colour(bool on);
  /// By default standard error.
  void set_sink(Sink sink);
  bool enabled(Level level) const { return level <= this->level(); }
  /// Messages of several lines keep their lines; the prefix stands before the first. Dumps of graphs (level graph) get no prefix and no
  /// colour, so that they can be read back.
  void log(Level level, std::string_view message) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// The logger of the process.
CRESSET_API const std::shared_ptr<Logger>& process_logger();
/// The logger of this thread's innermost context; the one of the process when there is none.
CRESSET_API const std::shared_ptr<Logger>& current();
inline void log(Level level, std::string_view message) { current()->log(level, message); }

/// A logger for what this thread does in a scope.
class CRESSET_API WithLogger {
 public:
  explicit WithLogger(std::shared_ptr<Logger> logger);
  ~WithLogger();
  WithLogger(const WithLogger&) = delete;

 private:
  std::shared_ptr<Logger> logger_;
  const std::shared_ptr<Logger>* old_;
};

/// Another level of the current logger for a scope.
class WithLevel {
 public:
  explicit WithLevel(Level level) : logger_(current()), old_(logger_->level()) { logger_->set_level(level); }
  ~WithLevel() { logger_->set_level(old_); }
  WithLevel(const WithLevel&) = delete;

 private:
  std::shared_ptr<Logger> logger_;
  Level old_;
};

}  // namespace cresset::jit::logging
