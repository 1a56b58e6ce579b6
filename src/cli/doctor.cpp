// `cresset doctor`: what this installation is and what it found on this machine.
#include <algorithm>
#include <cctype>
#include <cstdio>
#include <cstdlib>
#include <nlohmann/json.hpp>

#include <cresset/base/parallel.h>
#include <cresset/core/backend.h>
#include <cresset/dispatch/dispatcher.h>
#include <cresset/ir/native_code.h>
#include <cresset/ops/functions_arith.h>
#include <cresset/ops/functions_conv.h>
#include <cresset/ops/functions_creation.h>
#include <cresset/ops/functions_matmul.h>
#include <cresset/version.h>

#include "cli/commands.h"
#include "cli/python.h"

namespace cresset::cli {
namespace {

// Does a product and a convolution give the right number? The two libraries underneath are the likeliest to be broken.
std::string check_libraries() {
  try {
    const Tensor a = cresset::ones({64, 64}, TensorOptions());
    if (cresset::mm(a, a).sum().item<double>() != 64.0 * 64 * 64) return "the matrix product gives a wrong result";
    const Tensor x = cresset::ones({1, 1, 4, 4}, TensorOptions()), w = cresset::ones({1, 1, 3, 3}, TensorOptions());
    if (cresset::conv2d(x, w).sum().item<double>() != 36) return "the convolution gives a wrong result";
  } catch (const std::exception& e) {
    return e.what();
  }
  return "";
}

void doctor(Shared& shared) {
  nlohmann::ordered_json report;
  report["version"] = CRESSET_VERSION;
  report["threads"] = get_num_threads();
  Stack stack;
  Dispatcher::singleton().findSchemaOrThrow("cresset::cpu_capability", "").callBoxed(stack);
  report["instruction_set"] = stack.back().toStringRef();
  report["native_code"] = jit::native_code_target();
  report["devices"] = known_device_names();
  const auto names = Dispatcher::singleton().getAllOpNames();
  report["operators"] = names.size();
  std::size_t dangling = 0;
  for (const OperatorHandle& op : Dispatcher::singleton().findDanglingImpls()) {
    report["kernels_without_operator"].push_back(op.operator_name().str());
    ++dangling;
  }
  const std::string broken = check_libraries();
  report["libraries"] = broken.empty() ? "work" : broken;
  for (const char* name : {"CRESSET_NUM_THREADS", "OMP_NUM_THREADS", "CRESSET_ISA", "CRESSET_NATIVE"})
    if (const char* value = std::getenv(name)) report["environment"][name] = value;
  shared.status = broken.empty() && dangling == 0 ? 0 : 1;
  if (shared.json) {
    std::printf("%s\n", report.dump(2).c_str());
    return;
  }
  for (const auto& [key, value] : report.items())
    std::printf("%-24s %s\n", key.c_str(), (value.is_string() ? value.get<std::string>() : value.dump()).c_str());
  std::printf("%s\n", shared.status == 0 ? "all well" : "something is wrong, see above");
}

// Operators with a kernel of the device's own, defaults of the core left out.
std::size_t own_kernels(DeviceType t) {
  std::size_t n = 0;
  for (const OperatorName& name : Dispatcher::singleton().getRegistrationsForDispatchKey(backendKey(t)))
    if (Dispatcher::singleton().findOp(name)->dumpComputedTable().find(str(toString(backendKey(t)), ": default of backends")) ==
        std::string::npos)
      ++n;
  return n;
}

// Does a tensor survive the way to the device and back, and does an operator give the right number there?
std::string check_device(DeviceType t) {
  try {
    const Tensor a = cresset::arange(6, TensorOptions(kFloat));
    const Tensor there = a.to(TensorOptions(Device(t)));
    if (!there.to(TensorOptions(Device(kCPU))).equal(a)) return "numbers change on the way to the device and back";
    if (cresset::add(there, there).sum().item<double>() != 30) return "add gives a wrong result";
  } catch (const std::exception& e) {
    return e.what();
  }
  return "";
}

// Devices of Python packages are entry points, which only Python reads. The program prints the library, or why there is none; without the
// package cresset it prints nothing.
constexpr const char* kAskPython = R"(
import sys
try:
    import cresset
    cresset.device(sys.argv[1])
    print("library " + cresset.accelerator.report(sys.argv[1])["library"])
except ModuleNotFoundError:
    pass
except RuntimeError as error:
    print("problem " + str(error))
)";

// Loads what Python finds for a name; gives the reason when that does not work.
std::string load_by_python(const std::string& name) {
  const bool plain = !name.empty() && std::all_of(name.begin(), name.end(), [](unsigned char c) { return std::isalnum(c) || c == '_'; });
  if (!plain) return "";
  std::string said = python_output(kAskPython, name);
  while (!said.empty() && said.back() == '\n') said.pop_back();
  if (said.starts_with("problem ")) return said.substr(8);
  if (said.size() <= 8) return "";
  try {
    load_backend(said.substr(8));
  } catch (const std::exception& e) {
    return e.what();
  }
  return "";
}

BackendReport report_of(const std::string& name) {
  BackendReport r = inspect_backend(name);
  if (r.type || !r.parts.empty()) return r;
  const std::string problem = load_by_python(name);
  if (problem.empty()) return inspect_backend(name);
  r.problem = problem;
  return r;
}

void doctor_of_device(Shared& shared, const std::string& name) {
  const BackendReport r = report_of(name);
  nlohmann::ordered_json report;
  report["name"] = name;
  if (!r.library.empty()) report["library"] = r.library;
  std::string problem = r.problem;
  if (!r.parts.empty()) report["table_version"] = r.table_version;
  if (r.type) {
    report["dispatch_key"] = toString(backendKey(*r.type));
    report["devices"] = device_count(*r.type);
    report["own_kernels"] = own_kernels(*r.type);
    if (problem.empty() && device_count(*r.type) > 0) problem = check_device(*r.type);
  }
  report["state"] = problem.empty() ? "works" : problem;
  for (const BackendPart& p : r.parts)
    report["parts"].push_back({{"name", p.name}, {"required", p.required}, {"present", p.present}, {"without", p.without}});
  shared.status = problem.empty() ? 0 : 1;
  if (shared.json) {
    std::printf("%s\n", report.dump(2).c_str());
    return;
  }
  for (const auto& [key, value] : report.items())
    if (key != "parts") std::printf("%-24s %s\n", key.c_str(), (value.is_string() ? value.get<std::string>() : value.dump()).c_str());
  for (const BackendPart& p : r.parts)
    std::printf("  %-8s %-20s %s\n",
                p.present    ? "has"
                : p.required ? "REQUIRED"
                             : "lacks",
                p.name.c_str(), p.present ? "" : p.without.c_str());
}

}  // namespace

void add_doctor(CLI::App& app, Shared& shared) {
  static std::string device;
  auto* command = app.add_subcommand("doctor", "what this installation is, and whether it works on this machine");
  command->add_option("name", device, "a device: what its backend has, what is missing, and what that switches off");
  command->callback([&shared] { device.empty() ? doctor(shared) : doctor_of_device(shared, device); });
}

}  // namespace cresset::cli
