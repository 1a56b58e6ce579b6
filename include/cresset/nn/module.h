// nn::Module: parameters, buffers and submodules by name, in PyTorch's C++ style.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <cresset/core/tensor.h>

namespace cresset::nn {

/// A node in a tree of named parameters, buffers and submodules.
class CRESSET_API Module : public std::enable_shared_from_this<Module> {
 public:
  virtual ~Module() = default;

  /// Names are unique among a module's own entries and contain no dot. Gives back what was registered.
  Tensor& register_parameter(std::string name, Tensor value, bool requires_grad = true);
  Tensor& register_buffer(std::string name, Tensor value);
  template <class M>
  std::shared_ptr<M> register_module(std::string name, std::shared_ptr<M> module) {
    add_child(std::move(name), module);
    return module;
  }
  /// For holders (CRESSET_MODULE): registers the module inside.
  template <class H, class = typename H::contained_type>
  H register_module(std::string name, H holder) {
    add_child(std::move(name), holder.ptr());
    return holder;
  }

  /// Own entries first, then children in order of registration; names are joined with dots.
  std::vector<std::pair<std::string, Tensor>> named_parameters(bool recurse = true) const;
  std::vector<std::pair<std::string, Tensor>> named_buffers(bool recurse = true) const;
  std::vector<Tensor> parameters(bool recurse = true) const;
  const std::vector<std::pair<std::string, std::shared_ptr<Module>>>& named_children() const { return children_; }
  /// Parameters and buffers.
  std::vector<std::pair<std::string, Tensor>> state_dict() const;
  /// Copies values by name. Raises with the lists of missing and unexpected names and of size mismatches; nothing is copied then.
  void load_state_dict(const std::vector<std::pair<std::string, Tensor>>& state);

  virtual void train(bool on = true);
  void eval() { train(false); }
  bool is_training() const { return training_; }
  void zero_grad();
  /// Converts floating parameters and buffers in place.
  void to(ScalarType dtype);

 private:
  void add_child(std::string name, std::shared_ptr<Module> module);
  void check_name(const std::string& name) const;
  void collect(bool buffers, bool recurse, const std::string& prefix, std::vector<std::pair<std::string, Tensor>>& out) const;

  std::vector<std::pair<std::string, std::unique_ptr<Tensor>>> parameters_, buffers_;  // addresses handed out stay valid
  std::vector<std::pair<std::string, std::shared_ptr<Module>>> children_;
  bool training_ = true;
};

/// A shared pointer to a module that is made in place and called with (); the base of CRESSET_MODULE types.
template <class M>
class ModuleHolder {
 public:
  using contained_type = M;
  ModuleHolder(std::nullptr_t) {}
  template <class... A, class = std::enable_if_t<std::is_constructible_v<M, A...>>>
  explicit ModuleHolder(A&&... a) : module_(std::make_shared<M>(std::forward<A>(a)...)) {}
  ModuleHolder(std::shared_ptr<M> m) : module_(std::move(m)) {}
  M* operator->() const { return get(); }
  M& operator*() const { return *get(); }
  const std::shared_ptr<M>& ptr() const { return module_; }
  M* get() const {
    CRESSET_CHECK(module_, "nn: this module holder is empty. Make the module before using it.");
    return module_.get();
  }
  template <class... A>
  auto operator()(A&&... a) const {
    return get()->forward(std::forward<A>(a)...);
  }

 private:
  std::shared_ptr<M> module_;
};

}  // namespace cresset::nn

/// Defines `Name`, the holder of `NameImpl`.
#define CRESSET_MODULE(Name)                                     \
  class Name : public ::cresset::nn::ModuleHolder<Name##Impl> {  \
   public:                                                       \
    using ::cresset::nn::ModuleHolder<Name##Impl>::ModuleHolder; \
  }
