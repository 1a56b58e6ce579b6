// Announcing tables, and finding an operator's rows in them.
#include "dispatch/operator_tables.h"

#include <algorithm>
#include <mutex>
#include <string>
#include <utility>

#include "dispatch/dispatcher_state.h"

namespace cresset {

impl::OperatorEntry* LazyOperator::find() {
  impl::OperatorEntry* entry = Dispatcher::singleton().findSchemaOrThrow(name_, overload_).entry();
  entry_.store(entry, std::memory_order_release);
  return entry;
}

namespace tables {

std::string place(const char* file, uint32_t line) { return "registered at " + std::string(file) + ":" + std::to_string(line); }

SchemaTable::SchemaTable(const char* f, const SchemaRow* r, std::size_t n) : file(f), rows(r), count(n) {
  Dispatcher::State& state = *Dispatcher::singleton().state_;
  std::lock_guard lock(state.mutex);
  state.announced_schemas.push_back(this);
}
KernelTable::KernelTable(DispatchKey k, const char* f, const KernelRow* r, std::size_t n) : key(k), file(f), rows(r), count(n) {
  Dispatcher::State& state = *Dispatcher::singleton().state_;
  std::lock_guard lock(state.mutex);
  state.announced_kernels.push_back(this);
}

void Index::add(const SchemaTable& table) {
  for (const SchemaRow* row = table.rows; row != table.rows + table.count; ++row) {
    const std::string_view schema(row->schema), full = schema.substr(0, schema.find('('));
    Operator& op = operators_[full];
    op.table = &table;
    op.schema = row;
    overloads_[full.substr(0, full.find('.'))].push_back(full);
  }
}

void Index::add(const KernelTable& table) {
  for (const KernelRow* row = table.rows; row != table.rows + table.count; ++row) operators_[row->name].kernels.push_back({&table, row});
}

std::optional<Index::Operator> Index::take(const std::string& name, bool signature_is_known) {
  const auto it = operators_.find(name);
  if (it == operators_.end() || !(it->second.schema || signature_is_known)) return std::nullopt;
  Operator out = std::move(it->second);
  operators_.erase(it);
  return out;
}

KernelFunction kernel_of(impl::OperatorEntry& op, const KernelRow& row) {
  void* const entry = const_cast<void*>(row.entry);
  const SignatureCode& code = *op.signature_code;
  switch (row.kind) {
    case Entry::Function: return KernelFunction::makeFromEntries(code.boxed, entry);
    case Entry::OfOperator:
      return KernelFunction::makeFromEntries(code.boxed, entry, make_intrusive<OperatorKernelOf>(op.name.name.c_str(), &op, code));
    case Entry::Maker: return reinterpret_cast<KernelFunction (*)()>(entry)();
    case Entry::Fallthrough: break;
  }
  return KernelFunction::makeFallthrough();
}

std::vector<std::string> Index::names_of(const std::string& name) const {
  std::vector<std::string> out;
  if (const auto it = overloads_.find(name); it != overloads_.end())
    for (const std::string_view full : it->second)
      if (operators_.count(full)) out.emplace_back(full);
  return out;
}

std::size_t Index::place_of(const std::string& name, const std::string& name_with_overload) const {
  const auto it = overloads_.find(name);
  if (it == overloads_.end()) return 0;
  return static_cast<std::size_t>(std::find(it->second.begin(), it->second.end(), name_with_overload) - it->second.begin());
}

std::vector<std::string> Index::names() const {
  std::vector<std::string> out;
  out.reserve(operators_.size());
  for (const auto& [name, op] : operators_) out.emplace_back(name);
  return out;
}

}  // namespace tables

namespace {
std::vector<std::string> split(std::string_view tags) {
  std::vector<std::string> out;
  while (!tags.empty()) {
    const auto end = tags.find(' ');
    out.emplace_back(tags.substr(0, end));
    tags = end == std::string_view::npos ? std::string_view() : tags.substr(end + 1);
  }
  return out;
}
}  // namespace

void Dispatcher::State::index_announced() {
  if (CRESSET_LIKELY(announced_schemas.empty() && announced_kernels.empty())) return;
  for (const tables::SchemaTable* t : std::exchange(announced_schemas, {})) {
    tables.add(*t);
    // The tables are the one block of their namespaces.
    std::string_view last;
    for (const tables::SchemaRow* row = t->rows; row != t->rows + t->count; ++row) {
      const std::string_view schema(row->schema), ns = schema.substr(0, schema.find("::"));
      if (ns != std::exchange(last, ns)) libraries.emplace(ns, tables::place(t->file, row->line));
    }
  }
  for (const tables::KernelTable* t : std::exchange(announced_kernels, {})) tables.add(*t);
  // Operators that were asked for before all their tables came.
  std::vector<impl::OperatorEntry*> known;
  for (auto& [name, op] : operators) known.push_back(op.get());
  for (impl::OperatorEntry* op : known)
    if (const auto rows = tables.take(op->name.str(), op->signature_code)) fill_from_tables(*op, *rows);
}

void Dispatcher::State::build_overloads(const std::string& name) {
  index_announced();
  for (const std::string& full : tables.names_of(name)) entry(parse_operator_name(full));
  // Entries stand in the order in which they were asked for; overloads are tried in the order of their definitions.
  const auto known = by_name.find(name);
  if (known == by_name.end()) return;
  const auto place = [&](const impl::OperatorEntry* e) { return tables.place_of(name, e->name.str()); };
  std::stable_sort(known->second.begin(), known->second.end(),
                   [&](const impl::OperatorEntry* a, const impl::OperatorEntry* b) { return place(a) < place(b); });
}

void Dispatcher::State::build_all() {
  index_announced();
  for (const std::string& full : tables.names()) entry(parse_operator_name(full));
}

void Dispatcher::State::fill_from_tables(impl::OperatorEntry& op, const tables::Index::Operator& rows) {
  if (rows.schema) {
    op.signature_code = rows.schema->code;
    define(op, parse_schema(rows.schema->schema), tables::place(rows.table->file, rows.schema->line), split(rows.schema->tags));
  }
  for (const auto& [table, row] : rows.kernels) {
    const CppSignature signature(*op.signature_code->function);
    add_kernel(op, table->key, {tables::kernel_of(op, *row), nullptr, signature, tables::place(table->file, row->line)});
  }
  for (int i = 0; i < kRuntimeKeyCount; ++i)
    if (impl::is_runtime_key(static_cast<DispatchKey>(i))) update(op, static_cast<DispatchKey>(i));
}

}  // namespace cresset
