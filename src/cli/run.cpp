// `cresset run`: a method of an archive on .npy files.
#include <cstdio>

#include <cresset/base/interrupt.h>
#include <cresset/core/grad_mode.h>
#include <cresset/dispatch/tensor_type.h>
#include <cresset/ir/archive.h>
#include <cresset/ops/functions.h>

#include "base/parse_number.h"
#include "cli/commands.h"
#include "cli/models.h"
#include "cli/npy.h"

namespace cresset::cli {
namespace {

struct RunOptions {
  std::string model, method = "forward";
  std::vector<std::string> inputs, outputs;
  double seconds = 0, megabytes = 0;
};

// Numbers and booleans where the method takes them, tensors from files otherwise.
IValue input_value(const std::string& text, const TypePtr& declared, Device device) {
  const TypePtr& type = declared->kind == TypeKind::Optional ? declared->contained[0] : declared;
  const auto number = [&](auto value) {
    const auto [end, error] = parse_number(text.data(), text.data() + text.size(), value);
    CRESSET_CHECK_VALUE(error == std::errc() && end == text.data() + text.size(), "run: '", text, "' is no ", type->annotation_str(), ".");
    return value;
  };
  if (text == "None" && declared->kind == TypeKind::Optional) return IValue();
  switch (type->kind) {
    case TypeKind::Int: return IValue(number(int64_t{}));
    case TypeKind::Float: return IValue(number(double{}));
    case TypeKind::Bool:
      CRESSET_CHECK_VALUE(text == "True" || text == "False", "run: '", text, "' is neither True nor False.");
      return IValue(text == "True");
    case TypeKind::String: return IValue(text);
    default: {
      const Tensor t = read_npy(text);
      return IValue(device.is_cpu() ? t : t.to(TensorOptions().device(device)));
    }
  }
}

// The values inside of tuples, lists and dicts.
void flatten(const IValue& v, std::vector<IValue>& out) {
  if (v.isTuple() || v.isList()) {
    for (const IValue& e : v.toListRef()) flatten(e, out);
  } else if (v.isGenericDict()) {
    for (const auto& [key, value] : v.toDictImpl().items) flatten(value, out);
  } else {
    out.push_back(v);
  }
}

void run(const RunOptions& options, const Shared& shared) {
  const Device device(shared.device);
  const LimitScope limits(options.seconds, static_cast<int64_t>(options.megabytes * 1e6));
  const jit::Module module = read_model(options.model, device);
  const jit::Method method = module.get_method(options.method);
  const auto& formals = method.getSchema().arguments();
  CRESSET_CHECK_VALUE(options.inputs.size() < formals.size(), "run: ", options.method, " takes ", formals.size() - 1, " inputs; ",
                      options.inputs.size(), " were given.");
  Stack arguments;
  for (std::size_t i = 0; i < options.inputs.size(); ++i) arguments.push_back(input_value(options.inputs[i], formals[i + 1].type, device));
  const NoGradGuard no_grad;
  std::vector<IValue> results;
  flatten(method(std::move(arguments)), results);
  CRESSET_CHECK_VALUE(options.outputs.size() <= results.size(), "run: ", options.outputs.size(), " outputs were asked for; ",
                      options.method, " gives ", results.size(), ".");
  for (std::size_t i = 0; i < results.size(); ++i) {
    const IValue& v = results[i];
    std::string line = std::to_string(i) + ": " + (v.isTensor() ? TensorType::create(v.toTensor())->str() : to_string(v));
    if (i < options.outputs.size()) {
      write_npy(options.outputs[i], v.isTensor() ? v.toTensor()
                                                 : cresset::scalar_tensor(v.toScalar(), TensorOptions(v.isDouble() ? kDouble
                                                                                                      : v.isBool() ? kBool
                                                                                                                   : kLong)));
      line += " > " + options.outputs[i];
    }
    std::printf("%s\n", line.c_str());
  }
}

}  // namespace

void add_run(CLI::App& app, Shared& shared) {
  CLI::App* command = app.add_subcommand("run", "run a saved script on .npy files");
  auto options = std::make_shared<RunOptions>();
  command->add_option("model", options->model, "archive of jit.save")->required();
  command->add_option("-i,--input", options->inputs, "a .npy file, or a number where the method takes one; once for each input");
  command->add_option("-o,--output", options->outputs, "a .npy file to write; once for each result");
  command->add_option("--method", options->method, "method to call")->capture_default_str();
  command->add_option("--time", options->seconds, "seconds after which loading and running end with an error")
      ->check(CLI::Range(1e-3, 1e9))
      ->option_text("SECONDS");
  command->add_option("--memory", options->megabytes, "megabytes that loading and running may take")
      ->check(CLI::Range(1e-3, 1e9))
      ->option_text("MB");
  command->callback([options, &shared] { run(*options, shared); });
}

}  // namespace cresset::cli
