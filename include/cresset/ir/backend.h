// Backends that take whole modules: a class that compiles what `preprocess` made of a module, and runs its methods.
//
//   struct MyBackend : BackendInterface { … };
//   static auto made = backend<MyBackend>("mine");                                // cresset.classes.__backends__.mine
//   static auto prepared = backend_preprocess_register("mine", [](const Module& m, const auto& spec, const auto& handles) { … });
// In Python: cresset._C._jit_to_backend("mine", module, {"forward": spec}).
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <unordered_map>

#include <cresset/dispatch/custom_class.h>
#include <cresset/ir/ir.h>
#include <cresset/ir/module.h>

namespace cresset::jit {

class CRESSET_API BackendInterface : public CustomClassHolder {
 public:
  BackendInterface() = default;
  ~BackendInterface() override = default;
  /// May be asked at any time; what it compiles runs where it is true.
  virtual bool is_available() = 0;
  /// What preprocess gave, and the specification of each method by its name: a handle for each of these names.
  virtual impl::GenericDict compile(IValue processed, impl::GenericDict method_compile_spec) = 0;
  /// The results of a method by its handle.
  virtual impl::GenericList execute(IValue handle, impl::GenericList inputs) = 0;
};

/// A number for each node, unique in the process: how a backend says in an error which node it is about.
using NodeToDebugHandle = std::unordered_map<Node*, int64_t>;
using BackendDebugHandleGenerator = std::function<NodeToDebugHandle(const std::shared_ptr<Graph>&)>;
/// What is kept of a module for a backend, on the machine that prepares it: any value that archives can hold.
using BackendPreprocessFunction =
    std::function<IValue(const Module& module, const Dict<IValue, IValue>& method_compile_spec, const BackendDebugHandleGenerator&)>;

/// Raises for a name that has one.
CRESSET_API void register_backend_preprocess(const std::string& name, BackendPreprocessFunction function);
/// Runs the function of a backend; raises when there is none.
CRESSET_API IValue backend_preprocess(const std::string& name, const Module& module, const Dict<IValue, IValue>& method_compile_spec);

class backend_preprocess_register {
 public:
  backend_preprocess_register(const std::string& name, BackendPreprocessFunction function) {
    register_backend_preprocess(name, std::move(function));
  }
};

/// Registers the class of a backend.
template <class T>
class backend {
  static_assert(std::is_base_of_v<BackendInterface, T>, "backend<T>: T must derive from BackendInterface.");

 public:
  explicit backend(const std::string& name) {
    cresset::class_<T>("__backends__", name)
        .def(init<>())
        .def("is_available", [](const intrusive_ptr<T>& self) { return self->is_available(); })
        .def("compile",
             [](const intrusive_ptr<T>& self, IValue processed, Dict<std::string, IValue> spec) {
               return Dict<std::string, IValue>(self->compile(std::move(processed), impl::GenericDict(spec.impl())).impl());
             })
        .def("execute", [](const intrusive_ptr<T>& self, IValue handle, List<IValue> inputs) {
          return List<IValue>(self->execute(std::move(handle), impl::GenericList(inputs.impl())).impl());
        });
  }
};

/// An error of a backend at a node.
class CRESSET_API BackendRuntimeException : public Error {
 public:
  BackendRuntimeException(const std::string& message, int64_t debug_handle) : Error(message), debug_handles_{debug_handle} {}
  void pushDebugHandle(int64_t handle) { debug_handles_.push_back(handle); }
  const std::vector<int64_t>& getDebugHandles() const { return debug_handles_; }

 private:
  std::vector<int64_t> debug_handles_;
};

}  // namespace cresset::jit
