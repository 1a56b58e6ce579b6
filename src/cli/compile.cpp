// `cresset compile IN OUT [SPEC...]`: a module with engines, compared with the interpreter.
#include <dlfcn.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cstdio>

#include <cresset/core/grad_mode.h>
#include <cresset/ir/logging.h>
#include <cresset/ops/functions_compare.h>

#include "cli/commands.h"
#include "cli/compile_options.h"
#include "cli/models.h"
#include "cli/npy.h"

namespace cresset::cli {
namespace {

struct Output {
  CompileRequest common;
  std::vector<std::string> calibrate;  // .npy files, one for each input
  std::string out, check_method;
  double atol = 1e-8, rtol = 1e-5;
  bool check = true, save_engine = false, embed_engine = false, info = false, no_warnings = false;
};

// A line that is written over on a terminal, and nothing anywhere else.
class Progress {
 public:
  explicit Progress(int steps) : steps_(steps), shown_(isatty(STDERR_FILENO) == 1) {}
  ~Progress() {
    if (shown_) std::fprintf(stderr, "\r\033[K");
  }
  void next(const char* what) {
    if (shown_) std::fprintf(stderr, "\r\033[K[%.*s%.*s] %s", 2 * done_, "##########", 2 * (steps_ - done_), "          ", what);
    ++done_;
  }

 private:
  int steps_, done_ = 0;
  bool shown_;
};

struct Comparison {
  double largest = 0;  // difference; -1 where results are of different number, shape or dtype
  bool close = true;
};
Comparison compare(const std::vector<Tensor>& want, const std::vector<Tensor>& got, double atol, double rtol) {
  Comparison out;
  if (want.size() != got.size()) return {-1, false};
  for (std::size_t i = 0; i < want.size(); ++i) {
    if (want[i].sizes() != got[i].sizes() || want[i].scalar_type() != got[i].scalar_type()) return {-1, false};
    const Tensor x = want[i].to(kDouble), y = got[i].to(kDouble);
    out.close = out.close && cresset::allclose(x, y, rtol, atol, true);
    if (x.numel()) out.largest = std::max(out.largest, (x - y).abs().max().item<double>());
  }
  return out;
}

std::vector<Tensor> results(const jit::Module& module, const std::string& method, const std::vector<IValue>& inputs) {
  const NoGradGuard no_grad;
  std::vector<Tensor> out;
  collect_tensors(module.get_method(method)(Stack(inputs.begin(), inputs.end())), out);
  return out;
}

// The last lines of a compilation; the status of the command.
int compared(const Output& r, const jit::Module& module, const jit::Module& made, const engine::CompileOptions& options) {
  constexpr int64_t kRuns = 3;
  const std::vector<IValue> inputs = examples_of(options.pipeline.inputs);
  std::vector<IValue> copies;
  for (const IValue& v : inputs) copies.emplace_back(v.toTensor().clone());
  const Comparison c = compare(results(module, r.common.method, inputs), results(made, r.common.method, copies), r.atol, r.rtol);
  const double before = time_method(module, r.common.method, inputs, kRuns, 1).front();
  const double after = time_method(made, r.common.method, inputs, kRuns, 1).front();
  if (c.largest < 0)
    std::printf("largest difference    results of other number, shape or dtype\n");
  else
    std::printf("largest difference    %g\n", c.largest);
  std::printf("interpreter           %.3f ms\nwith engines          %.3f ms\n", before, after);
  if (c.close) return 0;
  std::fprintf(stderr, "cresset compile: warning: results differ from the interpreter's by more than atol %g, rtol %g\n", r.atol, r.rtol);
  return c.largest < 0 ? 1 : 0;
}

// Calls of the method out of files with an example in each row: as many rows a call as the specification of the input says is usual, one
// without. Rows that are too few for a call are left out.
std::vector<Stack> calibration_calls(const std::vector<std::string>& paths, const jit::InputSpecs& specs) {
  std::vector<Tensor> columns;
  std::vector<int64_t> rows;  // of a call
  for (std::size_t i = 0; i < paths.size(); ++i) {
    const jit::InputSpec* spec = i < specs.size() && specs[i] ? &*specs[i] : nullptr;
    const Tensor read = read_npy(paths[i]);
    CRESSET_CHECK_VALUE(read.dim() > 0 && read.size(0) > 0, "compile: --calibrate: ", paths[i],
                        " has no rows; an example in each was required.");
    rows.push_back(spec && !spec->opt.empty() ? std::max<int64_t>(spec->opt[0], 1) : 1);
    CRESSET_CHECK_VALUE(read.size(0) >= rows[i], "compile: --calibrate: ", paths[i], " has ", read.size(0), " rows; a call takes ", rows[i],
                        ".");
    columns.push_back(spec ? read.to(spec->dtype) : read);
    CRESSET_CHECK_VALUE(read.size(0) / rows[i] == columns[0].size(0) / rows[0], "compile: --calibrate: ", paths[i], " has rows for ",
                        read.size(0) / rows[i], " calls, ", paths[0], " for ", columns[0].size(0) / rows[0], ".");
  }
  std::vector<Stack> calls;
  for (int64_t call = 0; !columns.empty() && call < columns[0].size(0) / rows[0]; ++call) {
    Stack& arguments = calls.emplace_back();
    for (std::size_t i = 0; i < columns.size(); ++i) arguments.emplace_back(columns[i].narrow(0, call * rows[i], rows[i]).contiguous());
  }
  return calls;
}

int check_support(const Output& r, const jit::Module& module, const engine::CompileOptions& options) {
  std::vector<std::string> missing;
  const bool all = engine::check_method_operator_support(module, r.check_method, options, &missing);
  for (const std::string& one : missing) std::printf("%s\n", one.c_str());
  if (all) std::printf("the engine has all of %s\n", r.check_method.c_str());
  return all ? 0 : 1;
}

int run_compile(const Output& r) {
  const auto& logger = jit::logging::process_logger();
  if (r.info) logger->set_level(jit::logging::level_from("info"));
  if (r.no_warnings) logger->set_level(jit::logging::level_from("error"));
  load_libraries(r.common);
  if (r.embed_engine) {
    engine::embed_engine_in_new_module(read_bytes(r.common.in)).save(r.out);
    return 0;
  }
  engine::CompileOptions options = compile_options(r.common);
  options.data = calibration_calls(r.calibrate, options.pipeline.inputs);
  Progress progress(4);
  progress.next("reading");
  const jit::Module module = read_model(r.common.in);
  if (!r.check_method.empty()) return check_support(r, module, options);
  CRESSET_CHECK_VALUE(!r.out.empty(), "compile: the file to write was required.");
  progress.next("compiling");
  if (r.save_engine) {
    const std::string bytes = engine::convert_method_to_engine(module, r.common.method, options);
    write_bytes(r.out, bytes);
    std::printf("engine file           %s, %zu bytes\n", r.out.c_str(), bytes.size());
    return 0;
  }
  const engine::Compiled compiled = engine::compile(module, r.common.method, options);
  std::printf("%s\nengines               %zu\n", compiled.report.c_str(), compiled.engines);
  if (!compiled.accuracy.empty()) std::printf("%s\n", compiled.accuracy.c_str());
  progress.next("comparing");
  const int status = r.check && !r.common.specs.empty() ? compared(r, module, compiled.module, options) : 0;
  progress.next("writing");
  compiled.module.save(r.out);
  return status;
}

}  // namespace

void add_compile_options(CLI::App* command, CompileRequest& r) {
  const auto names = [&](const char* name, std::vector<std::string>& into, const char* what) {
    command->add_option(name, into, what)->allow_extra_args(false)->delimiter(',');
  };
  command->add_option("in", r.in, "an archive, an engine file or a .pt2 file")->required();
  command->add_option("--backend", r.options.backend, "whose engine; several with commas, the preferred first")->capture_default_str();
  command->add_option("--method", r.method, "the method")->capture_default_str();
  names("--teo,--torch-executed-op", r.options.torch_executed_ops, "operators that stay with the interpreter, aten::relu");
  names("--tem,--torch-executed-mod", r.modules, "submodules that stay with the interpreter, by path or class");
  command->add_option("--mbs,--min-block-size", r.options.min_block_size, "engines of fewer operators are none")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  names("-p,--enable-precision", r.precisions, "what engines may compute float32 in: f32, f16, bf16, i8");
  command->add_flag("--truncate,--truncate-long-double,--truncate-64bit", r.options.truncate_long_and_double,
                    "int64 and float64 are int32 and float32 inside of engines that do not take them");
  names("--custom-torch-ops,--custom-converters", r.libraries, "shared libraries to load first");
}

void load_libraries(const CompileRequest& r) {
  for (const std::string& path : r.libraries) {
    // Kept until the end: what they register stays.
    CRESSET_CHECK_VALUE(dlopen(path.c_str(), RTLD_NOW | RTLD_GLOBAL), "compile: ", path, " cannot be loaded: ", dlerror());
  }
}

engine::CompileOptions compile_options(const CompileRequest& r) {
  static const std::pair<const char*, ScalarType> kShort[] = {{"float", kFloat},   {"f32", kFloat}, {"fp32", kFloat},
                                                              {"half", kHalf},     {"f16", kHalf},  {"fp16", kHalf},
                                                              {"bf16", kBFloat16}, {"i8", kChar},   {"char", kChar}};
  engine::CompileOptions out = r.options;
  for (const std::string& text : r.specs) out.pipeline.inputs.emplace_back(jit::parse_input_spec(text));
  out.pipeline.lowering.torch_executed_modules = r.modules;
  for (std::string name : r.precisions) {
    std::transform(name.begin(), name.end(), name.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
    const auto* found = std::find_if(std::begin(kShort), std::end(kShort), [&](const auto& one) { return name == one.first; });
    const auto dtype = found != std::end(kShort) ? std::optional(found->second) : dtype_from_name(name);
    CRESSET_CHECK_VALUE(dtype, "compile: --enable-precision: '", name, "' is no dtype; f32, f16, bf16 and i8 are.");
    out.enabled_precisions.push_back(*dtype);
  }
  return out;
}

void add_compile(CLI::App& app, Shared& shared) {
  auto r = std::make_shared<Output>();
  CLI::App* compile = app.add_subcommand("compile", "makes a module with engines, e.g. compile in.pt out.cre '(1,3,224,224)@f32'");
  add_compile_options(compile, r->common);
  compile->add_option("out", r->out, "the archive to write, which `cresset run` and jit.load read");
  compile->add_option("specs", r->common.specs, "inputs, (1,3,224,224)@f32 or [(min);(opt);(max)]@f32%contiguous")->allow_extra_args(false);
  compile->add_flag("--require-full-compilation", r->common.options.require_full_compilation, "an error unless the whole is one engine");
  compile->add_option("--check-method-support", r->check_method,
                      "name what the engine does not have of a method; exit status 1 if anything");
  compile
      ->add_option("--calibrate", r->calibrate,
                   "examples that int8 learns its ranges from, .npy files with one in each row; one for each input")
      ->delimiter(',')
      ->allow_extra_args(false);
  compile->add_option("--calibration-method", r->common.options.calibration.name, "where outliers are cut off: entropy, percentile or max")
      ->capture_default_str();
  compile->add_flag("--save-engine", r->save_engine, "write an engine file; the whole method must be the engine's");
  compile->add_flag("--embed-engine", r->embed_engine, "the input is an engine file; write a module around it");
  compile->add_option("--atol", r->atol, "what may differ from the interpreter on random inputs")->capture_default_str();
  compile->add_option("--rtol", r->rtol, "the same, of the value")->capture_default_str();
  compile->add_flag("!--no-threshold-check", r->check, "do not compare");
  compile->add_flag("-i,--info", r->info, "say what passes did");
  compile->add_flag("-w,--warnings", r->no_warnings, "no warnings of passes");
  compile->callback([r, &shared] { shared.status = run_compile(*r); });
}

}  // namespace cresset::cli
