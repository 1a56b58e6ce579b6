#include "ir/archive/old_operators.h"

#include <cresset/ir/pass.h>

#include "ir/frontend/script_error.h"
#include "ir/frontend/values.h"

namespace cresset::jit {
namespace {

struct OldOperator {
  const char* name;
  int64_t until;       // the first version in which the operator means what it means today
  const char* source;  // the old meaning in today's operators; the parameters say which calls it is for
};

// In the order in which calls are tried. Calls that fit none, such as divisions with a rounding mode, mean what they mean today.
constexpr OldOperator kOldOperators[] = {
    {"div", 4, R"(
def div_Tensor_0_3(self: Tensor, other: Tensor) -> Tensor:
    if self.is_floating_point() or other.is_floating_point():
        return torch.div(self, other)
    return torch.div(self, other, rounding_mode='trunc')
)"},
    {"div", 4, R"(
def div_Scalar_0_3(self: Tensor, other: number) -> Tensor:
    if self.is_floating_point() or isinstance(other, float):
        return torch.div(self, other)
    return torch.div(self, other, rounding_mode='trunc')
)"},
    {"div", 4, R"(
def div_out_0_3(self: Tensor, other: Tensor, *, out: Tensor) -> Tensor:
    if self.is_floating_point() or other.is_floating_point() or out.is_floating_point():
        return torch.div(self, other, out=out)
    return torch.div(self, other, rounding_mode='trunc', out=out)
)"},
    {"div_", 4, R"(
def div__Tensor_0_3(self: Tensor, other: Tensor) -> Tensor:
    if self.is_floating_point() or other.is_floating_point():
        return self.div_(other)
    return self.div_(other, rounding_mode='trunc')
)"},
    {"div_", 4, R"(
def div__Scalar_0_3(self: Tensor, other: number) -> Tensor:
    if self.is_floating_point() or isinstance(other, float):
        return self.div_(other)
    return self.div_(other, rounding_mode='trunc')
)"},
    {"full", 5, R"(
def full_0_4(size: List[int], fill_value: number, *, dtype: Optional[int] = None, layout: Optional[int] = None,
             device: Optional[Device] = None, pin_memory: Optional[bool] = None) -> Tensor:
    if dtype is None:
        return torch.full(size, float(fill_value), dtype=dtype, layout=layout, device=device, pin_memory=pin_memory)
    return torch.full(size, fill_value, dtype=dtype, layout=layout, device=device, pin_memory=pin_memory)
)"},
    {"full", 5, R"(
def full_out_0_4(size: List[int], fill_value: number, *, out: Tensor) -> Tensor:
    return torch.full(size, fill_value, out=out)
)"},
    {"linspace", 8, R"(
def linspace_0_7(start: number, end: number, steps: Optional[int] = None, *, dtype: Optional[int] = None,
                 layout: Optional[int] = None, device: Optional[Device] = None, pin_memory: Optional[bool] = None) -> Tensor:
    count = 100
    if steps is not None:
        count = steps
    return torch.linspace(start, end, count, dtype=dtype, layout=layout, device=device, pin_memory=pin_memory)
)"},
    {"linspace", 8, R"(
def linspace_out_0_7(start: number, end: number, steps: Optional[int] = None, *, out: Tensor) -> Tensor:
    count = 100
    if steps is not None:
        count = steps
    return torch.linspace(start, end, count, out=out)
)"},
    {"logspace", 9, R"(
def logspace_0_8(start: number, end: number, steps: Optional[int] = None, base: float = 10.0, *, dtype: Optional[int] = None,
                 layout: Optional[int] = None, device: Optional[Device] = None, pin_memory: Optional[bool] = None) -> Tensor:
    count = 100
    if steps is not None:
        count = steps
    return torch.logspace(start, end, count, base, dtype=dtype, layout=layout, device=device, pin_memory=pin_memory)
)"},
    {"logspace", 9, R"(
def logspace_out_0_8(start: number, end: number, steps: Optional[int] = None, base: float = 10.0, *, out: Tensor) -> Tensor:
    count = 100
    if steps is not None:
        count = steps
    return torch.logspace(start, end, count, base, out=out)
)"},
};

intrusive_ptr<Function> upgrader(CompilationUnit& unit, const OldOperator& old) {
  constexpr const char* kPackage = "__torch__.upgraders";
  Definition d;
  d.tree = parse_function(std::make_shared<const Source>(old.source, "upgraders"));
  if (auto known = unit.find_function(std::string(kPackage) + "." + function_name(*d.tree))) return known;
  d.resolver = native_resolver(unit);
  return define_functions(unit, kPackage, {d})[0];
}

class VersionedOperator final : public SugaredValue {
 public:
  VersionedOperator(CompilationUnit& unit, std::vector<const OldOperator*> meanings, SugaredValuePtr today)
      : unit_(unit), meanings_(std::move(meanings)), today_(std::move(today)) {}
  std::string kind() const override { return today_->kind(); }
  SugaredValuePtr call(const SourceRange& range, GraphFunction& m, const std::vector<CallArgument>& args,
                       const std::vector<CallArgument>& kwargs, std::size_t results) override {
    const std::vector<CallValue> values = call_values(m, args, kwargs);
    for (const OldOperator* old : meanings_) {
      const auto f = upgrader(unit_, *old);
      if (!fits(f->getSchema(), values)) continue;
      const std::vector<Value*> inputs = match_schema(range, *m.graph(), f->getSchema(), values);
      return simple_value(m.graph()->insertGraph(*for_call(*f->graph(), inputs), inputs).at(0));
    }
    return today_->call(range, m, args, kwargs, results);
  }

 private:
  // What the old meaning is for the constants of a call, decided as far as it can be: a file that is saved again is then what it will be.
  static std::shared_ptr<Graph> for_call(const Graph& meaning, const std::vector<Value*>& inputs) {
    const std::shared_ptr<Graph> graph = meaning.copy();
    const WithInsertPoint front(graph->block()->param_node()->next());
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      const auto known = toIValue(inputs[i]);
      if (!known || known->isTensor()) continue;
      if (const auto constant = tryInsertConstant(*graph, *known)) graph->inputs().at(i)->replaceAllUsesWith(*constant);
    }
    propagate_constants(graph);
    find_pass("peephole")->run(graph);
    eliminate_dead_code(graph);
    return graph;
  }

  // Whether every argument has a parameter of its type and no parameter is left without a value.
  static bool fits(const FunctionSchema& schema, const std::vector<CallValue>& values) {
    std::vector<bool> given(schema.arguments().size());
    for (std::size_t i = 0; i < values.size(); ++i) {
      const auto at = values[i].name.empty() ? std::optional(i) : schema.argument_index(values[i].name);
      if (!at || *at >= given.size() || given[*at]) return false;
      const Argument& formal = schema.arguments()[*at];
      if ((values[i].name.empty() && formal.kwarg_only) || !values[i].value->type()->is_subtype_of(*formal.type)) return false;
      given[*at] = true;
    }
    for (std::size_t i = 0; i < given.size(); ++i)
      if (!given[i] && !schema.arguments()[i].default_value) return false;
    return true;
  }

  CompilationUnit& unit_;
  std::vector<const OldOperator*> meanings_;
  SugaredValuePtr today_;
};

}  // namespace

SugaredValuePtr operator_of_version(CompilationUnit& unit, int64_t version, const std::string& name, const SugaredValuePtr& today) {
  std::vector<const OldOperator*> meanings;
  for (const OldOperator& old : kOldOperators)
    if (name == old.name && version < old.until) meanings.push_back(&old);
  return meanings.empty() ? today : std::make_shared<VersionedOperator>(unit, std::move(meanings), today);
}

TypePtr packed_weights_of(const std::string& module_class, const std::string& attribute) {
  if (attribute != "_packed_params") return nullptr;
  if (!module_class.starts_with("__torch__.torch.nn.quantized.") && !module_class.starts_with("__torch__.torch.nn.intrinsic.quantized."))
    return nullptr;
  const std::string name = module_class.substr(module_class.rfind('.') + 1);
  const char* kind = name.starts_with("Linear")  ? "Linear"
                     : !name.starts_with("Conv") ? nullptr
                     : name.ends_with("3d")      ? "Conv3d"
                                                 : "Conv2d";
  return kind ? object_type(std::string("__torch__.torch.classes.quantized.") + kind + "PackedParamsBase") : nullptr;
}

}  // namespace cresset::jit
