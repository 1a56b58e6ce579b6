// What built-in functions of scripts do beside computing: raise, print, run functions on other threads.
#pragma once

#include <functional>
#include <string>

#include <cresset/dispatch/script_values.h>

namespace cresset::jit {

/// What `raise` of a script throws: the message, and the qualified class name that the script named ("builtins.ValueError"; may be empty).
class CRESSET_API ScriptException : public Error {
 public:
  ScriptException(std::string message, std::string class_name)
      : Error(class_name.empty() ? message : class_name + ": " + message),
        raised_(std::move(message)),
        class_name_(std::move(class_name)) {}
  const std::string& raised_message() const { return raised_; }
  const std::string& class_name() const { return class_name_; }

 private:
  std::string raised_, class_name_;
};

/// Receives what print() of scripts prints, lines with their newline. Gives the receiver before.
using PrintHandler = std::function<void(const std::string&)>;
CRESSET_API PrintHandler set_print_handler(PrintHandler handler);

/// Starts a function on the pool of prim::fork. Threads that wait for a function that has not begun run it themselves, so waiting never
/// needs a free thread.
CRESSET_API intrusive_ptr<ivalue::Future> launch(std::function<IValue()> function, TypePtr element = nullptr);
CRESSET_API IValue wait(const intrusive_ptr<ivalue::Future>& future);

/// Receives what is to run on some thread, soon.
using TaskLauncher = std::function<void(std::function<void()>)>;
/// For a scope, launch() of this thread gives its tasks to another launcher than the pool; an empty one changes nothing.
class CRESSET_API WithTaskLauncher {
 public:
  explicit WithTaskLauncher(const TaskLauncher& launcher);
  ~WithTaskLauncher();
  WithTaskLauncher(const WithTaskLauncher&) = delete;

 private:
  const TaskLauncher* old_;
};
/// Runs the function here and now, and gives its value or error as a completed future. Its forks go to the launcher.
CRESSET_API intrusive_ptr<ivalue::Future> run_as_future(const std::function<IValue()>& function, const TaskLauncher& launcher = nullptr);

}  // namespace cresset::jit
