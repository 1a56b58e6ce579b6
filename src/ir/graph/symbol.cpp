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
    CRESSET_INTERNAL_ASSERT(id < entries_.size(), "symbol ", id);
    return entries_[id];
  }

 private:
  Table() {
    add("none::none");
#define CRESSET_ADD(ns, name) add(#ns "::" #name);
    CRESSET_FORALL_SYMBOLS(CRESSET_ADD)
#undef CRESSET_ADD
  }
  uint32_t add(std::string_view text) {
    if (const auto found = numbers_.find(text); found != numbers_.end()) return found->second;
    const std::size_t colons = text.find("::");
    CRESSET_CHECK(colons != std::string_view::npos && colons > 0, "Symbol: a qualified name such as aten::add was required; '", text,
                  "' was given.");
    entries_.push_back({SymbolText(text.begin(), text.end()), colons});
    const auto id = static_cast<uint32_t>(entries_.size() - 1);
    numbers_.emplace(entries_.back().qualified, id);
    return id;
  }
  mutable ForkSafe<std::shared_mutex> mutex_;
  std::deque<Entry> entries_;
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
