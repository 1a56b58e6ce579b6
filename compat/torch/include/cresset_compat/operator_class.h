// at::_ops::NAME_OVERLOAD: an operator as a class, with its signature, its names, and the two ways to call it.
#pragma once
#include <cresset/dispatch/dispatcher.h>

#include <cresset_compat/namespaces.h>

namespace cresset_compat {

/// Base of an operator's class; `redispatch` is Cresset's function.
template <class Class, auto* redispatch_function>
struct Operator;
template <class Class, class R, class... A, R (*redispatch_function)(cresset::DispatchKeySet, A...)>
struct Operator<Class, redispatch_function> {
  using schema = R(A...);
  using ptr_schema = schema*;
  using return_type = schema;
  static R call(A... arguments) {
    static const auto op = cresset::Dispatcher::singleton().findSchemaOrThrow(Class::name, Class::overload_name).template typed<schema>();
    return op.call(std::forward<A>(arguments)...);
  }
  static R redispatch(cresset::DispatchKeySet keys, A... arguments) { return redispatch_function(keys, std::forward<A>(arguments)...); }
};

}  // namespace cresset_compat

#define CRESSET_COMPAT_OPERATOR_(ident, full_name, overload, text)                  \
  struct ident : ::cresset_compat::Operator<ident, &::cresset::redispatch::ident> { \
    static constexpr const char* name = full_name;                                  \
    static constexpr const char* overload_name = overload;                          \
    static constexpr const char* schema_str = text;                                 \
  };
#define ATEN_FN(op_name) at::_ops::op_name::call
#define ATEN_FN2(op_name, overload) at::_ops::op_name##_##overload::call
#define ATEN_OP(op_name) at::_ops::op_name
#define ATEN_OP2(op_name, overload) at::_ops::op_name##_##overload
