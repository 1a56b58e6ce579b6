// Profiles by line: a pass over every graph that is about to run puts in front of what stands on another line a node that says so.
#include "ir/run/line_profile.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <map>
#include <mutex>
#include <optional>
#include <thread>
#include <unordered_map>

#include <cresset/base/fork.h>
#include <cresset/ir/custom_passes.h>
#include <cresset/ir/operator.h>

#include "ir/operators/builtin_call.h"
#include "ir/run/frame.h"

namespace cresset::jit {

struct LineProfile::Counts {
  struct Both {
    uint64_t hits = 0, nanoseconds = 0;
  };
  std::mutex mutex;
  std::map<std::size_t, Both> by_line;  // by number of the line in the table below
};

namespace {

using LineClock = std::chrono::steady_clock;
using LineCounts = LineProfile::Counts;

const Symbol kProfileLine = Symbol::prim("ProfileLine"), kProfileEnter = Symbol::prim("ProfileEnter"),
             kProfileLeave = Symbol::prim("ProfileLeave");

// The lines of the functions that run on a thread, and since when the innermost one is charged.
struct RunningLines {
  std::vector<int64_t> lines;
  LineClock::time_point since;
};
constexpr int64_t kNoLine = -1;

struct LineRegistry {
  ForkSafe<std::mutex> mutex;
  std::unordered_map<std::thread::id, RunningLines> running;  // not thread-local: such room is scarce in libraries that are loaded late
  std::vector<std::shared_ptr<LineCounts>> enabled;
  std::optional<GraphPassNameType> pass;
  std::vector<std::pair<std::shared_ptr<const Source>, std::size_t>> lines;
  std::map<std::pair<const Source*, std::size_t>, std::size_t> numbers;

  std::size_t number_of(const SourceRange& range) {
    const std::lock_guard lock(mutex);
    const auto [at, fresh] = numbers.emplace(std::pair(range.source().get(), range.line()), lines.size());
    if (fresh) lines.emplace_back(range.source(), range.line());
    return at->second;
  }
};
LineRegistry& line_registry() {
  static auto* made = new LineRegistry;
  return *made;
}

// The registry is locked.
void charge(RunningLines& running, int64_t hit = kNoLine) {
  const LineClock::time_point now = LineClock::now();
  const int64_t line = running.lines.empty() ? kNoLine : running.lines.back();
  const auto spent = static_cast<uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(now - running.since).count());
  running.since = now;
  if (line == kNoLine && hit == kNoLine) return;
  for (const auto& counts : line_registry().enabled) {
    const std::lock_guard own(counts->mutex);
    if (line != kNoLine) counts->by_line[static_cast<std::size_t>(line)].nanoseconds += spent;
    if (hit != kNoLine) ++counts->by_line[static_cast<std::size_t>(hit)].hits;
  }
}

void come_to(int64_t line, bool hit) {
  const std::lock_guard lock(line_registry().mutex);
  RunningLines& running = line_registry().running[std::this_thread::get_id()];
  charge(running, hit ? line : kNoLine);
  if (running.lines.empty()) running.lines.push_back(line);
  running.lines.back() = line;
}
void enter_function() {
  const std::lock_guard lock(line_registry().mutex);
  RunningLines& running = line_registry().running[std::this_thread::get_id()];
  // What an error left behind is forgotten.
  if (Activation::is_outermost()) running.lines.clear();
  charge(running);
  running.lines.push_back(kNoLine);
}
void leave_function() {
  const std::lock_guard lock(line_registry().mutex);
  const auto at = line_registry().running.find(std::this_thread::get_id());
  if (at == line_registry().running.end()) return;
  charge(at->second);
  if (!at->second.lines.empty()) at->second.lines.pop_back();
  if (at->second.lines.empty()) line_registry().running.erase(at);
}

const BuiltinRow kLineRows[] = {
    {"prim::ProfileLine(int line, bool hit) -> ()",
     CRESSET_BUILTIN((int64_t line, bool hit)->void { come_to(line, hit); }),
     {.side_effects = true}},
    {"prim::ProfileEnter() -> ()", CRESSET_BUILTIN(()->void { enter_function(); }), {.side_effects = true}},
    {"prim::ProfileLeave() -> ()", CRESSET_BUILTIN(()->void { leave_function(); }), {.side_effects = true}},
};

class LineMarking {
 public:
  explicit LineMarking(Graph& graph) : graph_(graph) {}
  void run() {
    const WithInsertPoint front(*graph_.nodes().begin());
    graph_.insertNode(graph_.create(kProfileEnter, 0));
    mark(graph_.block(), std::nullopt);
    const WithInsertPoint end(graph_.return_node());
    graph_.insertNode(graph_.create(kProfileLeave, 0));
  }

 private:
  using Line = std::pair<const Source*, std::size_t>;

  void come_to(const SourceRange& range, bool hit, Node* before) {
    const WithInsertPoint guard(before);
    Value* line = graph_.insertConstant(static_cast<int64_t>(line_registry().number_of(range)));
    graph_.insertNode(graph_.create(kProfileLine, {line, graph_.insertConstant(hit)}, 0))->setSourceRange(range);
  }
  // Bodies of loops come to the loop's own line each time.
  void mark(Block* block, const std::optional<SourceRange>& loop) {
    std::optional<Line> current;
    // What each function last came to here: with calls that are inlined the line goes on behind them.
    std::unordered_map<const InlinedCallStack*, Line> last;
    std::vector<Node*> nodes(block->nodes().begin(), block->nodes().end());
    if (loop && !nodes.empty()) come_to(*loop, true, nodes.front());
    for (Node* n : nodes) {
      const SourceRange& range = n->sourceRange();
      if (n->kind() == prim::Constant || n->kind() == kProfileEnter || !range.known()) continue;
      const Line line(range.source().get(), range.line());
      if (current != line) {
        const auto known = last.find(n->callstack().get());
        come_to(range, known == last.end() || known->second != line, n);
      }
      current = line;
      last[n->callstack().get()] = line;
      for (Block* b : n->blocks()) mark(b, n->kind() == prim::Loop ? std::optional(range) : std::nullopt);
      if (!n->blocks().empty()) current.reset(), last.clear();
      if (n->hasAttribute(attr::Subgraph) && n->kindOf(attr::Subgraph) == AttributeKind::g) LineMarking(*n->g(attr::Subgraph)).run();
    }
  }

  Graph& graph_;
};

}  // namespace

LineProfile::LineProfile() : counts_(std::make_shared<Counts>()) {}
LineProfile::~LineProfile() { disable(); }

void LineProfile::enable() {
  static std::once_flag once;
  std::call_once(once, [] { register_builtins(kLineRows, std::size(kLineRows)); });
  LineRegistry& r = line_registry();
  const std::lock_guard lock(r.mutex);
  if (std::find(r.enabled.begin(), r.enabled.end(), counts_) != r.enabled.end()) return;
  r.enabled.push_back(counts_);
  if (!r.pass) r.pass = registerPostPass([](std::shared_ptr<Graph>& graph) { LineMarking(*graph).run(); });
}
void LineProfile::disable() {
  LineRegistry& r = line_registry();
  const std::lock_guard lock(r.mutex);
  std::erase(r.enabled, counts_);
  if (!r.enabled.empty() || !r.pass) return;
  clearPostPass(*r.pass);
  r.pass.reset();
}

std::vector<LineProfile::SourceLines> LineProfile::lines() const {
  std::map<std::size_t, Counts::Both> counts;
  {
    const std::lock_guard lock(counts_->mutex);
    counts = counts_->by_line;
  }
  std::vector<SourceLines> out;
  const std::lock_guard lock(line_registry().mutex);
  for (const auto& [number, both] : counts) {
    const auto& [source, line] = line_registry().lines[number];
    auto at = std::find_if(out.begin(), out.end(), [&, wanted = source.get()](const SourceLines& s) { return s.source.get() == wanted; });
    if (at == out.end()) at = out.insert(out.end(), SourceLines{source, {}});
    at->lines.push_back({line, both.hits, both.nanoseconds});
  }
  for (SourceLines& s : out) std::sort(s.lines.begin(), s.lines.end(), [](const Line& a, const Line& b) { return a.number < b.number; });
  return out;
}

}  // namespace cresset::jit
