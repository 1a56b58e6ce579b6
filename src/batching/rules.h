// The boxed rules, one for each class of operators.
#pragma once

#include "batching/batch_call.h"
#include "batching/rule_table.h"

namespace cresset::batching {

void pointwise_rule(BatchCall& call);
void dim_rule(BatchCall& call);
void full_rule(BatchCall& call);
/// `least`: the fewest dimensions that an example needs; one with fewer is refused in the operator's own words.
void leading_rule(BatchCall& call, int64_t least);
void broadcast_rule(BatchCall& call, int64_t least);
void fold_rule(BatchCall& call, int64_t inner);

/// In place: the functional form's result is copied into self.
void functional_rule(BatchCall& call);
/// One example after another; the results are stacked. Says once for each operator that it is slow.
void loop_rule(BatchCall& call);

}  // namespace cresset::batching
