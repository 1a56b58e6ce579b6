#include "cli/partition_page.h"

#include <fstream>
#include <map>
#include <unordered_map>

#include <cresset/base/error.h>

namespace cresset::cli {
namespace {

constexpr const char* kHead = R"(<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>Partition</title><style>
:root { color-scheme: light dark }
body { font: 15px/1.45 system-ui, sans-serif; margin: 1rem auto; max-width: 70rem; padding: 0 1rem }
details { border: 1px solid #8884; border-left-width: .4rem; border-radius: .3rem; margin: .4rem 0; padding: .3rem .8rem }
details.engine { border-left-color: #2a8f4d } details.interpreter { border-left-color: #c77d1e }
summary { cursor: pointer } table { border-collapse: collapse; margin: .3rem 0 } td, th { padding: .1rem .8rem .1rem 0; text-align: left }
td { font: 12.5px/1.5 ui-monospace, monospace } td:nth-child(2) { font-family: inherit }
</style></head><body>
)";

std::string escaped(const std::string& text) {
  std::string out;
  for (const char c : text) out += c == '<' ? "&lt;" : c == '>' ? "&gt;" : c == '&' ? "&amp;" : c == '"' ? "&quot;" : std::string(1, c);
  return out;
}

std::string names(const std::vector<jit::Value*>& values) {
  std::string out;
  for (const jit::Value* v : values) out += (out.empty() ? "%" : ", %") + v->debugName();
  return out.empty() ? "nothing" : escaped(out);
}

void count_reasons(const engine::Partition& p, std::map<std::string, std::size_t>& out) {
  for (const engine::Decision& d : p.decisions) ++out[to_string(d.reason)];
  for (const engine::Segment& s : p.segments)
    for (const engine::Partition& inner : s.blocks) count_reasons(inner, out);
}

void write_segments(std::ostream& out, const engine::Partition& p) {
  std::unordered_map<const jit::Node*, engine::Reason> reasons;
  for (const engine::Decision& d : p.decisions) reasons[d.node] = d.reason;
  for (std::size_t i = 0; i < p.segments.size(); ++i) {
    const engine::Segment& s = p.segments[i];
    const char* side = s.target == engine::Target::engine ? "engine" : "interpreter";
    out << "<details open class=\"" << side << "\"><summary>segment " << i << ": " << side << ", " << s.nodes.size()
        << (s.nodes.size() == 1 ? " node" : " nodes") << ", of " << names(p.inputs(s)) << " gives " << names(p.outputs(s))
        << "</summary>\n<table><tr><th>operator</th><th>reason</th><th>place</th></tr>\n";
    for (const jit::Node* n : s.nodes)
      out << "<tr><td>" << escaped(n->kind().toQualString()) << "</td><td>" << to_string(reasons.at(n)) << "</td><td>"
          << escaped(n->sourceRange().str()) << "</td></tr>\n";
    out << "</table>\n";
    for (std::size_t b = 0; b < s.blocks.size(); ++b) {
      out << "<p>block " << b << "</p>\n";
      write_segments(out, s.blocks[b]);
    }
    out << "</details>\n";
  }
}

}  // namespace

void write_partition_page(const std::string& file, const std::string& title, const engine::Partition& partition) {
  std::ofstream out(file, std::ios::binary);
  out << kHead << "<h1>" << escaped(title) << "</h1>\n<p>" << partition.engines() << (partition.engines() == 1 ? " engine" : " engines");
  std::map<std::string, std::size_t> reasons;
  count_reasons(partition, reasons);
  for (const auto& [reason, count] : reasons) out << "; " << reason << ": " << count;
  out << "</p>\n";
  write_segments(out, partition);
  out << "</body></html>\n";
  out.flush();
  CRESSET_CHECK(out, file, ": the page cannot be written.");
}

}  // namespace cresset::cli
