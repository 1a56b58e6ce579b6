#include <cresset/engine/engine.h>

#include <map>
#include <mutex>
#include <utility>

#include <cresset/dispatch/library.h>
#include <cresset/ir/ir_parser.h>

#include "engine/cpu/program.h"

namespace cresset::engine {
namespace {

// Of what archives hold: (tag, builder, name, graph's text, weights).
constexpr const char* kFormat = "cresset-engine-1";
using State = std::tuple<std::string, std::string, std::string, std::string, std::vector<Tensor>>;

struct Builders {
  std::mutex mutex;
  std::map<std::string, std::shared_ptr<const EngineBuilder>> by_name;  // replaced ones live on in `kept`
  std::vector<std::shared_ptr<const EngineBuilder>> kept;
};
Builders& builders();

Builders& builders() {
  static Builders all{
      .mutex = {},
      .by_name = {{"cpu", std::make_shared<const EngineBuilder>(EngineBuilder{
                              .name = "cpu", .supports = &cpu::supports, .build = &cpu::build, .without_passes = cpu::without_passes()})}},
      .kept = {}};
  return all;
}

intrusive_ptr<Engine> from_state(const State& state) {
  const auto& [format, builder, name, text, weights] = state;
  CRESSET_CHECK_VALUE(format == kFormat, "engine: format '", kFormat, "' was required; this one is of '", format,
                      "'. Compile the module again with this version.");
  return make_intrusive<Engine>(builder, EngineSource{name, jit::parse_ir(text), weights});
}

}  // namespace

void register_engine_builder(EngineBuilder builder) {
  CRESSET_CHECK_VALUE(!builder.name.empty() && builder.supports && builder.build,
                      "register_engine_builder: a name and the functions supports and build were required.");
  auto shared = std::make_shared<const EngineBuilder>(std::move(builder));
  Builders& all = builders();
  const std::lock_guard lock(all.mutex);
  auto& place = all.by_name[shared->name];
  if (place) {
    warn("register_engine_builder: '" + shared->name + "' replaces the builder of this name.");
    all.kept.push_back(place);
  }
  place = std::move(shared);
}

const EngineBuilder& engine_builder(const std::string& name) {
  Builders& all = builders();
  const std::lock_guard lock(all.mutex);
  const auto found = all.by_name.find(name);
  if (found == all.by_name.end()) {
    std::string known;
    for (const auto& [other, builder] : all.by_name) known += (known.empty() ? "" : ", ") + other;
    CRESSET_THROW(ValueError, "engine: no backend '", name, "' builds engines; there are: ", known, ".");
  }
  return *found->second;
}

std::vector<std::string> engine_builders() {
  Builders& all = builders();
  const std::lock_guard lock(all.mutex);
  std::vector<std::string> out;
  for (const auto& [name, builder] : all.by_name) out.push_back(name);
  return out;
}

Engine::Engine(const std::string& builder, EngineSource source) : builder_(builder), source_(std::move(source)) {
  CRESSET_CHECK_VALUE(source_.graph && source_.graph->inputs().size() >= source_.weights.size(), "engine '", source_.name,
                      "': a graph with an input for each of its ", source_.weights.size(), " weights was required.");
  source_.graph->lint();  // builders rely on it, and the graph may come out of a file
  program_ = engine_builder(builder_).build(source_);
}

std::vector<Tensor> Engine::run(const std::vector<Tensor>& inputs) const {
  CRESSET_CHECK_VALUE(inputs.size() == num_inputs(), "engine '", name(), "': ", num_inputs(), " inputs were required; ", inputs.size(),
                      " were given.");
  return program_->run(inputs);
}

CRESSET_LIBRARY_FRAGMENT(cresset, m) {
  m.class_<Engine>("Engine")
      .def("name", [](const intrusive_ptr<Engine>& e) { return e->name(); })
      .def("backend", [](const intrusive_ptr<Engine>& e) { return e->builder(); })
      .def("graph", [](const intrusive_ptr<Engine>& e) { return e->source().graph->toString(false); })
      .def("program", [](const intrusive_ptr<Engine>& e) { return e->program().describe(); })
      .def_pickle(
          [](const intrusive_ptr<Engine>& e) {
            return State(kFormat, e->builder(), e->name(), e->source().graph->toString(false), e->source().weights);
          },
          [](State state) { return from_state(state); });
  m.def("execute_engine(Tensor[] inputs, __torch__.torch.classes.cresset.Engine engine) -> Tensor[]",
        [](std::vector<Tensor> inputs, const intrusive_ptr<Engine>& engine) { return engine->run(inputs); });
}

}  // namespace cresset::engine
