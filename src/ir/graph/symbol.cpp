// The table of interned names: grows, never shrinks; texts stay at their addresses.
#include <cresset/base/fork.h>
#include <cresset/ir/symbols.h>

#include <deque>
#include <mutex>
#include <ostream>
#include <shared_mutex>
#include <unordered_map>

#include <cresset/base/error.h>

namespace cresset::jit {
namespace {

struct Entry {
  SymbolText qualified;
  std::size_t ns_length;
};

// Numbers from here on are made of the text (FNV-1a): those of operators and arguments, which programs hold as constants.
constexpr uint32_t kFirstOfText = 0x80000000u;
uint32_t number_of_text(std::string_view text) {
  uint32_t value = 2166136261u;
  for (const char c : text) value = (value ^ static_cast<unsigned char>(c)) * 16777619u;
  return value | kFirstOfText;
}
bool has_number_of_text(std::string_view text) { return text.starts_with("aten::") || text.starts_with("attr::"); }

class Table {
 public:
  static Table& get() {
    static Table* table = new Table;
    return *table;
  }
  uint32_t intern(std::string_view text) {
    {
      const std::shared_lock lock(mutex_);
      if (const auto found = numbers_.find(text); found != numbers_.end()) return found->second;
    }
    const std::unique_lock lock(mutex_);
    return add(text);
  }
  const Entry& entry(uint32_t id) const {
    const std::shared_lock lock(mutex_);
    if (id >= kFirstOfText) {
      const auto found = entries_of_text_.find(id);
      CRESSET_INTERNAL_ASSERT(found != entries_of_text_.end(), "symbol ", id);
      return found->second;
    }
    CRESSET_INTERNAL_ASSERT(id < entries_.size(), "symbol ", id);
    return entries_[id];
  }

 private:
  Table() {
    entries_.resize(CRESSET_LISTED_SYMBOLS + 1);
    put("none::none", 0);
#define CRESSET_ADD(ns, name, number) put(#ns "::" #name, number);
    CRESSET_FORALL_SYMBOLS(CRESSET_ADD)
#undef CRESSET_ADD
  }
  void put(std::string_view text, uint32_t id) {
    Entry& e = id >= kFirstOfText ? entries_of_text_[id] : entries_[id];
    e = {SymbolText(text.begin(), text.end()), text.find("::")};
    numbers_.emplace(e.qualified, id);
  }
  uint32_t add(std::string_view text) {
    if (const auto found = numbers_.find(text); found != numbers_.end()) return found->second;
    const std::size_t colons = text.find("::");
    CRESSET_CHECK(colons != std::string_view::npos && colons > 0, "Symbol: a qualified name such as aten::add was required; '", text,
                  "' was given.");
    uint32_t id = static_cast<uint32_t>(entries_.size());
    if (has_number_of_text(text)) {
      id = number_of_text(text);
      while (entries_of_text_.contains(id)) id = (id + 1) | kFirstOfText;
    } else {
      entries_.emplace_back();
    }
    put(text, id);
    return id;
  }
  mutable ForkSafe<std::shared_mutex> mutex_;
  std::deque<Entry> entries_;
  std::unordered_map<uint32_t, Entry> entries_of_text_;
  std::unordered_map<std::string_view, uint32_t> numbers_;
};

}  // namespace

Symbol Symbol::fromQualString(std::string_view qualified) { return Symbol(Table::get().intern(qualified)); }
const SymbolText& Symbol::toQualString() const { return Table::get().entry(id_).qualified; }
SymbolBase Symbol::toUnqualString() const {
  const Entry& e = Table::get().entry(id_);
  return SymbolBase(e.qualified.data() + e.ns_length + 2, e.qualified.size() - e.ns_length - 2);
}
std::string_view Symbol::ns() const {
  const Entry& e = Table::get().entry(id_);
  return std::string_view(e.qualified.data(), e.ns_length);
}

std::ostream& operator<<(std::ostream& out, Symbol s) { return out << static_cast<const std::string&>(s.toQualString()); }

}  // namespace cresset::jit
