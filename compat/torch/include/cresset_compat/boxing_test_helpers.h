// ATen/core/boxing/impl/test_helpers.h: calls of operators in tests, with a stack or without.
#pragma once

#if __has_include(<gmock/gmock.h>)
#include <gmock/gmock.h>
#endif
#if __has_include(<gtest/gtest.h>)
#include <gtest/gtest.h>
#endif

#include <cresset_compat/library.h>

template <class... A>
std::vector<c10::IValue> makeStack(A&&... arguments) {
  return {c10::IValue(std::forward<A>(arguments))...};
}
template <class... A>
std::vector<c10::IValue> callOp(const c10::OperatorHandle& op, A... arguments) {
  auto stack = makeStack(std::forward<A>(arguments)...);
  op.callBoxed(&stack);
  return stack;
}
template <class Result, class... A>
Result callOpUnboxed(const c10::OperatorHandle& op, A... arguments) {
  return op.typed<Result(A...)>().call(std::forward<A>(arguments)...);
}
