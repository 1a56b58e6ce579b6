#include <cresset/engine/engine.h>

#include <algorithm>
#include <charconv>
#include <iterator>
#include <map>
#include <mutex>
#include <sstream>
#include <utility>

#include <cresset/core/scalar_type.h>
#include <cresset/dispatch/library.h>
#include <cresset/engine/converters.h>
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
  static Builders all{.mutex = {},
                      .by_name = {{"cpu", std::make_shared<const EngineBuilder>(EngineBuilder{.name = "cpu",
                                                                                              .supports = &cpu::supports,
                                                                                              .build = &cpu::build,
                                                                                              .without_passes = cpu::without_passes(),
                                                                                              .precisions = cpu::precisions()})}},
                      .kept = {}};
  return all;
}

intrusive_ptr<Engine> from_state(const State& state) {
  const auto& [format, builder, name, text, weights] = state;
  CRESSET_CHECK_VALUE(format == kFormat, "engine: format '", kFormat, "' was required; this one is of '", format,
                      "'. Compile the module again with this version.");
  return make_intrusive<Engine>(builder, source_of_text(name, text, weights));
}

constexpr std::string_view kPrecisions = "# precisions", kRanges = "# ranges";

// The words of a line behind its title.
std::vector<std::string> words_of(std::string_view line, std::string_view title) {
  std::istringstream in{std::string(line.substr(title.size()))};
  return {std::istream_iterator<std::string>(in), {}};
}
void add_number(std::string& out, double v) {
  char text[32];
  out.append(1, ' ').append(text, std::to_chars(text, text + sizeof text, v).ptr);
}
double number_of(const std::string& word) {
  double out = 0;
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), out);
  CRESSET_CHECK_VALUE(error == std::errc() && end == word.data() + word.size(), "engine: '", word, "' is no number of a range.");
  return out;
}

}  // namespace

std::string source_text(const EngineSource& source) {
  std::string out;
  if (source.precisions != std::vector<ScalarType>{ScalarType::Float}) {
    out += kPrecisions;
    for (const ScalarType t : source.precisions) out.append(1, ' ').append(dtype_name(t));
    out += "\n";
  }
  if (!source.ranges.empty()) {
    out += kRanges;
    for (const Range& r : source.ranges) {
      add_number(out, r.least);
      add_number(out, r.most);
    }
    out += "\n";
  }
  return out + source.graph->toString(false);
}

EngineSource source_of_text(std::string name, const std::string& text, std::vector<Tensor> weights) {
  EngineSource out{std::move(name), nullptr, std::move(weights)};
  std::string_view rest = text;
  const auto line = [&] { return rest.substr(0, rest.find('\n')); };
  const auto next = [&] { rest.remove_prefix(std::min(rest.size(), line().size() + 1)); };
  if (rest.starts_with(kPrecisions)) {
    out.precisions.clear();
    for (const std::string& word : words_of(line(), kPrecisions)) {
      const auto dtype = dtype_from_name(word);
      CRESSET_CHECK_VALUE(dtype, "engine: '", word, "' is no dtype.");
      out.precisions.push_back(*dtype);
    }
    next();
  }
  if (rest.starts_with(kRanges)) {
    const std::vector<std::string> words = words_of(line(), kRanges);
    CRESSET_CHECK_VALUE(words.size() % 2 == 0, "engine: two numbers were required for each range.");
    for (std::size_t i = 0; i < words.size(); i += 2) out.ranges.push_back({number_of(words[i]), number_of(words[i + 1])});
    next();
  }
  out.graph = jit::parse_ir(std::string(rest));
  return out;
}

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
  program_ = engine_builder(builder_).build(converted(builder_, source_));
}

std::vector<Tensor> Engine::run(const std::vector<Tensor>& inputs) const {
  CRESSET_CHECK_VALUE(inputs.size() == num_inputs(), "engine '", name(), "': ", num_inputs(), " inputs were required; ", inputs.size(),
                      " were given.");
  if (observers_) {  // calibration's caller alone runs it now
    const std::vector<Tensor> seen = program_->observe(inputs);
    observers_->resize(seen.size());
    for (std::size_t i = 0; i < seen.size(); ++i) (*observers_)[i].add(seen[i]);
  }
  return program_->run(inputs);
}

void Engine::begin_calibration() { observers_ = std::make_unique<std::vector<RangeObserver>>(); }

void Engine::end_calibration(const CalibrationMethod& method) {
  check_calibration_method(method);
  CRESSET_CHECK_VALUE(observers_, "engine '", name(), "': end_calibration: begin_calibration() was required before it.");
  source_.ranges.clear();
  for (const RangeObserver& one : *observers_) source_.ranges.push_back(one.range(method));
  observers_.reset();
  program_ = engine_builder(builder_).build(converted(builder_, source_));
}

CRESSET_LIBRARY_FRAGMENT(cresset, m) {
  m.class_<Engine>("Engine")
      .def("name", [](const intrusive_ptr<Engine>& e) { return e->name(); })
      .def("backend", [](const intrusive_ptr<Engine>& e) { return e->builder(); })
      .def("graph", [](const intrusive_ptr<Engine>& e) { return e->source().graph->toString(false); })
      .def("precisions",
           [](const intrusive_ptr<Engine>& e) {
             std::vector<std::string> names;
             for (const ScalarType t : e->source().precisions) names.emplace_back(dtype_name(t));
             return names;
           })
      .def("memory",
           [](const intrusive_ptr<Engine>& e) {
             const RunMemory m = e->program().memory();
             return std::vector<int64_t>{m.arena, m.blocks};
           })
      .def("program", [](const intrusive_ptr<Engine>& e) { return e->program().describe(); })
      .def_pickle(
          [](const intrusive_ptr<Engine>& e) {
            return State(kFormat, e->builder(), e->name(), source_text(e->source()), e->source().weights);
          },
          [](State state) { return from_state(state); });
  m.def("execute_engine(Tensor[] inputs, __torch__.torch.classes.cresset.Engine engine) -> Tensor[]",
        [](std::vector<Tensor> inputs, const intrusive_ptr<Engine>& engine) { return engine->run(inputs); });
}

}  // namespace cresset::engine
