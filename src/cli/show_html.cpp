#include "cli/show_html.h"

#include <map>

#include <cresset/dispatch/tensor_type.h>

namespace cresset::cli {
namespace {

constexpr std::size_t kDeepest = 100;      // calls and blocks inside of one another
constexpr std::size_t kMostNodes = 50000;  // of all graphs; calls behind that stay closed

constexpr const char* kGraphHead = R"(<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>)";
constexpr const char* kStyle = R"(</title><style>
body { font: 14px/1.5 system-ui, sans-serif; margin: 0; color: #1c1e21; background: #fff; }
header { position: sticky; top: 0; background: #fff; border-bottom: 1px solid #d8dade; padding: 8px 16px; }
header h1 { display: inline; font-size: 17px; margin-right: 16px; }
input { font: inherit; width: 22em; padding: 2px 6px; }
main { display: grid; grid-template-columns: minmax(0, 3fr) minmax(0, 2fr); gap: 16px; padding: 8px 16px; }
section { overflow-x: auto; }
h2 { font-size: 15px; margin: 12px 0 4px; }
.node, summary, .line, .tensor { font: 12px/1.6 ui-monospace, monospace; white-space: pre; }
details { margin-left: 14px; border-left: 1px solid #d8dade; padding-left: 6px; }
details > summary { cursor: pointer; }
.node a { color: #6b7280; text-decoration: none; }
.hit { background: #fff3b0; }
.line:target { background: #cfe8ff; }
.line span { color: #9aa0a8; display: inline-block; width: 4em; }
@media (prefers-color-scheme: dark) {
  body, header { background: #17191c; color: #e3e5e8; }
  .hit { background: #5c4d00; } .line:target { background: #14405f; }
}
</style></head><body>
)";
constexpr const char* kScript = R"(<script>
const search = document.getElementById("search"), found = document.getElementById("found");
search.addEventListener("input", () => {
  const words = search.value.trim().toLowerCase();
  let hits = 0;
  for (const e of document.querySelectorAll(".node, .module > summary")) {
    const hit = words !== "" && e.textContent.toLowerCase().includes(words);
    e.classList.toggle("hit", hit);
    if (!hit) continue;
    ++hits;
    for (let d = e.parentElement; d; d = d.parentElement) if (d.tagName === "DETAILS") d.open = true;
  }
  found.textContent = words === "" ? "" : hits + " found";
  const first = document.querySelector(".hit");
  if (first) first.scrollIntoView({block: "center"});
});
if (location.hash.startsWith("#find=")) {
  search.value = decodeURIComponent(location.hash.slice(6));
  search.dispatchEvent(new Event("input"));
}
</script></body></html>
)";

std::string escaped(std::string_view s) {
  std::string out;
  for (char c : s) {
    switch (c) {
      case '<': out += "&lt;"; break;
      case '>': out += "&gt;"; break;
      case '&': out += "&amp;"; break;
      case '"': out += "&quot;"; break;
      default: out += c;
    }
  }
  return out;
}

class Page {
 public:
  std::string run(const jit::Module& module, const jit::Method& method) {
    const std::string title = jit::unmangled_name(module.type()->name);
    out_ = kGraphHead + escaped(title) + kStyle;
    out_ += "<header><h1>" + escaped(title) +
            "</h1><input id=\"search\" placeholder=\"operator, value, module\"> <span id=\"found\"></span></header>\n<main><section>\n";
    out_ += "<h2>Modules</h2>\n<div id=\"modules\">\n";
    modules("", module, 0);
    out_ += "</div>\n<h2>" + escaped(method.name()) + "</h2>\n<div id=\"graph\">\n";
    graph(*method.graph(), 0);
    out_ += "</div>\n</section><section id=\"sources\">\n";
    sources();
    out_ += "</section></main>\n";
    return out_ + kScript;
  }

 private:
  void modules(const std::string& name, const jit::Module& m, std::size_t depth) {
    const bool closed = depth > 0;
    out_ += std::string("<details class=\"module\"") + (closed ? "" : " open") + "><summary>" + escaped(name.empty() ? "" : name + ": ") +
            escaped(m.type()->base_name()) + "</summary>\n";
    for (const bool buffers : {false, true})
      for (const auto& [own, t] : buffers ? m.named_buffers(false) : m.named_parameters(false))
        out_ += "<div class=\"tensor\">" + escaped(own) + " : " + escaped(TensorType::create(t)->str()) + (buffers ? " (buffer)" : "") +
                "</div>\n";
    if (depth < kDeepest)
      for (const auto& [child, inner] : m.named_children()) modules(child, inner, depth + 1);
    out_ += "</details>\n";
  }

  void graph(const jit::Graph& g, std::size_t depth) {
    for (const jit::Value* v : g.inputs())
      out_ += "<div class=\"node\">" + escaped("%" + v->debugName() + " : " + v->type()->str()) + "</div>\n";
    block(*g.block(), depth);
  }
  void block(const jit::Block& b, std::size_t depth) {
    for (const jit::Node* n : b.nodes()) {
      ++nodes_;
      node(*n);
      if (depth >= kDeepest) continue;
      for (std::size_t i = 0; i < n->blocks().size(); ++i) {
        out_ += "<details open><summary>block " + std::to_string(i) + "</summary>\n";
        block(*n->blocks()[i], depth + 1);
        out_ += "</details>\n";
      }
      if (const jit::Function* callee = called(*n); callee && callee->graph() && nodes_ < kMostNodes) {
        out_ += "<details class=\"call\"><summary>" + escaped(jit::unmangled_name(callee->qualname())) + "</summary>\n";
        graph(*callee->graph(), depth + 1);
        out_ += "</details>\n";
      }
    }
    std::string results;
    for (const jit::Value* v : b.outputs()) results += (results.empty() ? "%" : ", %") + v->debugName();
    out_ += "<div class=\"node\">" + escaped((b.owningNode() ? "-> (" : "return (") + results + ")") + "</div>\n";
  }
  static const jit::Function* called(const jit::Node& n) {
    if (n.kind() == jit::prim::CallMethod) {
      const auto cls = n.input(0)->type()->cast<jit::ClassType>();
      return cls ? cls->findMethod(n.s(jit::attr::name)) : nullptr;
    }
    if (n.kind() != jit::prim::CallFunction) return nullptr;
    const auto type = n.input(0)->type()->cast<jit::FunctionType>();
    return type ? type->function() : nullptr;
  }
  void node(const jit::Node& n) {
    const SourcePlace place = source_of(n);
    std::string text = n.str();
    if (const std::size_t comment = text.rfind(" # "); comment != std::string::npos && !place.link.empty()) text.resize(comment);
    out_ += "<div class=\"node\">" + escaped(text) +
            (place.link.empty() ? "" : " <a href=\"#" + place.link + "\">" + escaped(place.text) + "</a>") + "</div>\n";
  }

  struct SourcePlace {
    std::string link, text;
  };
  SourcePlace source_of(const jit::Node& n) {
    const jit::SourceRange& r = n.sourceRange();
    if (!r.known() || r.source()->text().empty()) return {};
    const auto [found, added] = source_numbers_.try_emplace(r.source().get(), sources_.size());
    if (added) sources_.push_back(r.source());
    return {"s" + std::to_string(found->second) + "-" + std::to_string(r.line()), r.filename() + ":" + std::to_string(r.line())};
  }
  void sources() {
    for (std::size_t i = 0; i < sources_.size(); ++i) {
      const jit::Source& s = *sources_[i];
      out_ += "<h2>" + escaped(s.filename()) + "</h2>\n";
      std::string_view rest = s.text();
      for (std::size_t line = s.first_line(); !rest.empty(); ++line) {
        const std::size_t end = std::min(rest.find('\n'), rest.size());
        out_ += "<div class=\"line\" id=\"s" + std::to_string(i) + "-" + std::to_string(line) + "\"><span>" + std::to_string(line) +
                "</span>" + escaped(rest.substr(0, end)) + "</div>\n";
        rest.remove_prefix(std::min(end + 1, rest.size()));
      }
    }
  }

  std::string out_;
  std::size_t nodes_ = 0;
  std::vector<std::shared_ptr<const jit::Source>> sources_;
  std::map<const jit::Source*, std::size_t> source_numbers_;
};

}  // namespace

std::string html_page(const jit::Module& module, const jit::Method& method) { return Page().run(module, method); }

}  // namespace cresset::cli
