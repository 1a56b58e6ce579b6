// The registry of passes, and where those that others registered stand in the order of lowering.
#include <algorithm>
#include <map>
#include <mutex>

#include <cresset/base/fork.h>
#include <cresset/ir/pass.h>

#include "ir/rewrite/pipeline.h"

namespace cresset::jit {
namespace {

struct PassTable {
  ForkSafe<std::mutex> mutex;
  std::map<std::string, std::shared_ptr<const Pass>> by_name;
  std::vector<std::pair<std::string, PassPosition>> placed;  // in the order of registration
};
PassTable& registry() {
  static auto* all = new PassTable;
  return *all;
}

std::string with_dashes(std::string name) {
  std::replace(name.begin(), name.end(), '_', '-');
  return name;
}

}  // namespace

std::string Pass::command_name() const { return title.empty() ? with_dashes(name) : title; }

RegisterPass::RegisterPass(Pass pass) { register_pass(std::move(pass)); }

void register_pass(Pass pass, const PassPosition& position) {
  CRESSET_CHECK_VALUE(!pass.name.empty() && !pass.run != !pass.run_in,
                      "register_pass: a name and one function, run or run_in, are required.");
  if (pass.run_in)
    pass.run = [in = pass.run_in](const std::shared_ptr<Graph>& g) {
      PassContext context{.graph = g};
      return in(context);
    };
  else
    pass.run_in = [run = pass.run](PassContext& context) { return run(context.graph); };
  CRESSET_CHECK_VALUE(position.before.empty() || position.after.empty(), "register_pass: '", pass.name,
                      "' can stand before or after a pass, not both.");
  const std::string& beside = position.before.empty() ? position.after : position.before;
  if (!beside.empty()) {
    const std::vector<std::string> order = lowering_passes();
    CRESSET_CHECK_VALUE(std::find(order.begin(), order.end(), find_pass(beside)->name) != order.end(), "register_pass: '", beside,
                        "' is not in the order of lowering.");
  }
  PassTable& r = registry();
  const std::lock_guard lock(r.mutex);
  const std::string name = pass.name;
  CRESSET_CHECK(r.by_name.emplace(name, std::make_shared<Pass>(std::move(pass))).second, "pass '", name, "' is registered twice.");
  if (!beside.empty()) r.placed.emplace_back(name, position);
}

bool unregister_pass(const std::string& name) {
  PassTable& r = registry();
  const std::lock_guard lock(r.mutex);
  std::erase_if(r.placed, [&](const auto& p) { return p.first == name; });
  return r.by_name.erase(name) > 0;
}

std::vector<std::shared_ptr<const Pass>> passes() {
  PassTable& r = registry();
  const std::lock_guard lock(r.mutex);
  std::vector<std::shared_ptr<const Pass>> out;
  for (const auto& [name, pass] : r.by_name) out.push_back(pass);
  return out;
}

std::shared_ptr<const Pass> find_pass(const std::string& name) {
  PassTable& r = registry();
  const std::lock_guard lock(r.mutex);
  if (const auto found = r.by_name.find(name); found != r.by_name.end()) return found->second;
  std::string names;
  for (const auto& [known, pass] : r.by_name) {
    if (pass->command_name() == name || with_dashes(known) == name) return pass;
    names += (names.empty() ? "" : ", ") + pass->command_name();
  }
  CRESSET_THROW(ValueError, "there is no pass '", name, "'. Passes: ", names);
}

std::vector<std::string> lowering_passes() {
  std::vector<std::string> order = built_in_order();
  PassTable& r = registry();
  const std::lock_guard lock(r.mutex);
  for (const auto& [name, position] : r.placed) {
    const bool in_front = !position.before.empty();
    const std::string& wanted = in_front ? position.before : position.after;
    const auto at = std::find_if(order.begin(), order.end(), [&](const std::string& other) {
      const auto known = r.by_name.find(other);
      return other == wanted || (known != r.by_name.end() && known->second->command_name() == wanted);
    });
    order.insert(at == order.end() || in_front ? at : at + 1, name);
  }
  return order;
}

}  // namespace cresset::jit
