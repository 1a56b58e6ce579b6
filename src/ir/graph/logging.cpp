// Loggers: level, prefix, colour and sink behind one lock; the current one is a variable of the thread.
#include <cresset/base/fork.h>
#include <cresset/ir/logging.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdio>
#include <mutex>
#include <utility>

#include <cresset/base/error.h>

namespace cresset::jit::logging {
namespace {

struct LevelFacts {
  const char* word;
  const char* colour;  // escape sequence of a terminal
};
constexpr std::array<LevelFacts, 6> kLevels{{{"internal_error", "\033[1;35m"},
                                             {"error", "\033[1;31m"},
                                             {"warning", "\033[1;33m"},
                                             {"info", "\033[32m"},
                                             {"debug", "\033[36m"},
                                             {"graph", ""}}};

thread_local const std::shared_ptr<Logger>* innermost = nullptr;  // a WithLogger's

}  // namespace

const char* to_string(Level level) { return kLevels.at(static_cast<std::size_t>(level)).word; }

Level level_from(std::string_view word) {
  std::string words;
  for (std::size_t i = 0; i < kLevels.size(); ++i) {
    if (word == kLevels[i].word) return static_cast<Level>(i);
    words += (i ? ", " : "") + std::string(kLevels[i].word);
  }
  CRESSET_THROW(ValueError, "log level: one of ", words, " was required; '", word, "' was given.");
}

struct Logger::State {
  mutable ForkSafe<std::mutex> mutex;
  std::atomic<Level> level;
  std::string prefix;
  bool colour;
  Sink sink;
};

Logger::Logger(std::string prefix, Level level, bool colour) : state_(std::make_unique<State>()) {
  state_->level = level;
  state_->prefix = std::move(prefix);
  state_->colour = colour;
}
Logger::~Logger() = default;

Level Logger::level() const { return state_->level.load(std::memory_order_relaxed); }
void Logger::set_level(Level level) { state_->level.store(level, std::memory_order_relaxed); }
std::string Logger::prefix() const {
  const std::lock_guard lock(state_->mutex);
  return state_->prefix;
}
void Logger::set_prefix(std::string prefix) {
  const std::lock_guard lock(state_->mutex);
  state_->prefix = std::move(prefix);
}
bool Logger::colour() const {
  const std::lock_guard lock(state_->mutex);
  return state_->colour;
}
void Logger::set_colour(bool on) {
  const std::lock_guard lock(state_->mutex);
  state_->colour = on;
}
void Logger::set_sink(Sink sink) {
  const std::lock_guard lock(state_->mutex);
  state_->sink = std::move(sink);
}

void Logger::log(Level level, std::string_view message) const {
  if (!enabled(level)) return;
  std::string line;
  Sink sink;
  {
    const std::lock_guard lock(state_->mutex);
    sink = state_->sink;
    if (level == Level::graph) {
      line = message;
    } else {
      line = state_->prefix + to_string(level) + ": " + std::string(message);
      if (state_->colour) line = kLevels[static_cast<std::size_t>(level)].colour + line + "\033[0m";
    }
  }
  // Outside of the lock: a sink may log or change the logger.
  if (sink)
    sink(level, line);
  else
    std::fprintf(stderr, "%s\n", line.c_str());
}

const std::shared_ptr<Logger>& process_logger() {
  static const auto* logger = new std::shared_ptr<Logger>(std::make_shared<Logger>());
  return *logger;
}

const std::shared_ptr<Logger>& current() { return innermost && *innermost ? *innermost : process_logger(); }

WithLogger::WithLogger(std::shared_ptr<Logger> logger) : logger_(std::move(logger)), old_(std::exchange(innermost, &logger_)) {}
WithLogger::~WithLogger() { innermost = old_; }

}  // namespace cresset::jit::logging
