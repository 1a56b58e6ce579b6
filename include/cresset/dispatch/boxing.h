// Between C++ signatures and the stack: for each parameter type its canonical form, how to take it from an IValue,
// its schema type, and the dispatch keys it contributes.
//
// Canonical parameter types make kernels that take `Tensor` and callers that pass `const Tensor&` agree: a typed entry
// point always has canonical parameters and converts for the kernel.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <typeinfo>
#include <vector>

#include <cresset/dispatch/function_schema.h>
#include <cresset/dispatch/ivalue.h>

namespace cresset {

class OperatorHandle;

/// Base of kernels with state; the first argument of every kernel entry point.
struct CRESSET_API OperatorKernel : intrusive_ptr_target {};

namespace impl {

template <class T>
inline constexpr bool always_false = false;

/// The type of a registered C++ class (cresset/dispatch/custom_class.h); raises for others.
CRESSET_API TypePtr custom_class_type(const std::type_info& type);

/// Owns what an unboxed argument points into. Default: a value converted by IValue::to.
template <class T>
struct Arg;  // members: canonical (type), schema_type(), static holder from(IValue&), get(holder), keys(const T&)

struct NoKeys {
  template <class T>
  static DispatchKeySet keys(const T&) {
    return {};
  }
};

#define CRESSET_VALUE_ARG(T, kind, getter)                              \
  template <>                                                           \
  struct Arg<T> : NoKeys {                                              \
    using canonical = T;                                                \
    static TypePtr schema_type() { return basic_type(TypeKind::kind); } \
    static T from(IValue& v) { return v.getter(); }                     \
    static T get(T& h) { return h; }                                    \
  }
CRESSET_VALUE_ARG(int64_t, Int, toInt);
CRESSET_VALUE_ARG(double, Float, toDouble);
CRESSET_VALUE_ARG(bool, Bool, toBool);
CRESSET_VALUE_ARG(std::string_view, String, toStringView);
CRESSET_VALUE_ARG(ScalarType, ScalarType, toScalarType);
CRESSET_VALUE_ARG(Layout, Layout, toLayout);
CRESSET_VALUE_ARG(MemoryFormat, MemoryFormat, toMemoryFormat);
CRESSET_VALUE_ARG(Device, Device, toDevice);
CRESSET_VALUE_ARG(Storage, Storage, toStorage);
CRESSET_VALUE_ARG(Stream, Stream, toStream);
CRESSET_VALUE_ARG(std::complex<double>, Complex, toComplexDouble);
#undef CRESSET_VALUE_ARG

template <>
struct Arg<SymInt> : NoKeys {
  using canonical = int64_t;
  static TypePtr schema_type() { return basic_type(TypeKind::Int); }
  static int64_t from(IValue& v) { return v.toInt(); }
  static int64_t get(int64_t h) { return h; }
};

template <>
struct Arg<Tensor> {
  using canonical = const Tensor&;
  static TypePtr schema_type() { return basic_type(TypeKind::Tensor); }
  static IValue* from(IValue& v) { return &v; }
  static const Tensor& get(IValue* h) { return h->isNone() ? none() : h->toTensor(); }
  static DispatchKeySet keys(const Tensor& t) { return t.key_set(); }
  CRESSET_API static const Tensor& none();
};
template <>
struct Arg<Tensor&> {
  using canonical = Tensor&;
  static TypePtr schema_type() { return basic_type(TypeKind::Tensor); }
  static IValue* from(IValue& v) { return &v; }
  static Tensor& get(IValue* h) { return h->toTensor(); }
  static DispatchKeySet keys(const Tensor& t) { return t.key_set(); }
};
template <>
struct Arg<Scalar> : NoKeys {
  using canonical = const Scalar&;
  static TypePtr schema_type() { return basic_type(TypeKind::Number); }
  static Scalar from(IValue& v) { return v.toScalar(); }
  static const Scalar& get(Scalar& h) { return h; }
};
template <>
struct Arg<Generator> {
  using canonical = const Generator&;
  static TypePtr schema_type() { return basic_type(TypeKind::Generator); }
  static Generator from(IValue& v) { return v.toGenerator(); }
  static const Generator& get(Generator& h) { return h; }
  static DispatchKeySet keys(const Generator& g) { return g.defined() ? g.key_set() : DispatchKeySet(); }
};
template <>
struct Arg<std::string> : NoKeys {
  using canonical = std::string_view;
  static TypePtr schema_type() { return basic_type(TypeKind::String); }
  static std::string from(IValue& v) { return v.toStringRef(); }
  static std::string_view get(std::string& h) { return h; }
};
template <>
struct Arg<IValue> : NoKeys {
  using canonical = const IValue&;
  static TypePtr schema_type() { return basic_type(TypeKind::Any); }
  static IValue* from(IValue& v) { return &v; }
  static const IValue& get(IValue* h) { return *h; }
};

// Optionals of values by value, of tensors, scalars and generators by reference.
template <class T>
struct Arg<std::optional<T>> {
  static constexpr bool by_reference = std::is_same_v<T, Tensor> || std::is_same_v<T, Scalar> || std::is_same_v<T, Generator>;
  using value =
      std::conditional_t<std::is_same_v<T, std::string>, std::string_view, std::conditional_t<std::is_same_v<T, SymInt>, int64_t, T>>;
  using canonical = std::conditional_t<by_reference, const std::optional<T>&, std::optional<value>>;
  static TypePtr schema_type() { return optional_of(Arg<T>::schema_type()); }
  static std::optional<value> from(IValue& v) {
    if (v.isNone()) return std::nullopt;
    if constexpr (std::is_same_v<T, Tensor>) {
      if (!v.toTensor().defined()) return std::nullopt;
      return v.toTensor();
    } else {
      return Arg<value>::from(v);
    }
  }
  static canonical get(std::optional<value>& h) { return h; }
  static DispatchKeySet keys(const std::optional<T>& v) { return v ? Arg<T>::keys(*v) : DispatchKeySet(); }
};
// Lists: the holder owns the elements, the kernel sees an ArrayRef.
template <class T>
struct Arg<ArrayRef<T>> {
  using canonical = ArrayRef<T>;
  using stored = std::conditional_t<std::is_arithmetic_v<T>, SmallVector<T, 8>, std::vector<T>>;
  static TypePtr schema_type() { return list_of(Arg<T>::schema_type()); }
  static stored from(IValue& v) {
    stored out;
    if constexpr (std::is_same_v<T, int64_t>) {
      if (v.isInt()) {
        out.push_back(v.toInt());
        return out;
      }
    }
    const std::vector<IValue>& elements = v.toListRef();
    out.reserve(elements.size());
    for (const IValue& e : elements) {
      if constexpr (std::is_same_v<T, Tensor>)
        out.push_back(e.isNone() ? Tensor() : e.toTensor());
      else if constexpr (auto element = Arg<T>::from(const_cast<IValue&>(e)); std::is_constructible_v<T, decltype(element)>)
        out.push_back(T(std::move(element)));
      else  // lists of lists
        out.push_back(T(element.begin(), element.end()));
    }
    return out;
  }
  static ArrayRef<T> get(stored& h) { return ArrayRef<T>(h.data(), h.size()); }
  static DispatchKeySet keys(ArrayRef<T> values) {
    DispatchKeySet ks;
    if constexpr (std::is_same_v<T, Tensor> || std::is_same_v<T, std::optional<Tensor>>)
      for (const T& v : values) ks |= Arg<T>::keys(v);
    return ks;
  }
};
template <class T>
struct Arg<std::optional<ArrayRef<T>>> : NoKeys {
  using canonical = std::optional<ArrayRef<T>>;
  using stored = std::optional<typename Arg<ArrayRef<T>>::stored>;
  static TypePtr schema_type() { return optional_of(list_of(Arg<T>::schema_type())); }
  static stored from(IValue& v) {
    if (v.isNone()) return std::nullopt;
    return Arg<ArrayRef<T>>::from(v);
  }
  static canonical get(stored& h) {
    if (!h) return std::nullopt;
    return ArrayRef<T>(h->data(), h->size());
  }
};
template <class T>
struct Arg<OptionalArrayRef<T>> : Arg<std::optional<ArrayRef<T>>> {
  using canonical = OptionalArrayRef<T>;
  static canonical get(typename Arg<std::optional<ArrayRef<T>>>::stored& h) {
    if (!h) return std::nullopt;
    return ArrayRef<T>(h->data(), h->size());
  }
};
template <class T>
struct Arg<std::vector<T>> : Arg<ArrayRef<T>> {};
template <>
struct Arg<SymIntArrayRef> : Arg<IntArrayRef> {};
template <>
struct Arg<OptionalSymIntArrayRef> : Arg<OptionalIntArrayRef> {};
template <>
struct Arg<std::optional<SymIntArrayRef>> : Arg<std::optional<IntArrayRef>> {};
template <class T>
struct Arg<std::optional<std::vector<T>>> : Arg<std::optional<ArrayRef<T>>> {};
// Lists and dicts are handed on by handle. Lists of optional tensors are what the built-in operators index with.
template <class T>
struct Arg<List<T>> : NoKeys {
  using canonical = List<T>;
  static TypePtr schema_type() { return list_of(Arg<T>::schema_type()); }
  static List<T> from(IValue& v) { return List<T>(intrusive_ptr<ivalue::ListImpl>::reclaim_copy(&v.toListImpl())); }
  static List<T> get(List<T>& h) { return h; }
  static DispatchKeySet keys(const List<T>& list) {
    DispatchKeySet ks;
    if constexpr (std::is_same_v<T, Tensor>)
      for (const IValue& v : list.impl()->elements) ks |= Arg<Tensor>::keys(v.toTensor());
    return ks;
  }
};
template <>
struct Arg<List<std::optional<Tensor>>> : Arg<ArrayRef<std::optional<Tensor>>> {};
template <class K, class V>
struct Arg<Dict<K, V>> : NoKeys {
  using canonical = Dict<K, V>;
  static TypePtr schema_type() { return dict_of(Arg<K>::schema_type(), Arg<V>::schema_type()); }
  static Dict<K, V> from(IValue& v) { return Dict<K, V>(intrusive_ptr<ivalue::DictImpl>::reclaim_copy(&v.toDictImpl())); }
  static Dict<K, V> get(Dict<K, V>& h) { return h; }
};
template <class K, class V>
struct Arg<std::unordered_map<K, V>> : NoKeys {
  using canonical = std::unordered_map<K, V>;
  static TypePtr schema_type() { return dict_of(Arg<K>::schema_type(), Arg<V>::schema_type()); }
  static canonical from(IValue& v) {
    canonical out;
    for (const auto& [k, x] : v.toDictImpl().items) out.emplace(k.template to<K>(), x.template to<V>());
    return out;
  }
  static canonical get(canonical& h) { return h; }
};
template <class... T>
struct Arg<std::tuple<T...>> : NoKeys {
  using canonical = std::tuple<T...>;
  static TypePtr schema_type() { return tuple_of({Arg<T>::schema_type()...}); }
  static canonical from(IValue& v) {
    const std::vector<IValue>& e = v.toTupleElements();
    CRESSET_CHECK(e.size() == sizeof...(T), "a tuple of ", sizeof...(T), " values was required; ", e.size(), " were given.");
    return
        [&]<std::size_t... I>(std::index_sequence<I...>) { return canonical(e[I].template to<T>()...); }(std::index_sequence_for<T...>());
  }
  static canonical get(canonical& h) { return h; }
};
template <class T, std::size_t N>
struct Arg<std::array<T, N>> : NoKeys {
  using canonical = std::array<T, N>;
  static TypePtr schema_type() { return list_of(Arg<T>::schema_type()); }
  static std::array<T, N> from(IValue& v) {
    const std::vector<IValue>& e = v.toListRef();
    CRESSET_CHECK(e.size() == N, "a list of ", N, " values was required; ", e.size(), " were given.");
    std::array<T, N> out;
    for (std::size_t i = 0; i < N; ++i) out[i] = Arg<T>::from(const_cast<IValue&>(e[i]));
    return out;
  }
  static std::array<T, N> get(std::array<T, N>& h) { return h; }
};
template <class T>
struct Arg<intrusive_ptr<T>> : NoKeys {
  using canonical = const intrusive_ptr<T>&;
  static TypePtr schema_type() { return custom_class_type(typeid(T)); }
  static intrusive_ptr<T> from(IValue& v) { return v.toCustomClass<T>(); }
  static const intrusive_ptr<T>& get(intrusive_ptr<T>& h) { return h; }
};

/// Arg of a parameter as written: references to const and values are the same thing, `Tensor&` is not.
template <class P>
using arg_of = Arg<std::conditional_t<std::is_same_v<P, Tensor&>, Tensor&, std::remove_cv_t<std::remove_reference_t<P>>>>;
template <class P>
constexpr void check_parameter_type() {
  using V = std::remove_cv_t<std::remove_reference_t<P>>;
  static_assert(!std::is_same_v<V, int> && !std::is_same_v<V, long long> && !std::is_same_v<V, unsigned>,
                "You tried to register a kernel with an unsupported integral input type. Please use int64_t instead.");
  static_assert(!std::is_same_v<V, float>,
                "You tried to register a kernel with an unsupported floating point input type. Please use double instead.");
  static_assert(!std::is_pointer_v<V>,
                "You tried to register a kernel with a pointer argument. Take `const Tensor&`, int64_t, double, bool, ArrayRef, "
                "std::optional or std::string_view.");
}
template <class P>
using canonical_t = typename arg_of<P>::canonical;

// Results that are spelled differently and mean the same: SymInt is int64_t, and `const Tensor&` (PyTorch's type of a few
// in-place operators, whose first argument is then const as well) is `Tensor&`.
template <class R>
struct CanonicalResult {
  using type = R;
};
template <>
struct CanonicalResult<SymInt> {
  using type = int64_t;
};
template <>
struct CanonicalResult<const Tensor&> {
  using type = Tensor&;
};
template <class... T>
struct CanonicalResult<std::tuple<T...>> {
  using type = std::tuple<typename CanonicalResult<T>::type...>;
};
template <class R>
using canonical_result_t = typename CanonicalResult<R>::type;
template <class... T>
struct TypeList {};
template <class R, class... A>
struct CanonicalParameters {
  using type = TypeList<canonical_t<A>...>;
};
template <class A0, class... A>
struct CanonicalParameters<const Tensor&, A0, A...> {
  using type = TypeList<std::conditional_t<std::is_same_v<canonical_t<A0>, const Tensor&>, Tensor&, canonical_t<A0>>, canonical_t<A>...>;
};
template <class R, class Parameters>
struct FunctionOf;
template <class R, class... P>
struct FunctionOf<R, TypeList<P...>> {
  using type = R(P...);
};

/// Passes a canonical argument on to a parameter written as P.
template <class P>
CRESSET_ALWAYS_INLINE decltype(auto) to_parameter(canonical_t<P>& a) {
  using V = std::remove_cv_t<std::remove_reference_t<P>>;
  using C = std::remove_cv_t<std::remove_reference_t<canonical_t<P>>>;
  if constexpr (std::is_same_v<P, Tensor&>)
    return static_cast<Tensor&>(a);
  else if constexpr (std::is_same_v<V, C> && std::is_reference_v<P>)
    return static_cast<const V&>(a);
  else if constexpr (std::is_same_v<V, C>)
    return V(a);
  else if constexpr (requires { V(a.begin(), a.end()); })
    return V(a.begin(), a.end());
  else if constexpr (std::is_same_v<V, List<std::optional<Tensor>>>)
    return V(a.begin(), a.end());
  else if constexpr (std::is_same_v<V, OptionalSymIntArrayRef>)
    return a ? V(SymIntArrayRef(*a)) : V();
  else if constexpr (requires { V(std::in_place, a->begin(), a->end()); })
    return a ? V(std::in_place, a->begin(), a->end()) : V();
  else if constexpr (std::is_same_v<V, std::optional<std::string>>)
    return a ? V(std::string(*a)) : V();
  else
    return V(a);
}

/// Puts an argument on the stack. Out of line: calls through the stack are rare, and there is one for each signature.
template <class T>
CRESSET_NOINLINE void push_argument(Stack& stack, const T& v) {
  stack.emplace_back(v);
}
extern template CRESSET_API void push_argument(Stack& stack, const Tensor& v);
extern template CRESSET_API void push_argument(Stack& stack, const Scalar& v);
extern template CRESSET_API void push_argument(Stack& stack, const int64_t& v);
extern template CRESSET_API void push_argument(Stack& stack, const double& v);
extern template CRESSET_API void push_argument(Stack& stack, const bool& v);
extern template CRESSET_API void push_argument(Stack& stack, const IntArrayRef& v);
extern template CRESSET_API void push_argument(Stack& stack, const TensorList& v);
extern template CRESSET_API void push_argument(Stack& stack, const std::optional<Tensor>& v);
extern template CRESSET_API void push_argument(Stack& stack, const std::optional<int64_t>& v);
extern template CRESSET_API void push_argument(Stack& stack, const std::optional<bool>& v);
extern template CRESSET_API void push_argument(Stack& stack, const std::optional<ScalarType>& v);
extern template CRESSET_API void push_argument(Stack& stack, const std::optional<Layout>& v);
extern template CRESSET_API void push_argument(Stack& stack, const std::optional<Device>& v);
extern template CRESSET_API void push_argument(Stack& stack, const std::optional<MemoryFormat>& v);

// Returns.
template <class T>
struct Ret {
  static void push(Stack& s, T&& v) { s.push_back(IValue(std::move(v))); }
  static T pop_from(IValue& v) {
    using A = Arg<T>;
    auto h = A::from(v);
    return T(A::get(h));
  }
  static std::vector<TypePtr> types() { return {Arg<T>::schema_type()}; }
};
template <>
struct Ret<Tensor> {
  CRESSET_API static void push(Stack& s, Tensor&& v);
  CRESSET_API static Tensor pop_from(IValue& v);
  static std::vector<TypePtr> types() { return {basic_type(TypeKind::Tensor)}; }
};
template <>
struct Ret<Scalar> {
  static void push(Stack& s, Scalar&& v) { s.emplace_back(v); }
  static Scalar pop_from(IValue& v) { return v.toScalar(); }
  static std::vector<TypePtr> types() { return {basic_type(TypeKind::Number)}; }
};
template <class T>
struct Ret<std::vector<T>> {
  static void push(Stack& s, std::vector<T>&& v) { s.emplace_back(v); }
  static std::vector<T> pop_from(IValue& v) {
    auto h = Arg<ArrayRef<T>>::from(v);
    return std::vector<T>(h.begin(), h.end());
  }
  static std::vector<TypePtr> types() { return {list_of(Arg<T>::schema_type())}; }
};
template <class... T>
struct Ret<std::tuple<T...>> {
  static void push(Stack& s, std::tuple<T...>&& v) {
    std::apply([&](auto&&... x) { (Ret<std::remove_reference_t<decltype(x)>>::push(s, std::move(x)), ...); }, std::move(v));
  }
  static std::vector<TypePtr> types() {
    std::vector<TypePtr> out;
    (out.push_back(Ret<std::remove_reference_t<T>>::types().at(0)), ...);
    return out;
  }
};

/// A function type without its DispatchKeySet parameter, split into result and parameters.
template <class R, class... A>
struct Signature {
  using result = R;
  using parameters = std::tuple<A...>;
  using canonical_parameters = typename CanonicalParameters<R, A...>::type;
  using canonical_function = typename FunctionOf<canonical_result_t<R>, canonical_parameters>::type;
  static constexpr std::size_t arity = sizeof...(A);
};
template <class F>
struct signature_of;
template <class R, class... A>
struct signature_of<R(A...)> {
  using type = Signature<R, A...>;
  static constexpr bool takes_keys = false;
};
template <class R, class... A>
struct signature_of<R(DispatchKeySet, A...)> {
  using type = Signature<R, A...>;
  static constexpr bool takes_keys = true;
};
template <class F>
struct function_type_of : function_type_of<decltype(&F::operator())> {};
template <class R, class... A>
struct function_type_of<R(A...)> {
  using type = R(A...);
};
template <class R, class... A>
struct function_type_of<R (*)(A...)> {
  using type = R(A...);
};
template <class C, class R, class... A>
struct function_type_of<R (C::*)(A...)> {
  using type = R(A...);
};
template <class C, class R, class... A>
struct function_type_of<R (C::*)(A...) const> {
  using type = R(A...);
};

/// The schema a C++ signature implies: arguments and returns named _0, _1, …
CRESSET_API FunctionSchema make_inferred_schema(std::vector<TypePtr> arguments, std::vector<TypePtr> returns);
template <class R, class... A>
FunctionSchema infer_schema(Signature<R, A...>*) {
  std::vector<TypePtr> returns;
  if constexpr (!std::is_void_v<R>) returns = Ret<std::remove_cv_t<std::remove_reference_t<R>>>::types();
  return make_inferred_schema({arg_of<A>::schema_type()...}, std::move(returns));
}

/// A kernel's result as a value; references to mutable arguments become tensors of their own.
template <class R>
auto own_result(R&& r) {
  return std::remove_cv_t<std::remove_reference_t<R>>(std::forward<R>(r));
}
template <class... T>
auto own_result(std::tuple<T&...>&& r) {
  return std::tuple<std::remove_const_t<T>...>(r);
}

/// Pushes a kernel's result; references to a mutable argument are pushed as that tensor.
template <class R>
void push_result(Stack& stack, R&& r) {
  using V = std::remove_cv_t<std::remove_reference_t<R>>;
  Ret<V>::push(stack, V(std::forward<R>(r)));
}
template <class... T>
void push_result(Stack& stack, std::tuple<T&...>&& r) {
  std::apply([&](auto&... x) { (Ret<Tensor>::push(stack, Tensor(x)), ...); }, r);
}

}  // namespace impl

template <class T>
T IValue::to() const {
  if constexpr (std::is_same_v<T, IValue>) {
    return *this;
  } else if constexpr (std::is_same_v<T, bool> || std::is_same_v<T, int64_t> || std::is_same_v<T, double>) {
    return impl::Arg<T>::from(const_cast<IValue&>(*this));
  } else if constexpr (std::is_integral_v<T>) {
    return static_cast<T>(toInt());
  } else if constexpr (std::is_same_v<T, float>) {
    return static_cast<float>(toDouble());
  } else {
    auto holder = impl::Arg<T>::from(const_cast<IValue&>(*this));
    using V = impl::canonical_t<T>;
    V value = impl::Arg<T>::get(holder);
    return T(impl::to_parameter<T>(value));
  }
}

}  // namespace cresset
