// torch/script.h: scripts and their graphs as C++ sees them.
#pragma once

#include <atomic>
#include <deque>    // programs use it without an include, as behind PyTorch's header
#include <fstream>  // likewise

#include <cresset_compat/serialize.h>
#include <cresset_compat/symbols.h>
#include <cresset_compat/torch.h>

#include <cresset/ir/archive.h>
#include <cresset/ir/error_report.h>
#include <cresset/ir/graph_executor.h>
#include <cresset/ir/module.h>
#include <cresset/ir/register_operators.h>
#include <cresset/ir/tracer.h>

namespace cresset {
/// The type with nothing known of the tensors in it. Here, so that programs find it by the type of its argument.
inline TypePtr unshapedType(const TypePtr& type) { return jit::tracer::without_shapes(type); }
}  // namespace cresset
namespace c10 {
using cresset::unshapedType;
using cresset::jit::ClassAttribute;
}  // namespace c10
namespace torch {
namespace jit {

/// For how many sets of sizes a fuser may compile: none, whatever is asked for.
enum class FusionBehavior : uint8_t { STATIC, DYNAMIC };
using FusionStrategy = std::vector<std::pair<FusionBehavior, std::size_t>>;
inline FusionStrategy getFusionStrategy() { return {}; }
inline FusionStrategy setFusionStrategy(FusionStrategy& /*strategy*/) { return {}; }
namespace detail {
inline std::atomic<bool> optimizes_graphs{true};
}
/// Kept for who asks: graphs run through the same passes either way, and none of them changes an answer.
inline void setGraphExecutorOptimize(bool on) { detail::optimizes_graphs = on; }
inline bool getGraphExecutorOptimize() { return detail::optimizes_graphs; }

/// Which executor runs a graph and whether it looks at what runs: there is one, so that programs may say either.
inline std::atomic<bool>& getExecutorMode() {
  static std::atomic<bool> mode{true};
  return mode;
}
inline std::atomic<bool>& getProfilingMode() {
  static std::atomic<bool> mode{true};
  return mode;
}

// ir.h
using cresset::jit::Attribute;
using cresset::jit::AttributeKind;
/// The types of an attribute's value by its kind. Attributes themselves are variants here.
template <AttributeKind kind>
struct AttributeTypes {
  using ValueType = std::variant_alternative_t<static_cast<std::size_t>(kind), cresset::jit::AttributeValue>;
  using ConstructorType = ValueType;
};
using FloatAttr = AttributeTypes<AttributeKind::f>;
using FloatsAttr = AttributeTypes<AttributeKind::fs>;
using ComplexAttr = AttributeTypes<AttributeKind::c>;
using ComplexValsAttr = AttributeTypes<AttributeKind::cs>;
using IntAttr = AttributeTypes<AttributeKind::i>;
using IntsAttr = AttributeTypes<AttributeKind::is>;
using StringAttr = AttributeTypes<AttributeKind::s>;
using StringsAttr = AttributeTypes<AttributeKind::ss>;
using TensorAttr = AttributeTypes<AttributeKind::t>;
using TensorsAttr = AttributeTypes<AttributeKind::ts>;
using GraphAttr = AttributeTypes<AttributeKind::g>;
using GraphsAttr = AttributeTypes<AttributeKind::gs>;
using TypeAttr = AttributeTypes<AttributeKind::ty>;
using TypesAttr = AttributeTypes<AttributeKind::tys>;
using IValueAttr = AttributeTypes<AttributeKind::ival>;
using cresset::jit::AttributeValue;
using cresset::jit::const_graph_node_list;
using cresset::jit::constant_as;
using cresset::jit::createTupleUnpack;
using cresset::jit::graph_node_list;
using cresset::jit::graph_node_list_iterator;
using cresset::jit::InlinedCallStack;
using cresset::jit::InlinedCallStackPtr;
using cresset::jit::inlineGraph;
using cresset::jit::insertConstant;
using cresset::jit::insertGraph;
using cresset::jit::isConstantValue;
using cresset::jit::LintGraph;
using cresset::jit::NamedValue;
using cresset::jit::Scope;
using cresset::jit::ScopePtr;
using cresset::jit::toIValue;
using cresset::jit::toString;
using cresset::jit::tryInsertConstant;
using cresset::jit::Use;
using cresset::jit::WithCurrentScope;
using cresset::jit::WithInsertPoint;
using node_list = std::vector<Node*>;
using NodeKind = c10::Symbol;
using pyobj_list = std::vector<void*>;
using topo_position_t = int64_t;
using use_list = std::vector<Use>;
using value_list = std::vector<Value*>;
using ValueSet = std::unordered_set<const Value*>;
// operator.h and function_schema_parser.h, which ir.h includes
using cresset::jit::canonicalSchemaString;
using cresset::jit::findOperatorFor;
using cresset::jit::findSimilarOperators;
using cresset::jit::getAllOperators;
using cresset::jit::getAllOperatorsFor;
using cresset::jit::getOperatorForLiteral;
using cresset::jit::Operation;
using cresset::jit::OperatorMap;
using cresset::jit::OperatorSet;
using cresset::jit::registerOperator;
using cresset::jit::RegisterOperators;
inline c10::FunctionSchema parseSchema(const std::string& text) { return cresset::parse_schema(text); }
inline c10::OperatorName parseName(const std::string& text) { return cresset::parse_operator_name(text); }
inline std::variant<c10::OperatorName, c10::FunctionSchema> parseSchemaOrName(const std::string& text) {
  return cresset::parse_schema_or_name(text);
}
/// Graphs of functions keep their calls, for Inline() to put in: the switch is off, and turning it on raises.
struct InlineEverythingMode {
  operator bool() const { return false; }
  InlineEverythingMode& operator=(bool on) {
    TORCH_CHECK(!on, "getInlineEverythingMode: graphs keep their calls; say Inline(graph) where they should not.");
    return *this;
  }
};
inline InlineEverythingMode& getInlineEverythingMode() {
  static InlineEverythingMode mode;
  return mode;
}
// error_report.h, source_range.h
using cresset::jit::ErrorReport;
using cresset::jit::Source;
// function.h, module.h
using cresset::jit::BuiltinOpFunction;
using cresset::jit::call_method;
using cresset::jit::compile;
using cresset::jit::freeze;
using cresset::jit::Kwargs;
using cresset::jit::ModulePtr;
using cresset::jit::NameValue;
using cresset::jit::nativeResolver;
using cresset::jit::ObjectPtr;
using cresset::jit::optimize_for_inference;
using cresset::jit::Self;
using cresset::jit::SimpleSelf;
using TaskLauncher = cresset::jit::TaskLauncher;
using cresset::jit::toGraphFunction;
using cresset::jit::tryToGraphFunction;
template <class T>
using Named = NameValue<T>;
using NameModule = NameValue<Module>;
using NameTensor = NameValue<at::Tensor>;
using StrongFunctionPtr = cresset::intrusive_ptr<Function>;
// class_type.h
using cresset::jit::ClassAttribute;
// archive.h
using cresset::jit::code_of;
using cresset::jit::code_with_constants;
using cresset::jit::extra_file_names;
using cresset::jit::ExtraFilesMap;
using cresset::jit::load;
using cresset::jit::load_from_buffer;
using cresset::jit::pickle;
using cresset::jit::pickle_load;
using cresset::jit::pickle_save;
using cresset::jit::readArchiveAndTensors;
using cresset::jit::save;
using cresset::jit::StackEntry;
using cresset::jit::unpickle;
// graph_executor.h, interpreter.h
using cresset::jit::GraphExecutor;
using cresset::jit::InterpreterState;
using cresset::jit::launch;
using cresset::jit::PrintHandler;
using cresset::jit::run_graph;
using cresset::jit::ScriptException;
using cresset::jit::set_print_handler;
using cresset::jit::wait;
using JITException = ScriptException;
using cresset::jit::getCustomClass;
// tensors' and stacks' helpers
using cresset::jit::drop;
using cresset::jit::last;
using cresset::jit::pack;
using cresset::jit::peek;
using cresset::jit::pop;
using cresset::jit::push;
/// Takes the last values, one for each argument, and gives them their types.
template <class... A>
  requires(sizeof...(A) > 0)
void pop(c10::Stack& stack, A&... values) {
  std::size_t i = 0;
  ((values = std::move(peek(stack, i++, sizeof...(A))).template to<A>()), ...);
  drop(stack, sizeof...(A));
}
// cresset's own spellings
using cresset::jit::new_object;
using cresset::jit::parse_type_expression;
using cresset::jit::TypeResolver;

namespace script {
using torch::jit::ExtraFilesMap;
using torch::jit::load;
}  // namespace script
}  // namespace jit
}  // namespace torch
