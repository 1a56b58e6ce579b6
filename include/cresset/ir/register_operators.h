// RegisterOperators with operators of graphs: a schema and a function on the stack.
//
//   static RegisterOperators registry({Operator("demo::id(Tensor x) -> Tensor", [](Stack&) {}, AliasAnalysisKind::FROM_SCHEMA)});
#pragma once

#include <cresset/dispatch/register_operators.h>
#include <cresset/ir/operator.h>

namespace cresset::jit {

/// Operators for as long as it lives, in any of the forms of cresset::RegisterOperators or of Operator objects. They are the dispatcher's.
class RegisterOperators : public cresset::RegisterOperators {
 public:
  using cresset::RegisterOperators::RegisterOperators;
  RegisterOperators() = default;
  RegisterOperators(cresset::RegisterOperators&& others) : cresset::RegisterOperators(std::move(others)) {}
  CRESSET_API explicit RegisterOperators(std::vector<Operator> operators);
  explicit RegisterOperators(std::initializer_list<Operator> operators) : RegisterOperators(std::vector<Operator>(operators)) {}
  /// Those that are there.
  CRESSET_API explicit RegisterOperators(std::initializer_list<std::optional<Operator>> operators);

 private:
  std::vector<Library> blocks_;
  std::vector<std::shared_ptr<const Operator>> of_nodes_;  // those that make operations for nodes
};

/// One operator for as long as the process lives.
inline void registerOperator(Operator op) {
  std::vector<Operator> one;
  one.push_back(std::move(op));
  new RegisterOperators(std::move(one));
}

}  // namespace cresset::jit
