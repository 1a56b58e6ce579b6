// Levels of vmap, batched tensors, and derivatives for function transforms: what cresset._vmap and cresset.func are made of.
#include "python/transforms.h"

#include <cresset/dispatch/dispatcher.h>

#include <algorithm>
#include <vector>

#include "autograd/captured_tensors.h"
#include "autograd/transforms.h"
#include "batching/batched_tensor.h"
#include "batching/rule_table.h"
#include "python/autograd.h"
#include "python/bind.h"

namespace cresset::python {

namespace {

// Of each transform of derivatives that this thread is in: the levels of vmap around it.
thread_local std::vector<std::size_t> levels_around;

void enter_transform(const std::vector<Tensor>& inputs) {
  autograd::transforms::enter_function(inputs);
  levels_around.push_back(batching::levels().size());
}
void leave_transform() {
  levels_around.pop_back();
  autograd::transforms::leave_function();
}

batching::Randomness to_randomness(const std::string& word) {
  return word == "error" ? batching::Randomness::Error : word == "same" ? batching::Randomness::Same : batching::Randomness::Different;
}
const char* word_of(batching::Randomness r) {
  return r == batching::Randomness::Error ? "error" : r == batching::Randomness::Same ? "same" : "different";
}

// The older kind of vmap, without levels that the core knows of: it may only refuse random operators.
void refuse_random(const OperatorHandle& op, DispatchKeySet ks, Stack* stack) {
  const auto& tags = op.getTags();
  CRESSET_CHECK(
      std::find(tags.begin(), tags.end(), "nondeterministic_seeded") == tags.end(),
      "vmap: We do not yet support calling random operations inside of vmap. Please perform random operations outside of vmap as a "
      "workaround");
  op.redispatchBoxed(ks.remove(DispatchKey::VmapMode), stack);
}
int64_t count_vmap_mode(int64_t step) {
  static const auto fallback = Dispatcher::singleton().registerFallback(
      DispatchKey::VmapMode, KernelFunction::makeFromBoxedFunction<&refuse_random>(), str("registered at ", __FILE__, ":", __LINE__));
  thread_local int64_t nesting = 0;
  CRESSET_CHECK(nesting + step >= 0, "_vmapmode_decrement_nesting: there is no level to leave.");
  nesting += step;
  impl::tls_set_dispatch_key_included(DispatchKey::VmapMode, nesting > 0);
  return nesting;
}

}  // namespace

bool derivatives_are_innermost() { return !levels_around.empty() && levels_around.back() == batching::levels().size(); }

void init_transforms(PyObject* module) {
  using namespace autograd;
  def(
      module, "_vmap_push", [](int64_t size, std::string randomness) { return batching::push_level(size, to_randomness(randomness)); },
      "Enters a level for a batch of this size; gives its number.");
  def(module, "_vmap_pop", [] { batching::pop_level(); });
  def(module, "_vmap_depth", [] { return static_cast<int64_t>(batching::levels().size()); });
  // (number, batch size, randomness) of the innermost level, or None.
  def(module, "_vmap_innermost", [] {
    if (batching::levels().empty()) return Object(Py_NewRef(Py_None));
    const batching::Level& level = batching::levels().back();
    return Object(checked(
        Py_BuildValue("(LLs)", static_cast<long long>(level.number), static_cast<long long>(level.batch_size), word_of(level.randomness))));
  });
  def(module, "_add_batch_dim", [](Tensor t, int64_t dim, int64_t level) {
    CRESSET_CHECK(level > 0, "_add_batch_dim: levels of vmap count from 1; level ", level, " was given.");
    return without_lock(may_wait(t), [&] { return batching::add_batch_dim(t, dim, level); });
  });
  def(module, "_remove_batch_dim", [](Tensor t, int64_t level, int64_t batch_size, int64_t dim) {
    return without_lock(may_wait(t), [&] { return batching::remove_batch_dim(t, level, batch_size, dim); });
  });
  def(module, "_vmapmode_increment_nesting", [] { return count_vmap_mode(1); });
  def(module, "_vmapmode_decrement_nesting", [] { return count_vmap_mode(-1); });
  def(module, "_is_batched", [](Tensor t) { return batching::is_batched(t); });
  def(module, "_is_batched_at", [](Tensor t, int64_t level) { return batching::is_batched_at(t, level); });
  // (value, dimension, level) of a batched tensor.
  def(module, "_batch_parts", [](Tensor t) {
    const batching::BatchedTensorImpl* b = batching::batched_impl(t);
    CRESSET_CHECK(b, "a batched tensor was required.");
    const Ref value = checked(wrap(b->value()));
    return Object(checked(Py_BuildValue("(OLL)", value.get(), static_cast<long long>(b->batch_dim()), static_cast<long long>(b->level()))));
  });

  // (word, inner dimensions) of the row key `batch` of "aten::name.overload": how an operator runs on a batch.
  def(module, "_batch_rule", [](const std::string& name) {
    const OperatorName parsed = parse_operator_name(name);
    const batching::Rule rule =
        batching::rule_of(Dispatcher::singleton().findSchemaOrThrow(parsed.name.c_str(), parsed.overload_name.c_str()));
    return Object(checked(Py_BuildValue("(si)", batching::word_of(rule.kind), static_cast<int>(rule.inner))));
  });

  // (operators without a rule may loop, they warn): given values replace the settings, None leaves them.
  def(module, "_debug_only_are_vmap_fallback_warnings_enabled", [] { return batching::loop_settings().warns.load(); });
  def(module, "_debug_only_display_vmap_fallback_warnings", [](bool display) { batching::loop_settings().warns = display; });
  def(module, "_vmap_loop_settings", [](std::optional<bool> enabled, std::optional<bool> warns) {
    batching::LoopSettings& settings = batching::loop_settings();
    if (enabled) settings.enabled = *enabled;
    if (warns) settings.warns = *warns;
    return Object(checked(Py_BuildValue("(NN)", PyBool_FromLong(settings.enabled), PyBool_FromLong(settings.warns))));
  });

  def(module, "_transform_enter", [](std::vector<Tensor> inputs) { enter_transform(inputs); });
  def(module, "_transform_leave", [] { leave_transform(); });
  def(module, "_fresh_input", [](Tensor t) { return without_lock(may_wait(t), [&] { return transforms::fresh_input(t); }); });
  def(module, "_without_own_history",
      [](Tensor t, std::vector<Tensor> inputs, bool always) { return transforms::without_own_history(t, inputs, always); });
  def(module, "_depends_on_others",
      [](std::vector<Tensor> tensors, std::vector<Tensor> inputs) { return transforms::depends_on_others(tensors, inputs); });
  def(module, "_is_recorded", [](Tensor t) { return transforms::is_recorded(t); });
  // (outputs, inputs, gradients or None each, keep_graph, create_graph): gradients, None where there is no path
  def(module, "_transform_gradients", [](std::vector<Tensor> outputs, std::vector<Tensor> inputs, PyObject* grads, bool keep, bool create) {
    const variable_list given = to_tensors(grads, "gradients", true);
    variable_list out;
    {
      const GilRelease release;
      out = transforms::gradients(outputs, inputs, given, keep, create);
    }
    return Object(from_tensors(out));
  });
}

}  // namespace cresset::python
