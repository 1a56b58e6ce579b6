// Nodes that autograd itself makes: leaf accumulation, in-place changes of views, errors.
#pragma once

#include <mutex>

#include <cresset/autograd/saved_variable.h>
#include <cresset/autograd/variable.h>

namespace cresset::autograd {

/// Adds the gradient of a leaf into its .grad.
struct CRESSET_API AccumulateGrad final : Node {
  explicit AccumulateGrad(Tensor leaf);
  std::string name() const override { return "torch::autograd::AccumulateGrad"; }
  std::vector<std::shared_ptr<FunctionPreHook>> leaf_tensor_hooks() override;

  Tensor variable;

 protected:
  variable_list apply(variable_list&& grads) override;

 private:
  std::mutex mutex_;
};

/// Stands for an input that nothing depends on.
struct CRESSET_API Identity final : Node {
  using Node::Node;
  std::string name() const override { return "torch::autograd::Identity"; }

 protected:
  variable_list apply(variable_list&& grads) override { return std::move(grads); }
};

/// Where a view lies in its base: as_strided parameters, or a function that makes the view.
struct ViewGeometry {
  ViewGeometry(const ViewInfo& info, const TensorBase& view);
  /// The same part of another tensor that has the base's sizes and strides.
  Tensor of(const Tensor& other) const;

  DimVector sizes, strides;
  int64_t relative_offset = 0;
  ViewReplay replay;
};

/// A base one of whose views was changed in place by `fn`: the gradient of that part goes through fn, the rest passes.
struct CRESSET_API CopySlices final : Node {
  CopySlices(const Tensor& base, ViewGeometry view, std::shared_ptr<Node> fn, std::size_t self_index);
  ~CopySlices() override { detail::release_node(std::move(fn)); }
  std::string name() const override { return "torch::autograd::CopySlices"; }
  void release_variables() override;
  /// Where the gradient of the changed view goes: through the same view of this node's output.
  Edge view_edge();

  std::shared_ptr<Node> fn;

 protected:
  variable_list apply(variable_list&& grads) override;

 private:
  /// Memory with the base's geometry, for a gradient of such a kind.
  Tensor empty_base(const Tensor& grad) const;

  ViewGeometry view_;
  DimVector base_sizes_, base_strides_;
  bool base_strided_;
  std::size_t self_index_;
};

/// Raises a message when a gradient reaches it.
struct CRESSET_API ErrorNode : Node {
  ErrorNode(std::string message, edge_list&& next_edges) : Node(std::move(next_edges)), message_(std::move(message)) {}
  explicit ErrorNode(std::string message) : message_(std::move(message)) {}
  std::string name() const override { return "torch::autograd::Error"; }

 protected:
  variable_list apply(variable_list&&) override { CRESSET_THROW(Error, message_); }

 private:
  std::string message_;
};

/// An operator without a derivative formula.
struct CRESSET_API NotImplementedNode final : Node {
  NotImplementedNode(std::string op, edge_list&& next_edges) : Node(std::move(next_edges)), op_(std::move(op)) {}
  std::string name() const override { return "torch::autograd::NotImplemented"; }

 protected:
  variable_list apply(variable_list&&) override { CRESSET_THROW(NotImplementedError, "derivative for ", op_, " is not implemented"); }

 private:
  std::string op_;
};

/// Passes gradients on; the node of aliases that autograd makes itself.
struct CRESSET_API AliasBackward0 final : Node {
  using Node::Node;
  std::string name() const override { return "AliasBackward0"; }

 protected:
  variable_list apply(variable_list&& grads) override { return std::move(grads); }
};

/// A differentiable view of all of t that is a tensor of its own. fw: do tangents pass as well?
CRESSET_API Tensor alias_of(const Tensor& t, bool fw, CreationMeta creation_meta = creation_meta_now());

/// "MulBackward0" as messages name the forward operation: "Mul".
CRESSET_API std::string forward_name(const Node& node);

}  // namespace cresset::autograd
