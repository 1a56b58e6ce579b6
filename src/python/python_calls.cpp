// Calls of Python functions while a profile with stacks is open, in every thread that the interpreter has when it begins.
#include <Python.h>
#include <cresset/base/fork.h>
#include <cresset/dispatch/profiler.h>

#include <chrono>
#include <memory>
#include <unordered_map>
#include <vector>

#include "dispatch/profiler_clock.h"
#include "python/bind.h"
#include "python/convert.h"
#include "python/types.h"

#include <frameobject.h>

namespace cresset::python {
namespace {

// All of this is used with the interpreter lock held.
struct Call {
  int64_t begin, end;            // nanoseconds of the steady clock; end is -1 while it runs
  int32_t callee, parent, line;  // line: where the caller was, 0 when unknown
};
struct ThreadCalls {
  uint64_t os_thread = 0;
  std::vector<Call> calls;
  int32_t current = -1;
};
struct Callee {
  Ref object;  // a code object, or the text of a C function
  Ref module;  // of a call of a module: the module
  Ref about;   // and what is told of it when it is called first in the session, if it could be asked
  Ref held;    // what it is known by, so that nothing else can have its address
};

int64_t now() { return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

/// What a session of calls has seen.
class CallLog {
 public:
  CallLog(Ref module_call, Ref describe) : module_call_(std::move(module_call)), describe_(std::move(describe)) {}

  ThreadCalls& of_this_thread() { return threads_[PyThreadState_Get()]; }
  const std::unordered_map<PyThreadState*, ThreadCalls>& threads() const { return threads_; }
  const std::vector<Callee>& callees() const { return callees_; }

  void begin(ThreadCalls& thread, int32_t callee, int64_t time, PyFrameObject* caller) {
    thread.calls.push_back({time, -1, callee, thread.current, caller ? PyFrame_GetLineNumber(caller) : 0});
    thread.current = static_cast<int32_t>(thread.calls.size()) - 1;
  }
  void end(ThreadCalls& thread) {
    if (thread.current < 0) return;
    Call& call = thread.calls[static_cast<std::size_t>(thread.current)];
    call.end = now();
    thread.current = call.parent;
  }

  /// Without `describe`, which runs Python code, a module is not described.
  int32_t callee_of(PyFrameObject* frame, bool describe) {
    const Ref code = Ref::steal(reinterpret_cast<PyObject*>(PyFrame_GetCode(frame)));
    if (code.get() != module_call_.get()) return known(code.get(), [&] { return Callee{code, {}, {}, {}}; });
    const Ref locals = checked(PyFrame_GetLocals(frame));
    const Ref self = checked(PyMapping_GetItemString(locals.get(), "self"));
    return known(self.get(), [&] { return Callee{code, self, describe ? about(self.get()) : Ref(), {}}; });
  }
  int32_t callee_of(PyObject* function) {
    const void* key =
        PyCFunction_Check(function) ? static_cast<const void*>(reinterpret_cast<PyCFunctionObject*>(function)->m_ml) : function;
    return known(key, [&] { return Callee{checked(PyObject_Repr(function)), {}, {}, Ref::borrow(function)}; });
  }

 private:
  Ref about(PyObject* module) {
    try {
      return checked(PyObject_CallOneArg(describe_.get(), module));
    } catch (const ErrorAlreadySet&) {
      PyErr_Clear();
      return {};
    }
  }
  template <class Make>
  int32_t known(const void* key, const Make& make) {
    const auto found = places_.find(key);
    if (found != places_.end()) return found->second;
    callees_.push_back(make());
    return places_[key] = static_cast<int32_t>(callees_.size()) - 1;
  }

  Ref module_call_, describe_;
  std::unordered_map<PyThreadState*, ThreadCalls> threads_;
  std::unordered_map<const void*, int32_t> places_;
  std::vector<Callee> callees_;
};
CallLog* log = nullptr;
bool forked = false;  // a child has a log that nobody will ask for

// The interpreter's profile function. An error of ours must not become one of the program.
int on_event(PyObject*, PyFrameObject* frame, int what, PyObject* function) {
  if (!log || forked) return 0;
  try {
    ThreadCalls& thread = log->of_this_thread();
    switch (what) {
      case PyTrace_CALL: {
        const Ref caller = Ref::steal(reinterpret_cast<PyObject*>(PyFrame_GetBack(frame)));
        log->begin(thread, log->callee_of(frame, true), now(), reinterpret_cast<PyFrameObject*>(caller.get()));
        break;
      }
      case PyTrace_C_CALL: log->begin(thread, log->callee_of(function), now(), frame); break;
      case PyTrace_RETURN:
      case PyTrace_C_RETURN:
      case PyTrace_C_EXCEPTION: log->end(thread); break;
      default: break;
    }
  } catch (const ErrorAlreadySet&) {
    PyErr_Clear();
  } catch (const std::exception&) {
  }
  return 0;
}

/// Runs f in the place of each thread of the interpreter that nobody else profiles (or, to take it back, that we do).
template <class F>
void for_each_thread(Py_tracefunc profiled_by, const F& f) {
  PyThreadState* const own = PyThreadState_Get();
  for (PyThreadState* t = PyInterpreterState_ThreadHead(PyThreadState_GetInterpreter(own)); t; t = PyThreadState_Next(t)) {
    if (t->c_profilefunc != profiled_by) continue;
    PyThreadState_Swap(t);
    try {
      f(t);
    } catch (const ErrorAlreadySet&) {
      PyErr_Clear();
    }
    PyThreadState_Swap(own);
  }
}

/// What already runs in a thread counts from now on.
void begin_running(PyThreadState* t, int64_t time) {
  ThreadCalls& thread = log->of_this_thread();
  thread.os_thread = static_cast<uint64_t>(t->native_thread_id);
  std::vector<Ref> frames;
  for (Ref f = Ref::steal(reinterpret_cast<PyObject*>(PyThreadState_GetFrame(t))); f;) {
    frames.push_back(f);
    f = Ref::steal(reinterpret_cast<PyObject*>(PyFrame_GetBack(reinterpret_cast<PyFrameObject*>(f.get()))));
  }
  PyFrameObject* caller = nullptr;
  for (auto f = frames.rbegin(); f != frames.rend(); ++f) {
    auto* frame = reinterpret_cast<PyFrameObject*>(f->get());
    log->begin(thread, log->callee_of(frame, false), time, caller);
    caller = frame;
  }
}

void stop_calls() {
  for_each_thread(&on_event, [](PyThreadState*) { PyEval_SetProfile(nullptr, nullptr); });
}

// (text or code, module or None, what was told of it) of each callee; for each thread its number and (callee, begin, end, parent, line of
// the caller) of each call.
Object taken(const CallLog& done, int64_t started) {
  const int64_t stopped = now();
  const Ref callees = checked(PyList_New(0)), threads = checked(PyList_New(0));
  for (const Callee& c : done.callees()) {
    const Ref row = checked(PyTuple_Pack(3, c.object.get(), c.module ? c.module.get() : Py_None, c.about ? c.about.get() : Py_None));
    checked(PyList_Append(callees.get(), row.get()));
  }
  for (const auto& [state, thread] : done.threads()) {
    const Ref calls = checked(PyList_New(static_cast<Py_ssize_t>(thread.calls.size())));
    Py_ssize_t i = 0;
    for (const Call& c : thread.calls)
      PyList_SET_ITEM(calls.get(), i++,
                      checked(Py_BuildValue("(iLLii)", c.callee, static_cast<long long>(c.begin - started),
                                            static_cast<long long>((c.end < 0 ? stopped : c.end) - started), c.parent, c.line))
                          .release());
    const Ref pair = checked(Py_BuildValue("(KO)", static_cast<unsigned long long>(thread.os_thread), calls.get()));
    checked(PyList_Append(threads.get(), pair.get()));
  }
  return Object(checked(PyTuple_Pack(2, callees.get(), threads.get())));
}

}  // namespace

void init_python_calls(PyObject* module) {
  // (the code that calls a module, a function that tells of a module): begins to note calls, times being those of the session of the
  // profiler that runs.
  def(module, "_profiler_calls_start", [](PyObject* module_call, PyObject* describe) {
    static const bool registered = (call_in_forked_child([] { forked = true; }), true);
    (void)registered;
    CRESSET_CHECK(!log || forked, "Profiler: calls of Python functions are noted already.");
    if (log) {
      stop_calls();
      delete std::exchange(log, nullptr);
    }
    forked = false;
    log = new CallLog(Ref::borrow(module_call), Ref::borrow(describe));
    const int64_t time = now();
    for_each_thread(nullptr, [&](PyThreadState* t) {
      begin_running(t, time);
      PyEval_SetProfile(&on_event, nullptr);
    });
  });
  // Before the session ends.
  def(module, "_profiler_calls_stop", [] {
    CRESSET_CHECK(log, "Profiler: calls of Python functions are not noted.");
    stop_calls();
    const std::unique_ptr<CallLog> done(std::exchange(log, nullptr));
    return taken(*done, profiler::session_started());
  });
}

}  // namespace cresset::python
