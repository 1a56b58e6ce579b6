// Registering operators and kernels: CRESSET_LIBRARY(ns, m), CRESSET_LIBRARY_IMPL(ns, Key, m), CRESSET_LIBRARY_FRAGMENT.
//
//   CRESSET_LIBRARY(demo, m) { m.def("scale(Tensor x, float by) -> Tensor"); }
//   CRESSET_LIBRARY_IMPL(demo, CPU, m) { m.impl("scale", &scale_cpu); }
#pragma once

#include <concepts>
#include <initializer_list>
#include <string>
#include <vector>

#include <cresset/dispatch/dispatcher.h>
#include <cresset/dispatch/tags.h>

namespace cresset {

/// A kernel on its way into the dispatcher: from a function pointer, a lambda, CRESSET_FN, or a maker below.
class CRESSET_API CppFunction {
 public:
  template <class F, class = std::enable_if_t<std::is_function_v<F>>>
  CppFunction(F* f) : CppFunction(KernelFunction::makeFromUnboxed(f), static_cast<F*>(nullptr)) {}
  template <auto* F>
  CppFunction(FunctionConstant<F> f)
      : CppFunction(KernelFunction::makeFromUnboxedFunction(f), static_cast<std::remove_pointer_t<decltype(F)>*>(nullptr)) {}
  template <class L, class D = std::decay_t<L>, class = std::enable_if_t<std::is_class_v<D>&& requires { &D::operator(); }>,
            class F = typename impl::function_type_of<D>::type>
  CppFunction(L&& f) : CppFunction(KernelFunction::makeFromUnboxed(D(std::forward<L>(f))), static_cast<F*>(nullptr)) {}
  CppFunction(KernelFunction kernel) : kernel_(std::move(kernel)) {}
  CppFunction(CppFunction&&) noexcept = default;

  static CppFunction makeFallthrough() { return KernelFunction::makeFallthrough(); }
  template <auto* F>
  static CppFunction makeFromBoxedFunction() {
    return KernelFunction::makeFromBoxedFunction<F>();
  }
  template <class F>
  static CppFunction makeFromBoxedFunctor(intrusive_ptr<F> f) {
    return KernelFunction::makeFromBoxedFunctor(std::move(f));
  }
  CppFunction&& debug(std::string text) && {
    debug_ = std::move(text);
    return std::move(*this);
  }

 private:
  friend class Library;
  template <class F>
  friend CppFunction dispatch(DispatchKey key, F&& f);
  template <class F>
  CppFunction(KernelFunction kernel, F*)
      : kernel_(std::move(kernel)),
        signature_(CppSignature::make<F>()),
        inferred_(std::make_unique<FunctionSchema>(impl::infer_schema(static_cast<typename impl::signature_of<F>::type*>(nullptr)))) {}

  KernelFunction kernel_;
  std::optional<DispatchKey> key_;
  std::optional<CppSignature> signature_;
  std::unique_ptr<FunctionSchema> inferred_;
  std::string debug_;
};

/// Gives a kernel its own key inside a def or a catch-all block: m.impl("f", dispatch(DispatchKey::CPU, &f)).
template <class F>
CppFunction dispatch(DispatchKey key, F&& f) {
  CppFunction r(std::forward<F>(f));
  r.key_ = key;
  return r;
}
template <class F>
CppFunction dispatch(DeviceType type, F&& f) {
  return dispatch(backendKey(type), std::forward<F>(f));
}

/// A schema with an explicit alias analysis kind, for Library::def.
inline FunctionSchema schema(const char* text, AliasAnalysisKind kind) {
  FunctionSchema s = parse_schema(text);
  s.set_alias_analysis(kind);
  return s;
}

template <class T>
class class_;

inline std::string_view tag_name(Tag tag) { return tag_names[static_cast<std::size_t>(tag)]; }
inline std::vector<std::string> names_of(ArrayRef<Tag> tags) {
  std::vector<std::string> out;
  for (Tag t : tags) out.emplace_back(tag_names[static_cast<std::size_t>(t)]);
  return out;
}
inline std::vector<std::string> names_of(std::initializer_list<Tag> tags) { return names_of(ArrayRef<Tag>(tags)); }
inline std::vector<std::string> names_of(const std::vector<Tag>& tags) { return names_of(ArrayRef<Tag>(tags)); }

/// A block of registrations; removing it undoes them.
class CRESSET_API Library final {
 public:
  enum Kind { DEF, IMPL, FRAGMENT };
  Library(Kind kind, std::string ns, std::optional<DispatchKey> key, const char* file, uint32_t line);
  Library(Library&&) = default;
  Library& operator=(Library&&) = default;

  /// From now on impl() of a name in `aten` or `cresset` raises when there is no such operator, instead of waiting for its definition.
  Library& built_in_names_must_exist() {
    names_must_exist_ = true;
    return *this;
  }

  /// Declares an operator; the namespace is the block's.
  Library& def(std::string_view schema, std::vector<std::string> tags = {});
  Library& def(FunctionSchema schema, std::vector<std::string> tags = {});
  Library& def(std::string_view schema, std::initializer_list<Tag> tags) { return def(schema, names_of(tags)); }
  Library& def(FunctionSchema schema, std::initializer_list<Tag> tags) { return def(std::move(schema), names_of(tags)); }
  template <std::same_as<Tag> T>
  Library& def(std::string_view schema, const std::vector<T>& tags) {
    return def(schema, names_of(tags));
  }
  template <std::same_as<Tag> T>
  Library& def(FunctionSchema schema, const std::vector<T>& tags) {
    return def(std::move(schema), names_of(tags));
  }
  /// Declares and gives a kernel for every backend; a name alone takes its schema from the C++ signature.
  template <class F, class = std::enable_if_t<!std::is_convertible_v<F, std::vector<std::string>> &&
                                              !std::is_same_v<std::decay_t<F>, std::vector<Tag>>>>
  Library& def(std::string_view name_or_schema, F&& f) {
    return def_with_kernel(name_or_schema, CppFunction(std::forward<F>(f)));
  }
  template <class F, class = std::enable_if_t<!std::is_convertible_v<F, std::vector<std::string>> &&
                                              !std::is_same_v<std::decay_t<F>, std::vector<Tag>>>>
  Library& def(FunctionSchema schema, F&& f) {
    return def_with_kernel(std::move(schema), CppFunction(std::forward<F>(f)));
  }
  /// Gives an operator a kernel for the block's key.
  template <class F>
  Library& impl(std::string_view name, F&& f) {
    return impl_kernel(name, CppFunction(std::forward<F>(f)));
  }
  /// The same for a key of its own, or the key of a device type's backend.
  template <class F>
  Library& impl(std::string_view name, DispatchKey key, F&& f) {
    return impl_kernel(name, dispatch(key, std::forward<F>(f)));
  }
  template <class F>
  Library& impl(std::string_view name, DeviceType type, F&& f) {
    return impl_kernel(name, dispatch(type, std::forward<F>(f)));
  }
  /// A kernel for every operator that has none for the block's key (namespace `_` only).
  template <class F>
  Library& fallback(F&& f) {
    return fallback_kernel(CppFunction(std::forward<F>(f)));
  }
  /// Registers a C++ class of the block's namespace (cresset/dispatch/custom_class.h).
  template <class T>
  cresset::class_<T> class_(const std::string& name, std::string doc = {});
  /// The Python module that registers kernels (fake ones, say) for the operators defined after this call; the error of a kernel that is
  /// missing tells users to import it. `context` follows in that text.
  Library& set_python_module(const char* module, const char* context = "") {
    python_module_ = *context ? std::string(module) + " (" + context + ")" : module;
    return *this;
  }
  /// The older name.
  Library& impl_abstract_pystub(const char* module, const char* context = "") { return set_python_module(module, context); }
  /// Undoes everything.
  void reset() { registrations_.clear(); }
  const std::string& ns() const { return ns_; }
  Kind kind() const { return kind_; }

 private:
  friend class RegisterOperators;
  /// `inferred` is how the results of a schema that is made from the kernel's signature may share memory, of which that says nothing.
  Library& def_with_kernel(std::string_view name_or_schema, CppFunction f, AliasAnalysisKind inferred = AliasAnalysisKind::CONSERVATIVE);
  Library& def_with_kernel(FunctionSchema schema, CppFunction f);
  Library& impl_kernel(std::string_view name, CppFunction f);
  Library& fallback_kernel(CppFunction f);
  OperatorName qualify(OperatorName name, const char* call) const;
  std::string place() const;

  Kind kind_;
  std::string ns_;  // "_" for any
  std::optional<DispatchKey> key_;
  const char* file_;
  uint32_t line_;
  bool names_must_exist_ = false;
  std::string python_module_;  // of the operators defined next
  std::vector<RegistrationHandleRAII> registrations_;
};

namespace impl {
/// Runs a registration block during static initialisation.
class LibraryInit {
 public:
  LibraryInit(Library::Kind kind, void (*fill)(Library&), const char* ns, std::optional<DispatchKey> key, const char* file, uint32_t line)
      : library_(kind, ns, key, file, line) {
    fill(library_);
  }

 private:
  Library library_;
};
}  // namespace impl

}  // namespace cresset

#define CRESSET_LIBRARY_BLOCK_(kind, ns, key, m, id)                                                              \
  static void CRESSET_CONCAT(cresset_library_fill_##ns##_, id)(::cresset::Library&);                              \
  static const ::cresset::impl::LibraryInit CRESSET_CONCAT(cresset_library_init_##ns##_, id)(                     \
      ::cresset::Library::kind, &CRESSET_CONCAT(cresset_library_fill_##ns##_, id), #ns, key, __FILE__, __LINE__); \
  void CRESSET_CONCAT(cresset_library_fill_##ns##_, id)(::cresset::Library & m)

/// Declares a namespace's operators; one block a namespace in a process.
#define CRESSET_LIBRARY(ns, m) CRESSET_LIBRARY_BLOCK_(DEF, ns, std::nullopt, m, __COUNTER__)
/// Adds to a namespace from anywhere.
#define CRESSET_LIBRARY_FRAGMENT(ns, m) CRESSET_LIBRARY_BLOCK_(FRAGMENT, ns, std::nullopt, m, __COUNTER__)
/// Kernels of one dispatch key.
#define CRESSET_LIBRARY_IMPL(ns, key, m) CRESSET_LIBRARY_BLOCK_(IMPL, ns, std::make_optional(::cresset::DispatchKey::key), m, __COUNTER__)
