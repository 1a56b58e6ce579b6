"""The score card as one HTML file: no other files, no network."""

import html
import json

from .card import COLUMNS, STATUSES
from .text import _CHECKED, _STATE, native_text

__all__ = ["card_html"]

_PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>%(device)s: %(score)s %%</title>
<style>
:root { --ink: #1c2430; --soft: #667085; --line: #dde2ea; --ground: #fff; --panel: #f6f8fb;
        --pass: #2e8b57; --wrong: #c0392b; --error: #d35400; --missing: #8e7cc3; --skip: #b6bdc8; }
@media (prefers-color-scheme: dark) { :root { --ink: #e6e9ee; --soft: #98a2b3; --line: #333b47; --ground: #14181f; --panel: #1c222b; } }
body { font: 15px/1.45 system-ui, sans-serif; color: var(--ink); background: var(--ground); margin: 2rem auto; max-width: 80rem; padding: 0 1rem; }
h1 { font-size: 1.5rem; margin: 0 0 .2rem; } h2 { font-size: 1.1rem; margin: 2rem 0 .5rem; }
p { color: var(--soft); margin: .2rem 0; }
table { border-collapse: collapse; width: 100%%; font-variant-numeric: tabular-nums; }
th, td { text-align: left; padding: .25rem .6rem; border-bottom: 1px solid var(--line); vertical-align: top; }
th { color: var(--soft); font-weight: 600; position: sticky; top: 0; background: var(--ground); }
td.n, th.n { text-align: right; }
.scroll { overflow-x: auto; } code { font-size: .9em; white-space: nowrap; } h1, p { overflow-wrap: anywhere; }
.chip { display: inline-block; border-radius: 3px; padding: 0 .35em; margin: 1px; color: #fff; font-size: .75rem; }
.pass { background: var(--pass); } .wrong { background: var(--wrong); } .error { background: var(--error); }
.missing { background: var(--missing); } .skip { background: var(--skip); }
.controls { display: flex; gap: 1rem; align-items: center; flex-wrap: wrap; margin: .5rem 0; }
input, select { font: inherit; color: inherit; background: var(--panel); border: 1px solid var(--line); border-radius: 4px; padding: .25rem .5rem; }
</style>
</head>
<body>
<h1>%(device)s: %(score)s %%</h1>
<p>%(summary)s</p>
<p>%(native)s</p>
<p>%(about)s</p>
<h2>Checks</h2>
<div class="scroll">%(columns)s</div>
%(sections)s
<h2>Operators</h2>
<div class="controls">
  <label>Name <input id="name" type="search"></label>
  <label>Show <select id="status"><option value="">all</option>%(options)s</select></label>
  <span id="count"></span>
</div>
<div class="scroll"><table id="operators"><thead><tr><th>operator</th><th>runs as</th>%(heads)s</tr></thead><tbody></tbody></table></div>
<script>
const columns = %(column_names)s, operators = %(operators)s;
const body = document.querySelector("#operators tbody"), nameBox = document.querySelector("#name"), statusBox = document.querySelector("#status");
function cell(text) { const td = document.createElement("td"); td.textContent = text; return td; }
function row(operator) {
  const tr = document.createElement("tr");
  const head = cell(""), code = document.createElement("code");
  code.textContent = operator.name; head.append(code); tr.append(head, cell(operator.state));
  for (const column of columns) {
    const td = cell("");
    for (const [dtype, status, reason] of operator.results[column] || []) {
      const chip = document.createElement("span");
      chip.className = "chip " + status; chip.textContent = dtype; chip.title = status + (reason ? ": " + reason : "");
      td.append(chip, " ");
    }
    tr.append(td);
  }
  return tr;
}
function show() {
  const name = nameBox.value.toLowerCase(), status = statusBox.value;
  const chosen = operators.filter(o => o.name.toLowerCase().includes(name) &&
    (!status || Object.values(o.results).some(list => list.some(r => r[1] === status))));
  body.replaceChildren(...chosen.map(row));
  document.querySelector("#count").textContent = chosen.length + " of " + operators.length + " operators";
}
nameBox.addEventListener("input", show); statusBox.addEventListener("change", show);
show();
</script>
</body>
</html>
"""


def _table(head, lines):
    """Text in the first column, numbers in the others."""
    def cells(row, tag):
        return "".join(f"<{tag}{' class=n' if i else ''}>{html.escape(str(c))}</{tag}>" for i, c in enumerate(row))

    return f"<table><tr>{cells(head, 'th')}</tr>" + "".join(f"<tr>{cells(line, 'td')}</tr>" for line in lines) + "</table>"


def _section(title, table):
    return f"<h2>{title}</h2>\n<div class=\"scroll\">{table}</div>\n"


def _script(value):
    """JSON that cannot end the script element."""
    return json.dumps(value, separators=(",", ":")).replace("<", "\\u003c")


def _operators(card):
    found = {}
    for r in card.results:
        entry = found.setdefault(r.op, {"name": r.op, "state": _STATE.get(card.states.get(r.op), ""), "results": {}})
        reason = f"{r.reason} [{r.sample}]" if r.reason and r.sample else r.reason
        entry["results"].setdefault(r.check, []).append([r.dtype, r.status, reason])
    return list(found.values())


def _about(about):
    device = " ".join(filter(None, (about.get("device"), about.get("name"), about.get("description"), about.get("library"))))
    return ", ".join(filter(None, (f"cresset {about['version']}" if "version" in about else "", about.get("date"), device)))


def card_html(card):
    """The text of the page."""
    counts = card.count()
    tried = sum(counts.values()) - counts["skip"]
    columns = [(c, card.count(c)) for c in COLUMNS]
    sections = ""
    if card.needed:
        lines = [(n.model, len(n.state), len(n.by_state("kernel")), len(n.by_state("derived")), len(n.by_state("fallback")), len(n.by_state("missing")))
                 for n in card.needed]
        sections += _section("Example models", _table(("model", "operators", "kernel", "derived", "fallback", "missing"), lines))
        following = [(n.removeprefix("aten::"), len(m), c, ", ".join(m)) for n, m, c in card.next_operators()]
        if following:
            sections += _section("Next operators to write", _table(("operator", "models", "calls", "needed by"), following))
    if card.skips():
        sections += _section("Skipped", _table(("reason", "checks"), card.skips()))
    return _PAGE % {
        "device": html.escape(card.device), "score": f"{card.score:.1f}",
        "summary": f"{counts['pass']} of {tried} checks of {len(card.states)} operators give the CPU's answer; {counts['skip']} skipped{_CHECKED.get(card.device, '')}.",
        "native": html.escape(native_text(card)), "about": html.escape(_about(card.about)),
        "columns": _table(("check", *STATUSES), [(c, *(n[s] for s in STATUSES)) for c, n in columns if n]), "sections": sections,
        "options": "".join(f"<option>{s}</option>" for s in STATUSES), "heads": "".join(f"<th>{c}</th>" for c in COLUMNS),
        "column_names": _script(COLUMNS), "operators": _script(_operators(card)),
    }  # fmt: skip
