// Tracing: a function runs on example inputs while every dispatched operator is recorded as a node of a graph.
//
// The key Tracer is in the thread's included set exactly while a trace records, so that nothing else pays. A map from the identity of
// tensors to values of the graph supplies operands; tensors that it does not know become constants. Sizes may be had as tensors without
// dimensions that the map knows (traced_size): arithmetic on them is recorded, and where one becomes a number on its way to an operator,
// the bindings say so (stash), and the operand is `aten::Int` of it.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include <cresset/core/dispatch_key_set.h>
#include <cresset/dispatch/dispatcher.h>
#include <cresset/ir/class_type.h>
#include <cresset/ir/function.h>

namespace cresset::jit::tracer {

/// Does this thread record operators now? Not inside of a recorded operator.
inline bool is_tracing() {
  const LocalDispatchKeySet keys = impl::tls_local_dispatch_key_set();
  return keys.included.has(DispatchKey::Tracer) && !keys.excluded.has(DispatchKey::Tracer);
}

/// The names of attributes from the traced module down: {"layer1", "0", "weight"}.
using AttributePath = std::vector<std::string>;

/// One trace while it runs.
class CRESSET_API TracingState {
 public:
  /// `self`: the object whose method is traced, null for functions.
  explicit TracingState(intrusive_ptr<ivalue::Object> self = nullptr);
  ~TracingState();
  TracingState(const TracingState&) = delete;

  const std::shared_ptr<Graph> graph;
  bool is_method() const { return static_cast<bool>(self_); }
  /// An input of the graph. Containers are taken apart; gives the input back with new identities where a tensor was met before. Raises for
  /// values other than tensors and tuples, lists and dictionaries of them.
  IValue add_input(const std::string& name, IValue v);
  /// An output, after those before it. Raises for what a trace cannot give.
  void set_output(const IValue& v);

  /// The value of a tensor, container or number; what is not known yet becomes a constant.
  Value* value_of(const IValue& v, const TypePtr& type = nullptr);
  /// The value of a tensor that the map knows, or null.
  Value* find(const Tensor& t) const;
  /// Is the tensor an attribute of the traced module, or of one below it?
  bool is_attribute(const Tensor& t) const { return attributes_.contains(t.unsafeGetTensorImpl()); }
  /// From now on `v` stands for this tensor, or for the tensors of this container.
  void bind(const IValue& v, Value* value);
  /// `alias` stands for the value of `known`, which may become known later.
  void bind_alias(const Tensor& known, const Tensor& alias);

  // Modules. Their nodes carry a scope, and become methods of their own when the trace ends (make_methods).
  void enter_module(const AttributePath& path);
  void leave_module();
  /// Calls of modules become calls of methods that are added to the modules' classes; `self` keeps a graph without scopes.
  void make_methods();

  struct Stashed {
    std::string argument;
    int64_t element;  // in lists; -1 for single numbers
    IValue number;
    Value* value;
  };
  std::vector<Stashed> stashed;
  /// In an operator that is recorded by what it calls, its numbers serve all of that.
  bool by_parts = false;
  /// One subscript: a slice's start, stop and step, or an index, as an operator will see them.
  struct Subscript {
    bool slice;
    std::vector<IValue> numbers;
    std::vector<Value*> values;  // null for plain numbers
  };
  std::vector<Subscript> subscripts;
  /// Operators that write are recorded as their twins that give a new tensor, which stands for the written one from then on.
  bool force_outplace = false;
  /// Values get the names that the program has for their tensors where it uses them.
  bool names_values = true;
  /// An assignment to a subscript runs: its copy into a part stays a write.
  bool assigning = false;

  Node* create(Symbol kind, const std::vector<Value*>& inputs, std::size_t outputs = 1);
  Value* operand(const Argument& formal, const IValue& v);
  std::vector<Value*> operands(const OperatorHandle& op, const IValue* arguments);
  /// The value of an attribute of the traced module.
  Value* attribute(const AttributePath& path);

 private:
  struct Known {
    weak_intrusive_ptr<TensorImpl> alive;  // no other tensor has the address while this is here
    Value* value;
  };
  struct ModuleCall {
    AttributePath path;
    ScopePtr scope;  // of the call itself
    Node* begin;     // markers around its nodes
    Node* end = nullptr;
  };
  struct Alias {
    weak_intrusive_ptr<TensorImpl> alive, known;  // as above
    const TensorImpl* of;
  };
  /// The tensor that this one is an alias of, or itself.
  const TensorImpl* original(const TensorImpl* t) const;
  void note_attributes(const intrusive_ptr<ivalue::Object>& object, AttributePath& path);
  Value* constant(const IValue& v, const TypePtr& type = nullptr);
  Value* list_of_values(TypePtr element, const std::vector<Value*>& members);
  intrusive_ptr<ivalue::Object> object_at(const AttributePath& path) const;
  void make_method(const ModuleCall& call, const std::string& name);

  intrusive_ptr<ivalue::Object> self_;
  Node* attributes_end_ = nullptr;  // accesses of attributes stand in front of it, at the head of the graph
  std::unordered_map<const TensorImpl*, Known> known_;
  std::unordered_map<const TensorImpl*, Alias> aliases_;
  std::unordered_map<const TensorImpl*, AttributePath> attributes_;
  std::unordered_map<const ivalue::Object*, AttributePath> modules_;
  std::unordered_map<std::string, Value*> attribute_values_;  // by dotted path
  std::vector<std::size_t> open_calls_;
  std::vector<ModuleCall> calls_;  // in the order in which they began
};

/// Raises for values other than tensors and containers of them.
CRESSET_API void check_input(const IValue& v);

/// The trace of this thread, null when none runs.
CRESSET_API const std::shared_ptr<TracingState>& current();
/// Begins (sets the key) and, with null, ends a trace on this thread.
CRESSET_API void set_current(std::shared_ptr<TracingState> state);

/// Traces a function of C++: inputs as tuple members, in order.
CRESSET_API std::shared_ptr<Graph> trace(const std::vector<std::string>& names, std::vector<IValue> inputs,
                                         const std::function<IValue(const std::vector<IValue>&)>& function);
/// What follows a trace: dead code goes and the graph is checked. Nodes that compute the same stay one a call, as in PyTorch.
CRESSET_API void clean_up(const std::shared_ptr<Graph>& graph);

/// A tensor without dimensions that stands for a size (of one dimension) or for the number of elements.
CRESSET_API Tensor traced_size(const Tensor& t, int64_t dim);
CRESSET_API Tensor traced_numel(const Tensor& t);
/// This tensor is about to become a number: argument `argument` (element `element` of a list) of the next operator.
CRESSET_API void stash(std::string_view argument, int64_t element, const Tensor& t, const IValue& number);
/// `inner` shows the same values as `outer`: x.data, views with another class.
CRESSET_API void same_value(const Tensor& outer, const Tensor& inner);
/// Records a call of a function with a graph; runs it without recording what it does.
CRESSET_API void call_function(Function& f, Stack& stack);

/// The schema of a traced graph: names that differ, types without shapes.
CRESSET_API FunctionSchema traced_schema(const Graph& g, const std::string& name);
/// Where the user's program is, for the source ranges of nodes; the bindings install Python's answer.
CRESSET_API void set_source_range_provider(SourceRange (*provider)());
/// What the user's program calls a tensor at its innermost place, for the names of values; empty where it has no name there.
CRESSET_API void set_name_provider(std::string (*provider)(const Tensor& t));
/// Who tells the user what a trace may have got wrong; the bindings install Python's warning.
CRESSET_API void set_warning_provider(void (*provider)(const char* text));
/// The type with nothing known of the tensors in it.
CRESSET_API TypePtr without_shapes(const TypePtr& type);

}  // namespace cresset::jit::tracer
