// `cresset explain OP [ARGUMENT...]`: which kernel a call runs, and which argument and key decide it.
#include <charconv>
#include <cstdio>

#include <cresset/dispatch/dispatcher.h>
#include <cresset/ops/functions_creation.h>

#include "base/parse_number.h"
#include "cli/commands.h"

namespace cresset::cli {
namespace {

ScalarType known_dtype(const std::string& name) {
  if (const auto type = dtype_from_name(name)) return *type;
  CRESSET_THROW(ValueError, "explain: a dtype such as float32 was required; '", name, "' was given.");
}

// "float32[2,3]" or "float32[2,3]@meta"; anything else is None, a number or a string.
IValue argument(const std::string& text, const Argument& declared, const std::string& device) {
  if (text == "None") return {};
  const std::size_t open = text.find('[');
  if (open != std::string::npos && open > 0) {
    const std::size_t close = text.find(']', open), at = text.find('@');
    CRESSET_CHECK_VALUE(close != std::string::npos, "explain: a tensor is written float32[2,3] or float32[2,3]@meta; '", text,
                        "' was given.");
    DimVector sizes;
    for (std::size_t i = open + 1; i < close;) {
      int64_t n = 0;
      const auto [end, error] = std::from_chars(text.data() + i, text.data() + close, n);
      CRESSET_CHECK_VALUE(error == std::errc(), "explain: sizes are numbers with commas between them; '", text, "' was given.");
      sizes.push_back(n);
      i = static_cast<std::size_t>(end - text.data()) + 1;
    }
    const Tensor t = cresset::empty(
        sizes, TensorOptions(known_dtype(text.substr(0, open))).device(Device(at == std::string::npos ? device : text.substr(at + 1))));
    return declared.type->kind == TypeKind::List ? IValue(std::vector<Tensor>{t}) : IValue(t);
  }
  int64_t integer = 0;
  if (const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), integer);
      error == std::errc() && end == text.data() + text.size())
    return integer;
  double number = 0;
  if (const auto [end, error] = parse_double(text.data(), text.data() + text.size(), number);
      error == std::errc() && end == text.data() + text.size())
    return number;
  return text;
}

// Left-out arguments: the schema's default, or a small tensor on the chosen device.
IValue absent(const Argument& declared, const std::string& device) {
  if (declared.default_value) return *declared.default_value;
  if (declared.type->kind == TypeKind::Tensor) return cresset::empty({2, 3}, TensorOptions().device(Device(device)));
  if (declared.type->kind == TypeKind::List && declared.type->element()->kind == TypeKind::Tensor)
    return std::vector<Tensor>{cresset::empty({2, 3}, TensorOptions().device(Device(device)))};
  return {};
}

void explain(const std::string& name, const std::vector<std::string>& texts, const Shared& shared) {
  OperatorName full = parse_operator_name(name.find("::") == std::string::npos ? "aten::" + name : name);
  std::optional<OperatorHandle> op = Dispatcher::singleton().findSchema(full);
  if (!op && full.overload_name.empty()) {
    // No overload given: the only one, or say which there are.
    const auto overloads = Dispatcher::singleton().overloadsOf(full.name);
    if (overloads.size() == 1) op = overloads[0];
    std::string list;
    for (const OperatorHandle& o : overloads) list += "\n  " + o.operator_name().str();
    CRESSET_CHECK(op || overloads.empty(), "explain: ", full, " has several overloads, name one:", list);
  }
  if (!op) op = Dispatcher::singleton().findSchemaOrThrow(full.name.c_str(), full.overload_name.c_str());
  const auto& declared = op->schema().arguments();
  CRESSET_CHECK_VALUE(texts.size() <= declared.size(), "explain: ", op->operator_name(), " takes ", declared.size(), " arguments; ",
                      texts.size(), " were given.");
  Stack stack;
  for (std::size_t i = 0; i < declared.size(); ++i)
    stack.push_back(i < texts.size() ? argument(texts[i], declared[i], shared.device) : absent(declared[i], shared.device));
  std::printf("%s", Dispatcher::singleton().explain(*op, stack).c_str());
  if (shared.verbose) std::printf("\n%s\n%s", op->dumpState().c_str(), op->dumpComputedTable().c_str());
}

}  // namespace

void add_explain(CLI::App& app, Shared& shared) {
  auto name = std::make_shared<std::string>();
  auto arguments = std::make_shared<std::vector<std::string>>();
  CLI::App* command = app.add_subcommand("explain", "which kernel a call runs and why, e.g. explain add.Tensor float32[2] int64[2]@meta");
  command->add_option("op", *name, "operator, aten:: unless it names a namespace")->required();
  command->add_option("arguments", *arguments, "tensors as float32[2,3]@device, numbers, None; missing ones are filled in");
  command->callback([name, arguments, &shared] { explain(*name, *arguments, shared); });
}

}  // namespace cresset::cli
