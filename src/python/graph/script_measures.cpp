// What scripts measure of themselves, for Python: counters and profiles by line, by number; and decompositions of operators.
#include <map>
#include <mutex>

#include <cresset/ir/jit_log.h>
#include <cresset/ir/operator.h>
#include <cresset/ir/pass_functions.h>

#include "ir/operators/counters.h"
#include "ir/run/line_profile.h"
#include "python/convert.h"
#include "python/graph/ir.h"

namespace cresset::python {

namespace {

using GraphRef = std::shared_ptr<Graph>;

/// Objects that Python holds by number and gives back.
template <class T>
class Numbered {
 public:
  int64_t make() {
    const std::lock_guard lock(mutex_);
    held_.emplace(++last_, std::make_shared<T>());
    return last_;
  }
  std::shared_ptr<T> get(int64_t number) const {
    const std::lock_guard lock(mutex_);
    return held_.at(number);
  }
  void drop(int64_t number) {
    std::shared_ptr<T> gone;  // outside of the lock
    const std::lock_guard lock(mutex_);
    if (const auto at = held_.find(number); at != held_.end()) gone = std::move(at->second), held_.erase(at);
  }

 private:
  mutable ForkSafe<std::mutex> mutex_;
  std::map<int64_t, std::shared_ptr<T>> held_;
  int64_t last_ = 0;
};
Numbered<jit::Counters>& counters() {
  static auto* held = new Numbered<jit::Counters>;
  return *held;
}
Numbered<jit::LineProfile>& profiles() {
  static auto* held = new Numbered<jit::LineProfile>;
  return *held;
}

// Sources with the lines that ran: (text, number of its first line, [(number, hits, nanoseconds)]).
Object profile_lines(int64_t profile) {
  Ref out = checked(PyList_New(0));
  for (const auto& [source, lines] : profiles().get(profile)->lines()) {
    const Ref rows = checked(PyList_New(0));
    for (const auto& line : lines) {
      const Ref row = checked(Py_BuildValue("(KKK)", static_cast<unsigned long long>(line.number),
                                            static_cast<unsigned long long>(line.hits), static_cast<unsigned long long>(line.nanoseconds)));
      checked(PyList_Append(rows.get(), row.get()));
    }
    const Ref one = checked(Py_BuildValue("(s#nO)", source->text().data(), static_cast<Py_ssize_t>(source->text().size()),
                                          static_cast<Py_ssize_t>(source->first_line()), rows.get()));
    checked(PyList_Append(out.get(), one.get()));
  }
  return Object(std::move(out));
}

void register_decomposition(const std::string& name, const GraphRef& graph) {
  const jit::Operator* op = jit::find_operator(name);
  CRESSET_CHECK(op, "_register_decomposition: there is no operator '", name, "'.");
  jit::RegisterDecomposition(op->schema(), graph);
}

}  // namespace

void init_script_measures(PyObject* module) {
  def(module, "_jit_counters_new", [] { return counters().make(); });
  def(module, "_jit_counters_drop", [](int64_t c) { counters().drop(c); });
  def(module, "_jit_counters_value", [](int64_t c, std::string name) { return counters().get(c)->value(name); });
  def(module, "_jit_counters_set_mean", [](int64_t c, std::string name, bool mean) { counters().get(c)->set_mean(name, mean); });
  def(module, "_jit_counters_use", [](std::optional<int64_t> c) { jit::set_counters(c ? counters().get(*c) : nullptr); });
  def(module, "_jit_line_profile_new", [] { return profiles().make(); });
  def(module, "_jit_line_profile_drop", [](int64_t p) { profiles().drop(p); });
  def(module, "_jit_line_profile_enable", [](int64_t p) { profiles().get(p)->enable(); });
  def(module, "_jit_line_profile_disable", [](int64_t p) { profiles().get(p)->disable(); });
  def(module, "_jit_line_profile_lines", [](int64_t p) { return profile_lines(p); });
  def(module, "_jit_set_logging_option", [](std::string levels) { jit::set_jit_logging_levels(std::move(levels)); });
  def(module, "_jit_get_logging_option", [] { return jit::get_jit_logging_levels(); });
  def(
      module, "_jit_register_decomposition", [](std::string name, GraphRef graph) { register_decomposition(name, graph); },
      "A graph that computes what an operator computes, for _jit_pass_run_decompositions.");
}

}  // namespace cresset::python
