// Operators whose alias kind says one thing and whose schema marks say another: registered without a word, refused by alias analysis.
#pragma once

#include <cresset/ir/operator.h>

namespace cresset::jit {

/// Does the schema have marks that the kind says nothing of?
inline bool contradict(AliasAnalysisKind kind, const FunctionSchema& schema) {
  return (kind == AliasAnalysisKind::PURE_FUNCTION || kind == AliasAnalysisKind::CONSERVATIVE) && schema.hasAnyAliasInfo();
}
/// Is there any such operator in the process? Graphs are looked through for them only where there is.
bool some_alias_kinds_contradict();

}  // namespace cresset::jit
