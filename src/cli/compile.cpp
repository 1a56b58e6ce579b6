// `cresset compile IN OUT [SPEC...]`: a module with engines, compared with the interpreter. `cresset partition IN [SPEC...]`: what would
// become engines, and why not.
#include <cstdio>

#include <cresset/engine/compile.h>
#include <cresset/engine/engine.h>
#include <cresset/ir/archive.h>
#include <cresset/ops/functions_compare.h>

#include "cli/commands.h"

namespace cresset::cli {
namespace {

struct CompileRequest {
  std::string in, out, method = "forward";
  std::vector<std::string> specs, modules;
  engine::CompileOptions options;
  double atol = 1e-8, rtol = 1e-5;
  bool check = true, nodes = false;
};

void add_options(CLI::App* command, const std::shared_ptr<CompileRequest>& r) {
  const auto names = [&](const char* name, std::vector<std::string>& into, const char* what) {
    command->add_option(name, into, what)->allow_extra_args(false)->delimiter(',');
  };
  command->add_option("specs", r->specs, "inputs, (1,3,224,224)@f32 or [(min);(opt);(max)]@f32");
  command->add_option("--backend", r->options.backend, "whose engine")->capture_default_str();
  command->add_option("--method", r->method, "the method")->capture_default_str();
  names("--teo,--torch-executed-op", r->options.torch_executed_ops, "operators that stay with the interpreter, aten::relu");
  names("--tem,--torch-executed-mod", r->modules, "submodules that stay with the interpreter, by path or class");
  command->add_option("--mbs,--min-block-size", r->options.min_block_size, "engines of fewer operators are none")->capture_default_str();
}

jit::Module read_module(CompileRequest& r) {
  for (const std::string& text : r.specs) r.options.pipeline.inputs.emplace_back(jit::parse_input_spec(text));
  r.options.pipeline.lowering.torch_executed_modules = r.modules;
  return jit::load(r.in);
}

// Tensors in order, wherever they are in the value.
void collect(const IValue& v, std::vector<Tensor>& out) {
  if (v.isTensor()) out.push_back(v.toTensor());
  if (v.isList() || v.isTuple())
    for (const IValue& member : v.toListRef()) collect(member, out);
}

// The largest difference; -1 where results are of different number or shape.
double largest_difference(const std::vector<Tensor>& a, const std::vector<Tensor>& b, double atol, double rtol, bool* close) {
  double largest = a.size() == b.size() ? 0 : -1;
  *close = largest == 0;
  for (std::size_t i = 0; i < a.size() && largest >= 0; ++i) {
    if (a[i].sizes() != b[i].sizes()) return *close = false, -1;
    const Tensor x = a[i].to(kDouble), y = b[i].to(kDouble);
    *close = *close && cresset::allclose(x, y, rtol, atol, true);
    if (x.numel()) largest = std::max(largest, (x - y).abs().max().item<double>());
  }
  return largest;
}

int run_compile(CompileRequest& r) {
  const jit::Module module = read_module(r);
  const engine::Compiled compiled = engine::compile(module, r.method, r.options);
  std::printf("%s%zu %s\n", compiled.report.c_str(), compiled.engines, compiled.engines == 1 ? "engine" : "engines");
  int status = 0;
  if (r.check && !r.specs.empty()) {
    Stack first{module._ivalue()}, second{compiled.module._ivalue()};
    for (const auto& spec : r.options.pipeline.inputs) {
      first.emplace_back(spec->example());
      second.emplace_back(first.back().toTensor().clone());
    }
    std::vector<Tensor> want, got;
    collect(module.get_method(r.method).function()(std::move(first)), want);
    collect(compiled.module.get_method(r.method).function()(std::move(second)), got);
    bool close = false;
    const double difference = largest_difference(want, got, r.atol, r.rtol, &close);
    std::printf("largest difference from the interpreter: %g\n", difference);
    if (!close) {
      std::fprintf(stderr, "cresset compile: warning: it is above atol %g, rtol %g\n", r.atol, r.rtol);
      status = difference < 0 ? 1 : 0;
    }
  }
  compiled.module.save(r.out);
  return status;
}

}  // namespace

void add_compile(CLI::App& app, Shared& shared) {
  auto r = std::make_shared<CompileRequest>();
  CLI::App* compile = app.add_subcommand("compile", "makes a module with engines, e.g. compile in.pt out.cre '(1,3,224,224)@f32'");
  compile->add_option("in", r->in, "an archive")->required();
  compile->add_option("out", r->out, "the archive to write, which `cresset run` and jit.load read")->required();
  add_options(compile, r);
  compile->add_flag("--require-full-compilation", r->options.require_full_compilation, "an error unless the whole is one engine");
  compile->add_option("--atol", r->atol, "what may differ from the interpreter on random inputs")->capture_default_str();
  compile->add_option("--rtol", r->rtol, "the same, of the value")->capture_default_str();
  compile->add_flag("!--no-threshold-check", r->check, "do not compare");
  compile->callback([r, &shared] { shared.status = run_compile(*r); });

  auto p = std::make_shared<CompileRequest>();
  CLI::App* partition = app.add_subcommand("partition", "says which nodes of a module would be engines, and why others not");
  partition->add_option("in", p->in, "an archive")->required();
  add_options(partition, p);
  partition->add_flag("--explain", p->nodes, "a line for each node");
  partition->callback([p] {
    const jit::Module module = read_module(*p);
    std::fputs(engine::partition_report(module, p->method, p->options, p->nodes).c_str(), stdout);
  });
}

}  // namespace cresset::cli
