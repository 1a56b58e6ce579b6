// The page: graphs as JSON in it, a script that shows one pass at a time with changed lines marked.
#include "cli/lower_page.h"

#include <cstdio>
#include <fstream>
#include <unordered_map>

#include <cresset/base/error.h>

namespace cresset::cli {
namespace {

constexpr const char* kHead = R"(<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>Lowering</title>
<style>
:root { color-scheme: light dark; --line: #8884; --gone: #f003; --new: #0a03; --dim: #888 }
* { box-sizing: border-box }
body { font: 15px/1.45 system-ui, sans-serif; margin: 0; display: grid; grid-template-columns: 19rem 1fr; height: 100vh }
nav { border-right: 1px solid var(--line); overflow: auto; padding: .8rem }
h1 { font-size: 1.05rem; margin: 0 0 .6rem; overflow-wrap: anywhere }
nav label { display: block; color: var(--dim); margin-bottom: .5rem }
nav ol { list-style: none; margin: 0; padding: 0 }
nav button { all: unset; display: flex; width: 100%; gap: .5rem; padding: .15rem .4rem; border-radius: .3rem; cursor: pointer; color: var(--dim) }
nav button:focus-visible { outline: 2px solid currentColor }
nav button.changed { color: inherit; font-weight: 600 }
nav button[aria-current=step] { background: var(--line) }
nav button span:last-child { margin-left: auto; font-weight: 400; color: var(--dim) }
main { display: grid; grid-template-rows: auto 1fr; min-width: 0; min-height: 0 }
header { padding: .7rem 1rem; border-bottom: 1px solid var(--line) }
h2 { margin: 0; font-size: 1.1rem } header p, header ul { margin: .2rem 0 0 }
#graphs { display: grid; grid-template-columns: 1fr 1fr; min-height: 0 }
section { overflow: auto; min-width: 0 } section + section { border-left: 1px solid var(--line) }
h3 { font-size: .85rem; color: var(--dim); margin: .5rem 1rem 0 }
pre { font: 12.5px/1.5 ui-monospace, monospace; margin: 0; padding: .4rem 1rem 1rem; width: max-content; min-width: 100% }
pre .gone { background: var(--gone) } pre .new { background: var(--new) } pre span { display: block; min-height: 1.5em }
@media (max-width: 60rem) { body { display: block; height: auto } nav { border: 0; max-height: 14rem } #graphs { grid-template-columns: 1fr } }
</style></head><body>
<nav><h1></h1><label><input type="checkbox" id="all"> also passes that changed nothing</label><ol></ol></nav>
<main><header><h2></h2><p></p><ul></ul></header>
<div id="graphs"><section><h3>before</h3><pre id="before"></pre></section><section><h3>after</h3><pre id="after"></pre></section></div></main>
<script type="application/json" id="data">)";

// Lines that occur on one side only are marked; the longest common run at both ends costs nothing, so large graphs stay quick.
constexpr const char* kTail = R"(</script>
<script>
const data = JSON.parse(document.getElementById('data').textContent), list = document.querySelector('ol'), all = document.getElementById('all');
document.querySelector('h1').textContent = data.title;
function marks(a, b) {
  let start = 0, end = 0;
  while (start < a.length && start < b.length && a[start] === b[start]) start++;
  while (end < a.length - start && end < b.length - start && a[a.length - 1 - end] === b[b.length - 1 - end]) end++;
  const p = a.slice(start, a.length - end), q = b.slice(start, b.length - end), gone = new Set(), fresh = new Set();
  if (p.length * q.length > 4e6) {
    const inA = new Set(p), inB = new Set(q);
    p.forEach((line, i) => inB.has(line) || gone.add(start + i));
    q.forEach((line, i) => inA.has(line) || fresh.add(start + i));
    return [gone, fresh];
  }
  const width = q.length + 1, table = new Uint32Array((p.length + 1) * width);
  for (let i = p.length - 1; i >= 0; i--)
    for (let j = q.length - 1; j >= 0; j--)
      table[i * width + j] = p[i] === q[j] ? table[(i + 1) * width + j + 1] + 1 : Math.max(table[(i + 1) * width + j], table[i * width + j + 1]);
  for (let i = 0, j = 0; i < p.length || j < q.length;) {
    if (i < p.length && j < q.length && p[i] === q[j]) { i++; j++; }
    else if (j >= q.length || (i < p.length && table[(i + 1) * width + j] >= table[i * width + j + 1])) gone.add(start + i++);
    else fresh.add(start + j++);
  }
  return [gone, fresh];
}
function fill(id, lines, marked, name) {
  document.getElementById(id).replaceChildren(...lines.map((line, i) => {
    const span = document.createElement('span');
    span.textContent = line;
    if (marked.has(i)) span.className = name;
    return span;
  }));
}
function show(k) {
  const step = data.steps[k], a = data.texts[step.before].split('\n'), b = data.texts[step.after].split('\n'), [gone, fresh] = marks(a, b);
  document.querySelector('h2').textContent = `${k} ${step.name} (${step.changed ? 'changed' : 'unchanged'})`;
  document.querySelector('header p').textContent = `${step.summary}; ${(step.seconds * 1e3).toFixed(3)} ms; ${gone.size} lines gone, ${fresh.size} new`;
  document.querySelector('header ul').replaceChildren(...step.notes.map(text => Object.assign(document.createElement('li'), {textContent: text})));
  fill('before', a, gone, 'gone');
  fill('after', b, fresh, 'new');
  for (const button of list.querySelectorAll('button')) button.toggleAttribute('aria-current', +button.dataset.step === k);
  list.querySelector('[aria-current]')?.setAttribute('aria-current', 'step');
  current = k;
}
function entries() {
  list.replaceChildren(...data.steps.flatMap((step, k) => {
    if (!step.changed && !all.checked) return [];
    const button = document.createElement('button'), name = document.createElement('span'), time = document.createElement('span'), item = document.createElement('li');
    button.dataset.step = k;
    button.className = step.changed ? 'changed' : '';
    name.textContent = step.name;
    time.textContent = (step.seconds * 1e3).toFixed(1) + ' ms';
    button.append(name, time);
    button.onclick = () => show(k);
    item.append(button);
    return [item];
  }));
}
let current = Math.max(0, data.steps.findIndex(step => step.changed));
all.checked = !data.steps.some(step => step.changed);
all.onchange = () => { entries(); show(current); };
document.onkeydown = event => {
  const move = {ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1}[event.key];
  if (!move) return;
  const shown = [...list.querySelectorAll('button')].map(button => +button.dataset.step), at = shown.indexOf(current) + move;
  if (shown[at] !== undefined) { show(shown[at]); event.preventDefault(); }
};
if (data.steps.length) { entries(); show(current); }
</script></body></html>
)";

// A JSON string that may stand inside of a script element.
std::string json(const std::string& text) {
  std::string out = "\"";
  for (const char c : text) {
    switch (c) {
      case '"': out += "\\\""; break;
      case '\\': out += "\\\\"; break;
      case '\n': out += "\\n"; break;
      case '<': out += "\\u003c"; break;
      default:
        if (static_cast<unsigned char>(c) < 0x20) {
          char escaped[8];
          std::snprintf(escaped, sizeof escaped, "\\u%04x", static_cast<unsigned char>(c));
          out += escaped;
        } else {
          out += c;
        }
    }
  }
  return out + "\"";
}

}  // namespace

void write_page(const std::string& file, const std::string& title, const std::vector<Step>& steps) {
  // Most passes leave the text as it was: each text once.
  std::vector<const std::string*> texts;
  std::unordered_map<std::string, std::size_t> numbers;
  const auto number = [&](const std::string& text) {
    const auto [at, fresh] = numbers.emplace(text, texts.size());
    if (fresh) texts.push_back(&at->first);
    return std::to_string(at->second);
  };
  std::string data = "{\"title\":" + json(title) + ",\"steps\":[";
  for (std::size_t i = 0; i < steps.size(); ++i) {
    const Step& s = steps[i];
    data += (i ? "," : "") + ("{\"name\":" + json(s.name)) + ",\"summary\":" + json(s.summary) +
            ",\"changed\":" + (s.changed ? "true" : "false") + ",\"seconds\":" + std::to_string(s.seconds) +
            ",\"before\":" + number(s.before) + ",\"after\":" + number(s.after) + ",\"notes\":[";
    for (std::size_t k = 0; k < s.notes.size(); ++k) data += (k ? "," : "") + json(s.notes[k]);
    data += "]}";
  }
  data += "],\"texts\":[";
  for (std::size_t i = 0; i < texts.size(); ++i) data += (i ? "," : "") + json(*texts[i]);
  data += "]}";
  std::ofstream out(file, std::ios::binary);
  out << kHead << data << kTail;
  CRESSET_CHECK(out, file, ": the page cannot be written.");
}

}  // namespace cresset::cli
