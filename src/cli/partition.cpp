// `cresset partition IN [SPEC...]`: what would become engines, and why not.
#include <cstdio>

#include <cresset/engine/compile.h>

#include "cli/commands.h"
#include "cli/compile_options.h"
#include "cli/models.h"
#include "cli/partition_page.h"

namespace cresset::cli {
namespace {

struct PartitionRequest {
  CompileRequest common;
  std::vector<std::string> what_if;
  std::string html;
  bool nodes = false;
};

struct Counts {
  std::size_t engines = 0, inside = 0, outside = 0;  // nodes; without constants and helpers
};
void count(const engine::Partition& p, Counts& out) {
  for (const engine::Segment& s : p.segments) {
    (s.target == engine::Target::engine ? out.inside : out.outside) += s.nodes.size();
    for (const engine::Partition& inner : s.blocks) count(inner, out);
  }
}
Counts counted(const engine::Partition& p) {
  Counts out;
  out.engines = p.engines();
  count(p, out);
  return out;
}
void print(const char* name, const Counts& c) {
  std::printf("%s: %zu %s with %zu nodes, %zu stay with the interpreter\n", name, c.engines, c.engines == 1 ? "engine" : "engines",
              c.inside, c.outside);
}

void run_partition(PartitionRequest& r) {
  load_libraries(r.common);
  const jit::Module module = read_model(r.common.in);
  engine::CompileOptions options = compile_options(r.common);
  const engine::Partitioned now = engine::partition_method(module, r.common.method, options);
  engine::Partitioned shown = now;
  if (!r.what_if.empty()) {
    options.assume_supported = r.what_if;
    shown = engine::partition_method(module, r.common.method, options);
  }
  std::fputs(engine::report(shown.partition, r.nodes).c_str(), stdout);
  if (!r.what_if.empty()) {
    print("now", counted(now.partition));
    print("with them", counted(shown.partition));
  }
  if (!r.html.empty()) write_partition_page(r.html, r.common.in + ": " + r.common.method, shown.partition);
}

}  // namespace

void add_partition(CLI::App& app, Shared&) {
  auto r = std::make_shared<PartitionRequest>();
  CLI::App* command = app.add_subcommand("partition", "says which nodes of a module would be engines, and why others not");
  add_compile_options(command, r->common);
  command->add_option("specs", r->common.specs, "inputs, (1,3,224,224)@f32 or [(min);(opt);(max)]@f32")->allow_extra_args(false);
  command->add_flag("--explain", r->nodes, "a line for each node");
  command->add_option("--what-if", r->what_if, "operators that the engine is taken to have, aten::index")
      ->allow_extra_args(false)
      ->delimiter(',');
  command->add_option("--html", r->html, "write a page of segments, with a reason for each node");
  command->callback([r] { run_partition(*r); });
}

}  // namespace cresset::cli
