// `cresset bench MODEL SPEC...`: how long a method takes, beside another model's if one is given.
#include <cstdio>

#include "cli/commands.h"
#include "cli/models.h"

namespace cresset::cli {
namespace {

struct BenchRequest {
  std::string model, against, method = "forward";
  std::vector<std::string> specs;
  int64_t runs = 50, warm_up = 5;
};

struct Times {
  double least, median, most;  // ms; the last: nine of ten runs take no longer
};

Times bench(const BenchRequest& r, const std::string& path, const std::vector<IValue>& inputs) {
  const std::vector<double> all = time_method(read_model(path), r.method, inputs, r.runs, r.warm_up);
  return {all.front(), all[all.size() / 2], all[all.size() * 9 / 10]};
}

void run_bench(const BenchRequest& r, bool json) {
  jit::InputSpecs specs;
  for (const std::string& text : r.specs) specs.emplace_back(jit::parse_input_spec(text));
  const std::vector<IValue> inputs = examples_of(specs);
  std::vector<std::pair<std::string, Times>> rows{{r.model, bench(r, r.model, inputs)}};
  if (!r.against.empty()) rows.emplace_back(r.against, bench(r, r.against, inputs));
  if (json) {
    std::string out = "[";
    for (const auto& [path, t] : rows) {
      char line[160];
      std::snprintf(line, sizeof line, "\"min_ms\": %.4f, \"median_ms\": %.4f, \"p90_ms\": %.4f}", t.least, t.median, t.most);
      out += (out.size() > 1 ? ", " : "") + ("{\"model\": \"" + path + "\", ") + line;
    }
    std::printf("%s]\n", out.c_str());
    return;
  }
  std::printf("%10s %10s %10s  %s\n", "min ms", "median ms", "p90 ms", "model");
  for (const auto& [path, t] : rows) std::printf("%10.3f %10.3f %10.3f  %s\n", t.least, t.median, t.most, path.c_str());
  if (rows.size() > 1) std::printf("%.2f times as quick as %s\n", rows[1].second.median / rows[0].second.median, r.against.c_str());
}

}  // namespace

void add_bench(CLI::App& app, Shared& shared) {
  auto r = std::make_shared<BenchRequest>();
  CLI::App* command = app.add_subcommand("bench", "times a model, e.g. bench out.cre '(1,3,224,224)@f32' --against in.pt");
  command->add_option("model", r->model, "an archive, an engine file or a .pt2 file")->required();
  command->add_option("specs", r->specs, "inputs, (1,3,224,224)@f32; of ranges the size in the middle")->allow_extra_args(false);
  command->add_option("--against", r->against, "another model, timed on the same inputs");
  command->add_option("--method", r->method, "the method")->capture_default_str();
  command->add_option("-n,--runs", r->runs, "runs that count")->check(CLI::Range(1, 1000000))->capture_default_str();
  command->add_option("--warm-up", r->warm_up, "runs before them")->check(CLI::Range(0, 1000000))->capture_default_str();
  command->callback([r, &shared] { run_bench(*r, shared.json); });
}

}  // namespace cresset::cli
