// torch::Library and the macros around it, custom classes, and the dispatcher's calls.
#pragma once

#include <cresset_compat/aten.h>

#include <cresset/dispatch/custom_class.h>
#include <cresset/dispatch/library.h>
#include <cresset/dispatch/register_operators.h>

namespace cresset::jit {
class ClassType;
CRESSET_API std::shared_ptr<ClassType> getCustomClass(const std::string& name);  // function.h, of libcresset_ir
}  // namespace cresset::jit
namespace c10 {
/// A kernel that takes a stack.
class BoxedKernel : public KernelFunction {
 public:
  BoxedKernel() = default;
  BoxedKernel(const KernelFunction& kernel) : KernelFunction(kernel) {}
  template <auto* function>
  static BoxedKernel makeFromFunction() {
    return makeFromBoxedFunction<function>();
  }
  template <class F>
  static BoxedKernel makeFromFunctor(F functor) {
    return makeFromBoxedFunctor(std::move(functor));
  }
};
/// Sizes of operators' signatures are SymInt in both forms: they are whole numbers here.
template <bool symint, class T>
struct maybe_keep_symint {
  using type = T;
};
namespace impl {
/// BoxedKernelWrapper<R(A...)>::call(kernel, operator, keys, arguments...): a call through a stack, with the operator's signature.
template <class Signature>
struct BoxedKernelWrapper;
template <class R, class... A>
struct BoxedKernelWrapper<R(A...)> {
  static R call(const BoxedKernel& kernel, const OperatorHandle& op, DispatchKeySet keys, A... arguments) {
    return kernel.template call<R, cresset::impl::canonical_t<A>...>(op, keys, arguments...);
  }
};
}  // namespace impl
using cresset::RegisterOperators;
/// The type of a registered class, of `intrusive_ptr<T>` too.
template <class T>
TypePtr getCustomClassType() {
  return cresset::impl::Arg<T>::schema_type();
}
}  // namespace c10
namespace at {
using cresset::Tag;
}
namespace torch {
using c10::CustomClassHolder;
using c10::RegisterOperators;
using cresset::arg;
using cresset::class_;
using cresset::CppFunction;
using cresset::dispatch;
using cresset::init;
using cresset::Library;
using cresset::jit::getCustomClass;
/// The names of all registered classes, with their namespaces.
inline std::vector<std::string> getAllCustomClassesNames() { return cresset::custom_class_names(); }
using cresset::make_custom_class;
using cresset::schema;
/// The text itself: nothing is selected away here.
inline constexpr bool selective_build = false;
}  // namespace torch

#define TORCH_LIBRARY(ns, m) CRESSET_LIBRARY(ns, m)
#define TORCH_LIBRARY_FRAGMENT(ns, m) CRESSET_LIBRARY_FRAGMENT(ns, m)
#define TORCH_LIBRARY_FRAGMENT_THIS_API_IS_FOR_PER_OP_REGISTRATION_ONLY(ns, m) CRESSET_LIBRARY_FRAGMENT(ns, m)
#define TORCH_LIBRARY_IMPL(ns, k, m) CRESSET_LIBRARY_IMPL(ns, k, m)
#define TORCH_LIBRARY_THIS_API_IS_FOR_PER_OP_REGISTRATION_ONLY(ns, m) CRESSET_LIBRARY_FRAGMENT(ns, m)
#define MAKE_TORCH_LIBRARY(ns) ::cresset::Library(::cresset::Library::DEF, #ns, std::nullopt, __FILE__, __LINE__)
#define MAKE_TORCH_LIBRARY_IMPL(ns, k) \
  ::cresset::Library(::cresset::Library::IMPL, #ns, std::make_optional(::cresset::DispatchKey::k), __FILE__, __LINE__)
// Takes a function and its address alike.
#define TORCH_FN(f) ::cresset::FunctionConstant<+(f)>()
#define TORCH_FN_TYPE(f) decltype(TORCH_FN(f))
#define TORCH_SELECTIVE_NAME(n) n
#define TORCH_SELECTIVE_SCHEMA(n) n
#define TORCH_SELECTIVE_CLASS(n) n
