#include "ir/run/frame.h"

#include <cresset/base/stack.h>

namespace cresset::jit {

Arena& Arena::get() {
  static thread_local const auto arena = std::make_unique<Arena>();
  return *arena;
}
void Arena::grow(std::size_t bytes) {
  const std::size_t size = std::max<std::size_t>(bytes, 256 << 10);
  if (spare_ && spare_size_ >= size) {
    chunks_.push_back(std::move(spare_));
    capacity_ = spare_size_;
  } else {
    chunks_.push_back(std::make_unique<std::byte[]>(size));
    capacity_ = size;
  }
  used_ = 0;
}
void Arena::drop_chunks(std::size_t kept) {
  // One chunk more than needed is kept, so that calls at the edge of a chunk do not allocate each time.
  while (chunks_.size() > kept + 1) chunks_.pop_back();
  spare_ = std::move(chunks_.back());
  spare_size_ = capacity_;
  chunks_.pop_back();
}

void Frame::append_text(const Call& c) {
  count_call();
  const Operand* operands = code_.operands.data() + c.in_begin;
  IValue& left = r[operands[0].index];
  alignas(IValue) std::byte unused[sizeof(IValue)];
  const std::string& right = in_place(operands[1], unused)->toStringRef();
  const auto text = left.toString();
  if (text.use_count() == 2)  // the register's and this one
    text->text += right;
  else
    left = IValue(text->text + right);
  store(std::move(left), code_.operands[c.out_begin]);
}

void Frame::step(const Instruction& i) {
  active->at = &i;
  switch (i.op) {
    case Opcode::COPY: r[i.a] = r[i.b]; return;
    case Opcode::TAKE: r[i.a] = std::move(r[i.b]); return;
    case Opcode::LOAD: r[i.a] = code_.constants[i.b]; return;
    case Opcode::DROP: r[i.a] = IValue(); return;
    case Opcode::BOX_INT: r[i.a] = IValue(s[i.b].i); return;
    case Opcode::BOX_FLOAT: r[i.a] = IValue(s[i.b].d); return;
    case Opcode::BOX_BOOL: r[i.a] = IValue(s[i.b].i != 0); return;
    case Opcode::UNBOX_INT: s[i.a].i = r[i.b].toInt(); return;
    case Opcode::UNBOX_FLOAT: s[i.a].d = r[i.b].toDouble(); return;
    case Opcode::UNBOX_BOOL: s[i.a].i = r[i.b].toBool(); return;
    case Opcode::LIST_GET: r[i.a] = IValue(element(r[i.b], s[i.c].i)); return;
    case Opcode::LIST_SET: element(r[i.b], s[i.c].i) = r[i.a]; return;
    case Opcode::LIST_APPEND: r[i.b].toListImpl().elements.push_back(r[i.a]); return;
    case Opcode::CALL_IN_PLACE: call_in_place(code_.calls[i.a]); return;
    case Opcode::APPEND_TEXT: append_text(code_.calls[i.a]); return;
    default: execute_call(code_, *this, i, *stack);
  }
}

namespace {

thread_local Active* innermost = nullptr;
thread_local int depth = 0;
thread_local bool has_trace = false;  // the exception on its way up has its trace already
constexpr int kDeepestCall = 2000;

std::string place(const Active& a) {
  const std::size_t index = static_cast<std::size_t>(a.at - a.code->instructions.data());
  const Node* n = a.code->sources[std::min(index, a.code->sources.size() - 1)];
  std::string out;
  const auto line = [&](const SourceRange& range, const std::string& function, const Node* node) {
    if (range.known() && !range.source()->text().empty()) {
      const std::string_view text = range.source()->line_text(range.line());
      out +=
          "  File \"" + range.filename() + "\", line " + std::to_string(range.line()) + ", in " + function + "\n" + std::string(text) +
          "\n" + std::string(range.column(), ' ') +
          std::string(std::max<std::size_t>(1, std::min(range.end() - range.start(), text.size() - std::min(text.size(), range.column()))),
                      '~') +
          " <--- HERE\n";
    } else if (range.known()) {
      out += "  File \"" + range.filename() + "\", line " + std::to_string(range.line()) + ", in " + function +
             (node ? ": " + node->str() : "") + "\n";
    } else {
      out += "  in " + function + (node ? ": " + node->str() : "") + "\n";
    }
  };
  std::string function = a.code->name;
  for (const InlinedCallStack* c = n->callstack().get(); c; c = c->callee.get()) {
    line(c->call_site, function, nullptr);
    function = c->function_name + (c->module_path.empty() ? "" : " [" + c->module_path + "]");
  }
  line(n->sourceRange(), function, n->kind() == prim::Return ? nullptr : n);
  return out;
}

std::string stack_trace() {
  std::vector<const Active*> frames;
  for (const Active* a = innermost; a; a = a->below) frames.push_back(a);
  std::string out = "The following operation failed in the TorchScript interpreter.\nTraceback of TorchScript (most recent call last):\n";
  constexpr std::size_t kShown = 40;  // of a deep recursion the ends
  for (std::size_t i = frames.size(); i-- > 0;) {
    if (frames.size() > kShown && i < frames.size() - kShown / 2 && i >= kShown / 2) {
      if (i == kShown / 2) out += "  ...\n";
      continue;
    }
    out += place(*frames[i]);
  }
  out.pop_back();
  return out;
}

}  // namespace

Activation::Activation(const Code::Impl& code) : active{&code, code.instructions.data(), innermost} {
  CRESSET_CHECK(depth < kDeepestCall, "maximum recursion depth exceeded in '", code.name, "': ", kDeepestCall,
                " calls of scripts are active.");
  check_stack("scripts");
  innermost = &active;
  ++depth;
}
Activation::~Activation() {
  innermost = active.below;
  if (--depth == 0) has_trace = false;
}
bool Activation::is_outermost() { return depth <= 1; }
void Activation::annotate(Error& e) {
  if (has_trace) return;
  e.add_context(stack_trace());
  has_trace = true;
}

}  // namespace cresset::jit
