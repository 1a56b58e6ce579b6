// Do two graphs give the same answers? Results, exceptions, and what was written into the inputs.
#include <cmath>

#include <cresset/dispatch/script_values.h>
#include <cresset/ir/interpreter.h>
#include <cresset/ir/pass.h>
#include <cresset/ops/functions_compare.h>

namespace cresset::jit {
namespace {

struct Answer {
  std::vector<IValue> results, inputs;
  std::optional<std::string> error;
};

Answer answer_of(const std::shared_ptr<Graph>& graph, const std::vector<IValue>& inputs) {
  Answer a;
  for (const IValue& v : inputs) a.inputs.push_back(v.deepcopy());
  try {
    a.results = run_graph(graph->copy(), a.inputs);
  } catch (const std::exception& e) {
    const std::string text = e.what();
    a.error = text.substr(0, text.find('\n'));
  }
  return a;
}

class RunComparison {
 public:
  RunComparison(double rtol, double atol) : rtol_(rtol), atol_(atol) {}

  // Containers may be nested deeper than the stack allows only when somebody builds them so; answers of graphs are bounded by their types.
  std::optional<std::string> values(const IValue& a, const IValue& b) const {
    if (a.tag() != b.tag()) return a.tagKind() + " and " + b.tagKind();
    switch (a.tag()) {
      case IValue::Tag::Tensor: return tensors(a.toTensor(), b.toTensor());
      case IValue::Tag::Double: return near(a.toDouble(), b.toDouble());
      case IValue::Tag::List:
      case IValue::Tag::Tuple: {
        const auto &x = a.toListRef(), &y = b.toListRef();
        if (x.size() != y.size()) return std::to_string(x.size()) + " and " + std::to_string(y.size()) + " elements";
        for (std::size_t i = 0; i < x.size(); ++i)
          if (auto d = values(x[i], y[i])) return "element " + std::to_string(i) + ": " + *d;
        return std::nullopt;
      }
      case IValue::Tag::Dict: {
        const auto &x = a.toDictImpl().items, &y = b.toDictImpl().items;
        if (x.size() != y.size()) return std::to_string(x.size()) + " and " + std::to_string(y.size()) + " entries";
        auto of_y = y.begin();
        for (std::size_t i = 0; const auto& [key, value] : x) {
          if (auto d = values(key, of_y->first)) return "key " + std::to_string(i) + ": " + *d;
          if (auto d = values(value, of_y->second)) return "entry " + std::to_string(i) + ": " + *d;
          ++i;
          ++of_y;
        }
        return std::nullopt;
      }
      case IValue::Tag::ScriptObject: {
        const auto &x = a.toObjectRef().slots, &y = b.toObjectRef().slots;
        for (std::size_t i = 0; i < std::min(x.size(), y.size()); ++i)
          if (x[i].tag() != IValue::Tag::ScriptObject)
            if (auto d = values(x[i], y[i])) return "attribute " + std::to_string(i) + ": " + *d;
        return std::nullopt;
      }
      case IValue::Tag::Int:
      case IValue::Tag::Bool:
      case IValue::Tag::Complex:
      case IValue::Tag::String:
      case IValue::Tag::Device:
      case IValue::Tag::Enum: return a == b ? std::nullopt : std::optional<std::string>("other values");
      default: return std::nullopt;  // functions, futures, streams: no values to compare
    }
  }

 private:
  std::optional<std::string> near(double a, double b) const {
    if (a == b || (std::isnan(a) && std::isnan(b)) || std::abs(a - b) <= atol_ + rtol_ * std::abs(a)) return std::nullopt;
    return std::to_string(a) + " and " + std::to_string(b);
  }
  std::optional<std::string> tensors(const Tensor& a, const Tensor& b) const {
    if (a.defined() != b.defined()) return "a tensor is missing";
    if (!a.defined()) return std::nullopt;
    if (a.scalar_type() != b.scalar_type()) return "dtypes " + std::string(toString(a.scalar_type())) + " and " + toString(b.scalar_type());
    if (a.sizes() != b.sizes()) return "tensors of other sizes";
    if (a.device() != b.device()) return "devices " + a.device().str() + " and " + b.device().str();
    return cresset::allclose(b, a, rtol_, atol_, true) ? std::nullopt : std::optional<std::string>("tensors of other values");
  }
  double rtol_, atol_;
};

}  // namespace

std::optional<std::string> run_difference(const std::shared_ptr<Graph>& a, const std::shared_ptr<Graph>& b,
                                          const std::vector<IValue>& inputs, double rtol, double atol) {
  const Answer x = answer_of(a, inputs), y = answer_of(b, inputs);
  if (x.error || y.error) {
    if (x.error == y.error) return std::nullopt;
    const auto say = [](const Answer& r) { return r.error ? "'" + *r.error + "'" : std::string("an answer"); };
    return say(x) + " and " + say(y);
  }
  const RunComparison compare(rtol, atol);
  if (x.results.size() != y.results.size())
    return std::to_string(x.results.size()) + " and " + std::to_string(y.results.size()) + " results";
  for (std::size_t i = 0; i < x.results.size(); ++i)
    if (auto d = compare.values(x.results[i], y.results[i])) return "result " + std::to_string(i) + ": " + *d;
  for (std::size_t i = 0; i < std::min(x.inputs.size(), y.inputs.size()); ++i)
    if (auto d = compare.values(x.inputs[i], y.inputs[i])) return "what was written into input " + std::to_string(i) + ": " + *d;
  return std::nullopt;
}

}  // namespace cresset::jit
