// Functions inside functions, as the code of archives has them: `def __forked_function():` in front of `fork(__forked_function)`.
#pragma once

#include "ir/frontend/environment.h"
#include "ir/frontend/tree.h"

namespace cresset::jit {

/// Only functions of archives; the language has no others.
bool is_closure(const FunctionDefinition& f);
/// What the name of the function means; it keeps what its body uses from around it.
SugaredValuePtr closure_value(const std::shared_ptr<const FunctionDefinition>& f, Environment& around, const ResolverPtr& resolver,
                              GraphFunction& m);

}  // namespace cresset::jit
