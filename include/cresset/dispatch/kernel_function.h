// KernelFunction: one kernel, callable boxed and unboxed whichever way it was made.
#pragma once

#include <typeindex>

#include <cresset/dispatch/boxing.h>

namespace cresset {

/// The C++ signature of a kernel or handle in canonical form, for checking that both agree.
class CppSignature {
 public:
  template <class F>
  static CppSignature make() {
    using Function = typename impl::signature_of<typename impl::function_type_of<F>::type>::type::canonical_function;
    return CppSignature(typeid(Function));
  }
  /// From the canonical function type.
  explicit CppSignature(std::type_index function) : index_(function) {}
  CRESSET_API std::string name() const;
  friend bool operator==(const CppSignature& a, const CppSignature& b) { return a.index_ == b.index_; }

 private:
  std::type_index index_;
};

/// Compile-time function: CRESSET_FN(f) lets the compiler inline f into its entry point.
template <auto* F>
struct FunctionConstant {
  using type = std::remove_pointer_t<decltype(F)>;
  static constexpr auto* value = F;
};
#define CRESSET_FN(f) ::cresset::FunctionConstant<(&f)>()

/// The entry points of one kernel. Both take the functor; the unboxed one has canonical parameters. The boxed one is given the
/// unboxed one as well, so that all kernels of one signature share it (impl::BoxedCall).
class CRESSET_API KernelFunction {
 public:
  using BoxedEntry = void (*)(OperatorKernel*, const OperatorHandle&, DispatchKeySet, Stack*, void* unboxed);
  using BoxedKernelFunction = void(const OperatorHandle&, Stack*);
  using BoxedKernelFunctionWithKeys = void(const OperatorHandle&, DispatchKeySet, Stack*);
  enum class Kind : uint8_t { Missing, Normal, Fallthrough, AmbiguousAutogradOther };

  KernelFunction() = default;
  bool isValid() const { return boxed_ != nullptr; }
  bool isValidUnboxed() const { return unboxed_ != nullptr; }
  bool isFallthrough() const { return kind_ == Kind::Fallthrough; }
  Kind kind() const { return kind_; }
  /// Do both run the same code with the same functor?
  friend bool operator==(const KernelFunction& a, const KernelFunction& b) {
    return a.boxed_ == b.boxed_ && a.unboxed_ == b.unboxed_ && a.functor_.get() == b.functor_.get() && a.kind_ == b.kind_;
  }

  void callBoxed(const OperatorHandle& op, DispatchKeySet ks, Stack* stack) const { boxed_(functor_.get(), op, ks, stack, unboxed_); }
  template <class R, class... A>
  CRESSET_ALWAYS_INLINE R call(const OperatorHandle& op, DispatchKeySet ks, A... args) const {
    if (CRESSET_LIKELY(unboxed_ != nullptr)) {
      using Entry = R (*)(OperatorKernel*, DispatchKeySet, A...);
      return reinterpret_cast<Entry>(unboxed_)(functor_.get(), ks, std::forward<A>(args)...);
    }
    return call_through_stack<R, A...>(op, ks, std::forward<A>(args)...);
  }

  template <auto* F>
  static KernelFunction makeFromUnboxedFunction(FunctionConstant<F>);
  /// From a function pointer or a lambda or functor.
  template <class F>
  static KernelFunction makeFromUnboxed(F f);
  template <BoxedKernelFunction* F>
  static KernelFunction makeFromBoxedFunction() {
    return KernelFunction([](OperatorKernel*, const OperatorHandle& op, DispatchKeySet, Stack* s, void*) { F(op, s); }, nullptr, nullptr);
  }
  template <BoxedKernelFunctionWithKeys* F>
  static KernelFunction makeFromBoxedFunction() {
    return KernelFunction([](OperatorKernel*, const OperatorHandle& op, DispatchKeySet ks, Stack* s, void*) { F(op, ks, s); }, nullptr,
                          nullptr);
  }
  /// From an object with operator()(const OperatorHandle&, DispatchKeySet, Stack*).
  template <class F>
  static KernelFunction makeFromBoxedFunctor(intrusive_ptr<F> f) {
    return KernelFunction(
        [](OperatorKernel* k, const OperatorHandle& op, DispatchKeySet ks, Stack* s, void*) { (*static_cast<F*>(k))(op, ks, s); }, nullptr,
        std::move(f));
  }
  /// From the two entry points as they are.
  static KernelFunction makeFromEntries(BoxedEntry boxed, void* unboxed, intrusive_ptr<OperatorKernel> functor = nullptr) {
    return KernelFunction(boxed, unboxed, std::move(functor));
  }
  static KernelFunction makeFallthrough();
  static KernelFunction makeAmbiguousAutogradOther();
  static KernelFunction makeMissing();
  /// This kernel behind an adapter that accepts calls of a schema with more, defaulted arguments.
  KernelFunction adapt_to_longer_schema(std::size_t own_arity) const;

 private:
  KernelFunction(BoxedEntry boxed, void* unboxed, intrusive_ptr<OperatorKernel> functor, Kind kind = Kind::Normal)
      : boxed_(boxed), unboxed_(unboxed), functor_(std::move(functor)), kind_(kind) {}
  template <class R, class... A>
  CRESSET_NOINLINE R call_through_stack(const OperatorHandle& op, DispatchKeySet ks, A... args) const;

  BoxedEntry boxed_ = nullptr;
  void* unboxed_ = nullptr;
  intrusive_ptr<OperatorKernel> functor_;
  Kind kind_ = Kind::Missing;
};

namespace impl {

/// Raises when a boxed kernel left another number of results.
CRESSET_API void check_results(const Stack& stack, std::size_t expected);

using PushArgument = void (*)(Stack& stack, const void* argument);
template <class T>
void push_erased(Stack& stack, const void* argument) {
  push_argument(stack, *static_cast<const std::remove_const_t<T>*>(argument));
}
/// A call of a boxed kernel with unboxed arguments, of which the code that differs by signature knows only how to push each.
struct CRESSET_API StackCall {
  StackCall(const KernelFunction& kernel, const OperatorHandle& op, DispatchKeySet ks, const PushArgument* push, const void* const* values,
            std::size_t count);
  ~StackCall();
  Stack stack;  // the results
};

/// A functor kept alive by the kernel.
template <class F>
struct FunctorHolder final : OperatorKernel {
  explicit FunctorHolder(F f) : f(std::move(f)) {}
  F f;
};

/// What an unboxed argument points into, for as long as the call that it is made in.
template <class P>
struct Held {
  explicit Held(IValue& v) : holder(arg_of<P>::from(v)) {}
  canonical_t<P> get() { return arg_of<P>::get(holder); }
  decltype(arg_of<P>::from(std::declval<IValue&>())) holder;
};

/// The boxed form of any kernel with these canonical parameters; shared by all kernels of one signature.
template <class R, class... C>
struct BoxedCall {
  using Unboxed = R (*)(OperatorKernel*, DispatchKeySet, C...);
  static void run(OperatorKernel* k, const OperatorHandle&, DispatchKeySet ks, Stack* stack, void* unboxed) {
    run_indexed(reinterpret_cast<Unboxed>(unboxed), k, ks, *stack, std::index_sequence_for<C...>());
  }

 private:
  template <std::size_t... I>
  static CRESSET_ALWAYS_INLINE void run_indexed(Unboxed kernel, OperatorKernel* k, DispatchKeySet ks, Stack& stack,
                                                std::index_sequence<I...>) {
    [[maybe_unused]] IValue* args = stack.data() + (stack.size() - sizeof...(C));
    if constexpr (std::is_void_v<R>) {
      kernel(k, ks, Held<C>(args[I]).get()...);
      drop(stack, sizeof...(C));
    } else {
      // Results may refer to arguments: they become values before the arguments go.
      auto results = own_result(kernel(k, ks, Held<C>(args[I]).get()...));
      drop(stack, sizeof...(C));
      push_result(stack, std::move(results));
    }
  }
};

// Entry points. Callee::invoke(kernel, ks, parameters...) runs the user's function.
template <class Callee, class Sig>
struct Entries;
template <class Callee, class R, class Written, class Canonical>
struct CanonicalEntries;
template <class Callee, class R, class... A, class... C>
struct CanonicalEntries<Callee, R, TypeList<A...>, TypeList<C...>> {
  using Result = canonical_result_t<R>;
  static Result unboxed(OperatorKernel* k, DispatchKeySet ks, C... args) {
    if constexpr (std::is_same_v<R, const Tensor&>)
      return const_cast<Tensor&>(Callee::invoke(k, ks, to_parameter<A>(args)...));
    else
      return Callee::invoke(k, ks, to_parameter<A>(args)...);
  }
  static constexpr KernelFunction::BoxedEntry boxed = &BoxedCall<Result, C...>::run;
};
template <class Callee, class R, class... A>
struct Entries<Callee, Signature<R, A...>> : CanonicalEntries<Callee, R, TypeList<A...>, typename CanonicalParameters<R, A...>::type> {};

template <auto* F, bool TakesKeys>
struct ConstantCallee {
  template <class... P>
  CRESSET_ALWAYS_INLINE static decltype(auto) invoke(OperatorKernel*, [[maybe_unused]] DispatchKeySet ks, P&&... p) {
    if constexpr (TakesKeys)
      return F(ks, std::forward<P>(p)...);
    else
      return F(std::forward<P>(p)...);
  }
};
template <class F, bool TakesKeys>
struct HolderCallee {
  template <class... P>
  CRESSET_ALWAYS_INLINE static decltype(auto) invoke(OperatorKernel* k, [[maybe_unused]] DispatchKeySet ks, P&&... p) {
    F& f = static_cast<FunctorHolder<F>*>(k)->f;
    if constexpr (TakesKeys)
      return f(ks, std::forward<P>(p)...);
    else
      return f(std::forward<P>(p)...);
  }
};

template <class R, class... A>
constexpr void check_signature(Signature<R, A...>*) {
  (check_parameter_type<A>(), ...);
}

}  // namespace impl

template <auto* F>
KernelFunction KernelFunction::makeFromUnboxedFunction(FunctionConstant<F>) {
  using S = impl::signature_of<std::remove_pointer_t<decltype(F)>>;
  impl::check_signature(static_cast<typename S::type*>(nullptr));
  using E = impl::Entries<impl::ConstantCallee<F, S::takes_keys>, typename S::type>;
  return KernelFunction(E::boxed, reinterpret_cast<void*>(&E::unboxed), nullptr);
}

template <class F>
KernelFunction KernelFunction::makeFromUnboxed(F f) {
  using S = impl::signature_of<typename impl::function_type_of<F>::type>;
  impl::check_signature(static_cast<typename S::type*>(nullptr));
  using E = impl::Entries<impl::HolderCallee<F, S::takes_keys>, typename S::type>;
  return KernelFunction(E::boxed, reinterpret_cast<void*>(&E::unboxed), make_intrusive<impl::FunctorHolder<F>>(std::move(f)));
}

template <class R, class... A>
R KernelFunction::call_through_stack(const OperatorHandle& op, DispatchKeySet ks, A... args) const {
  static constexpr impl::PushArgument push[] = {&impl::push_erased<std::remove_reference_t<A>>..., nullptr};
  const void* const values[] = {&args..., nullptr};
  impl::StackCall call(*this, op, ks, push, values, sizeof...(A));
  Stack& stack = call.stack;
  if constexpr (std::is_void_v<R>) {
    return;
  } else if constexpr (std::is_same_v<R, Tensor&>) {
    // By the schema rules the result is the (only or last) mutable argument.
    Tensor* target = nullptr;
    (
        [&] {
          if constexpr (std::is_same_v<A, Tensor&>) target = &args;
        }(),
        ...);
    CRESSET_INTERNAL_ASSERT(target != nullptr);
    return *target;
  } else if constexpr (std::is_same_v<R, const Tensor&>) {
    static_assert(impl::always_false<R>, "kernels return Tensor or Tensor&");
  } else if constexpr (requires { std::tuple_size<R>::value; }) {
    impl::check_results(stack, std::tuple_size_v<R>);
    std::array<Tensor*, sizeof...(A) + 1> targets{};
    std::size_t n = 0;
    (
        [&] {
          if constexpr (std::is_same_v<A, Tensor&>) targets[n++] = &args;
        }(),
        ...);
    return [&]<std::size_t... I>(std::index_sequence<I...>) {
      return R(([&]() -> std::tuple_element_t<I, R> {
        using E = std::tuple_element_t<I, R>;
        if constexpr (std::is_same_v<E, Tensor&>)
          return *targets[n - std::tuple_size_v<R> + I];
        else
          return impl::Ret<E>::pop_from(stack[I]);
      })()...);
    }(std::make_index_sequence<std::tuple_size_v<R>>());
  } else {
    impl::check_results(stack, 1);
    return impl::Ret<R>::pop_from(stack[0]);
  }
}

}  // namespace cresset
