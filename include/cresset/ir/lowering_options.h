// What the passes of lowering may assume about where the graph runs, and what they are asked for.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <cresset/base/macros.h>

namespace cresset::jit {

/// Defaults give a graph that computes what it computed before, in evaluation mode.
struct LoweringOptions {
  /// The graph runs in evaluation mode: dropout goes although its flag says (or may say) training, with a warning.
  bool assume_inference = true;
  /// Inputs of convolutions have a batch dimension when their rank is unknown.
  bool assume_batched = true;
  /// Run-time checks that only raise may go; each removal is reported.
  bool remove_checks = true;
  /// log_softmax and var keep their accuracy for large values; off: the short documented forms.
  bool stable_numerics = true;
  /// gelu without approximation by the tanh formula (absolute error up to 5e-4).
  bool approximate_gelu = false;
  /// What types say of sizes, dtypes and devices is true; off: types from profiling may be wrong, and rules do not look at them. What a
  /// trace saw on its example is never looked at, unless trust_examples says that all inputs are like it.
  bool trust_types = true;
  /// Inputs have the sizes, dtypes and devices of the trace's example: they may be baked in.
  bool trust_examples = false;
  /// mm and add become addmm.
  bool fuse_addmm = false;
  /// The backend's linear flattens all dimensions behind the first.
  bool linear_flattens = false;
  /// The backend moves tensors between devices itself: `to` that only changes the device goes.
  bool casts_are_managed = false;
  /// The backend casts itself: every `to` goes, whatever it asks for.
  bool remove_casts = false;
  /// The backend chooses strides itself: `contiguous` goes for every memory format, and whoever looks at strides.
  bool layout_is_managed = false;
  /// The caller accepts outputs that share memory with inputs.
  bool outputs_may_alias_inputs = false;
  /// Attributes stay attributes: no freezing.
  bool unfreeze = false;
  /// Equal nodes stay apart (quantised models).
  bool disable_cse = false;
  /// The whole graph becomes one engine, whose results are several tensors instead of a collection.
  bool building_engine = false;
  /// Delimiters of forced modules are deleted once their nodes are marked.
  bool delete_delimiters = true;
  /// Behind a condition `len(x) == n`, the length of x is n.
  bool refine_list_lengths = false;
  /// Where the graph runs ("cuda:0"); nothing: tensors stay where they are made.
  std::optional<std::string> target_device;
  /// Modules that stay in the fallback executor: class names, or instance paths ("layer1.0").
  std::vector<std::string> torch_executed_modules;
  /// Names of passes that do not run.
  std::vector<std::string> disabled_passes;
  /// Passes do what the documentation of the phase says in a few words, also where that is not exact: addmm for operands of any rank,
  /// linear and repeat where ranks are not known, trt::const around the bias of an addmm. set_documented_forms sets it with what belongs to
  /// it.
  bool documented_forms = false;

  /// The documented form of every pass: documented_forms, linear_flattens, casts_are_managed, remove_casts, layout_is_managed and
  /// outputs_may_alias_inputs, and stable_numerics off; or all of these back at their defaults.
  CRESSET_API void set_documented_forms(bool on = true);
};

/// Sets one option from text, as the command line and test files give it: "stable_numerics=0", "target-device=cuda:0",
/// "torch_executed_modules=a.B,layer1.0". A flag without value is set. Raises with the names there are.
CRESSET_API void set_lowering_option(LoweringOptions& options, std::string_view assignment);
/// The names of all options.
CRESSET_API std::vector<std::string> lowering_option_names();

}  // namespace cresset::jit
