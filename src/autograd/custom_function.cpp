// Custom Functions: wrapping forward's results, checking backward's, saved tensors of the C++ context.
#include <cresset/autograd/custom_function.h>

#include <cxxabi.h>

#include <algorithm>
#include <cstdlib>

#include <cresset/autograd/function.h>

#include "autograd/captured_tensors.h"
#include "autograd/generated_support.h"
#include "autograd/nodes.h"

namespace cresset::autograd {

namespace {
bool contains(const std::vector<TensorImpl*>& list, const Tensor& t) {
  return std::find(list.begin(), list.end(), t.unsafeGetTensorImpl()) != list.end();
}
constexpr std::size_t kNotAnInput = SIZE_MAX;
std::size_t index_among(const variable_list& inputs, const Tensor& t) {
  for (std::size_t i = 0; i < inputs.size(); ++i)
    if (inputs[i].is_same(t)) return i;
  return kNotAnInput;
}

/// A new tensor on the same data that counts as a view of t, without history of its own. Inside of a function transform it has a tangent of
/// its own: there jvp need not answer with a view.
Tensor as_is_alias(const Tensor& t) {
  NoGradGuard no_grad;
  return alias_of(t, !transforms::inside_function(), CreationMeta::DEFAULT);
}

/// An input changed in place becomes an output of the node.
void rebase_dirty(const Tensor& t, std::size_t input, const std::shared_ptr<Node>& node, std::size_t output_count) {
  const DifferentiableViewMeta* view = impl::get_view_autograd_meta(t);
  // The view's own checks come first: asking for its node would already try to make it again from the changed base.
  if (view && view->has_bw_view()) {
    const Tensor& base = view->backward_info().base;
    CRESSET_CHECK(!(base.requires_grad() && base.is_leaf()),
                  "a view of a leaf Variable that requires grad is being used in an in-place operation.");
    handle_view_on_rebase(*view);
    CRESSET_CHECK(
        output_count == 1,
        "If your Function modifies inplace an input that is a view of another Tensor, your Function cannot return more than one Tensor. "
        "This is "
        "not supported by the current autograd engine. You should either make sure the input is not a view (using .clone() for example) or "
        "make your Function only return one Tensor (potentially splitting it into two Functions: one doing the inplace that returns a "
        "single "
        "Tensor and a second one that does the other operations). You can ask on the forum https://discuss.pytorch.org/ if you need help "
        "to do "
        "this change.");
  }
  CRESSET_CHECK(!(impl::requires_grad(t) && t.is_leaf()), "a leaf Variable that requires grad has been used in an in-place operation.");
  const uint32_t nr = node->add_input_metadata(t);
  impl::rebase_history(t, Edge(node, nr), input);
}

void check_dirty_was_returned(const CustomFunctionMarks& marks, const variable_list& outputs) {
  for (TensorImpl* dirty : marks.dirty)
    CRESSET_CHECK(std::any_of(outputs.begin(), outputs.end(), [&](const Tensor& t) { return t.unsafeGetTensorImpl() == dirty; }),
                  "Some elements marked as dirty during the forward method were not returned as output. The inputs that are modified "
                  "inplace must all "
                  "be outputs of the Function.");
}

variable_list wrap_backward(const variable_list& inputs, const CustomFunctionMarks& marks, const variable_list& raw,
                            const std::shared_ptr<Node>& node) {
  variable_list outputs;
  outputs.reserve(raw.size());
  const auto tensors = static_cast<std::size_t>(std::count_if(raw.begin(), raw.end(), [](const Tensor& t) { return t.defined(); }));
  for (const Tensor& value : raw) {
    if (!value.defined()) {
      if (node) node->add_input_metadata(Tensor());
      outputs.emplace_back();
      continue;
    }
    Tensor t = value;
    const std::size_t input = index_among(inputs, t);
    const bool is_input = input != kNotAnInput;
    const bool is_dirty = contains(marks.dirty, t);
    if (is_dirty) {
      if (!is_input)
        warn(
            "ctx.mark_dirty() received a tensor that was not an input. Only input Tensors that have been mutated should be passed to "
            "ctx.mark_dirty().");
      impl::bump_version(t);
    }
    const bool differentiable = node && isDifferentiableType(t.scalar_type()) && !contains(marks.non_differentiable, t);
    if (!differentiable) {
      if (t.requires_grad()) {
        // What the caller holds keeps its history. A view of an input stays what a view made without recording is.
        if (is_input || !t.is_view()) t = detach_shared(t);
      } else if (is_input && !is_dirty) {
        t = as_is_alias(t);
      }
      if (node) node->add_input_metadata(t);
    } else if (is_dirty && is_input) {
      rebase_dirty(t, input, node, tensors);
    } else {
      if (is_input) t = as_is_alias(t);
      const uint32_t nr = node->add_input_metadata(t);
      impl::set_gradient_edge(t, Edge(node, nr));
    }
    if (DifferentiableViewMeta* view = impl::get_view_autograd_meta(t); view && view->has_bw_view() && !is_dirty)
      view->creation_meta_ = node && tensors > 1 ? CreationMeta::MULTI_OUTPUT_NODE : CreationMeta::IN_CUSTOM_FUNCTION;
    outputs.push_back(std::move(t));
  }
  return outputs;
}

Tensor forward_base(const Tensor& t) {
  const DifferentiableViewMeta* view = impl::get_view_autograd_meta(t);
  return view && view->has_fw_view() ? view->forward_info().base : Tensor();
}

// The tangent of the input that an output is a view of, or whose base they share.
Tensor tangent_of_viewed(const variable_list& inputs, const Tensor& output) {
  const Tensor base = forward_base(output);
  if (!base.defined()) return {};
  for (const Tensor& input : inputs) {
    if (!input.defined()) continue;
    const Tensor of_input = forward_base(input);
    if ((of_input.defined() ? of_input : input).is_same(base)) return fw_grad(input);
  }
  return {};
}

void wrap_forward(const variable_list& inputs, const CustomFunctionMarks& marks, const variable_list& raw, variable_list& outputs,
                  const CustomJvp& jvp) {
  variable_list tangents(inputs.size());
  std::vector<uint32_t> versions(inputs.size(), 0);
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    tangents[i] = fw_grad(inputs[i]);
    if (tangents[i].defined()) versions[i] = impl::version(tangents[i]);
  }
  CRESSET_CHECK_NOT_IMPLEMENTED(jvp, "You must implement the jvp function for custom autograd.Function to use it with forward mode AD.");
  variable_list results;
  {
    const AutoFwGradMode off(false);
    results = jvp(tangents);
  }
  CRESSET_CHECK(results.size() == outputs.size(), "Function's jvp returned an invalid number of forward gradients (expected ",
                outputs.size(), " but got ", results.size(), ")");
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    if (!outputs[i].defined() || !isDifferentiableType(outputs[i].scalar_type()) || contains(marks.non_differentiable, raw[i])) continue;
    const Tensor& tangent = results[i];
    if (!tangent.defined()) continue;
    const std::size_t input = index_among(inputs, raw[i]);
    const bool is_input = input != kNotAnInput;
    if (is_input && contains(marks.dirty, raw[i])) {
      CRESSET_CHECK(!tangents[input].defined() || (tangent.is_same(tangents[input]) && impl::version(tangent) > versions[input]),
                    "An inplace custom Function is not modifying the forward mode gradients inplace. If the forward is modifying an input "
                    "inplace, then "
                    "the jvp function must modify the corresponding gradient inplace.");
      set_fw_grad(outputs[i], tangent, true);
      continue;
    }
    if (is_input && transforms::inside_function()) {
      set_fw_grad(outputs[i], tangent, false);
      continue;
    }
    if (const Tensor source = is_input ? fw_grad(inputs[input]) : tangent_of_viewed(inputs, outputs[i]); source.defined()) {
      CRESSET_CHECK(tangent.is_view(),
                    "A custom Function's forward is returning a view (or an input as-is) but the jvp is not returning a view.");
      CRESSET_CHECK(tangent.is_alias_of(source), "A custom Function is returning a view but the jvp is not returning a view of the ",
                    source.is_view() ? "same base as the given grad input." : "given grad input.");
    }
    set_fw_grad(outputs[i], tangent, false);
  }
}
}  // namespace

variable_list wrap_outputs(const variable_list& inputs, const CustomFunctionMarks& marks, const variable_list& raw_outputs,
                           const std::shared_ptr<Node>& node, const CustomJvp& jvp) {
  if (!marks.dirty.empty()) check_dirty_was_returned(marks, raw_outputs);
  variable_list outputs = wrap_backward(inputs, marks, raw_outputs, node);
  bool any_tangent = false;
  for (const Tensor& t : inputs) any_tangent |= any_fw_grad(t);
  if (CRESSET_UNLIKELY(any_tangent)) wrap_forward(inputs, marks, raw_outputs, outputs, jvp);
  return outputs;
}

SavedVariable save_for(const std::shared_ptr<Node>& node, const Tensor& t) {
  if (!t.defined()) return {};
  const DifferentiableViewMeta* view = impl::get_view_autograd_meta(t);
  if (view && view->has_bw_view()) {
    // A view that forward changed: the node stands inside of the one that its base has now.
    const auto* slices = dynamic_cast<const CopySlices*>(view->backward_info().base.grad_fn().get());
    if (slices && slices->fn == node) return {t, true, true};
  }
  return {t, t.grad_fn() == node};
}

namespace {
void check_kind(const Node& node, std::size_t tensor, std::size_t position, const Tensor& grad) {
  if (!grad.defined() || tensor >= node.num_outputs()) return;
  const Edge& edge = node.next_edge(tensor);
  if (!edge.is_valid() || edge.input_nr >= edge.function->num_inputs()) return;
  const InputMetadata& input = edge.function->input_metadata(edge.input_nr);
  if (input.was_default_constructed()) return;
  const bool complex_input = isComplexType(input.scalar_type());
  CRESSET_CHECK(isFloatingType(grad.scalar_type()) || grad.is_complex() == complex_input, "function ", node.name(),
                " returned an invalid gradient at position ", position + 1, ": expected a ", complex_input ? "complex" : "real",
                " gradient, as the input is of type ", input.scalar_type(), ", but got ", grad.scalar_type(),
                ". Take its real part, for example.");
}
}  // namespace

variable_list check_custom_gradients(const Node& node, variable_list&& grads, const std::vector<bool>& is_tensor) {
  while (grads.size() > is_tensor.size() && !grads.back().defined()) grads.pop_back();
  CRESSET_CHECK(grads.size() == is_tensor.size(), "function ", node.name(), " returned an incorrect number of gradients (expected ",
                is_tensor.size(), ", got ", grads.size(), ")");
  variable_list result;
  result.reserve(grads.size());
  for (std::size_t i = 0; i < grads.size(); ++i) {
    if (is_tensor[i]) {
      check_kind(node, result.size(), i, grads[i]);
      result.push_back(std::move(grads[i]));
    } else {
      CRESSET_CHECK(!grads[i].defined(), "function ", node.name(), " returned a gradient different than None at position ", i + 1,
                    ", but the corresponding forward input was not a Variable");
    }
  }
  return result;
}

// --- AutogradContext ------------------------------------------------------------------------------------------------------

variable_list AutogradContext::get_saved_variables() const {
  CRESSET_CHECK(!has_freed_buffers_, kBackwardTwice);
  if (!to_save_.empty()) return to_save_;  // before the node exists: jvp, or forward itself
  const std::shared_ptr<Node> node = grad_fn_.lock();
  variable_list result;
  result.reserve(saved_variables_.size());
  for (const SavedVariable& s : saved_variables_) result.push_back(s.unpack(node));
  return result;
}

void AutogradContext::save_variables(const std::shared_ptr<Node>& node) {
  saved_variables_.clear();
  saved_variables_.reserve(to_save_.size());
  for (const Tensor& t : to_save_) saved_variables_.push_back(save_for(node, t));
  to_save_.clear();
}

bool AutogradContext::needs_input_grad(std::size_t i) const {
  const auto node = grad_fn_.lock();
  return node && i < node->num_outputs() && node->task_should_compute_output(i);
}
bool AutogradContext::needs_input_grad(std::initializer_list<IndexRange> ranges) const {
  const auto node = grad_fn_.lock();
  return node && node->task_should_compute_output(ranges);
}

namespace detail {
std::string demangle(const char* name) {
  int status = 0;
  char* text = abi::__cxa_demangle(name, nullptr, nullptr, &status);
  std::string result = status == 0 ? text : name;
  std::free(text);
  return result;
}
}  // namespace detail

}  // namespace cresset::autograd
