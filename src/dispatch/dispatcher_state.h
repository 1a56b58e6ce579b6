// The dispatcher's private state. Everything here is used under `mutex`, except what OperatorEntry says.
#pragma once

#include <deque>
#include <list>
#include <mutex>
#include <unordered_map>

#include <cresset/base/fork.h>

#include <new>

#include "dispatch/computed_table.h"
#include "dispatch/operator_tables.h"

namespace cresset {

struct Dispatcher::State {
  // Recursive: kernels' destructors and listeners may come back.
  mutable ForkSafe<std::recursive_mutex> mutex;
  // Operators that somebody asked for or registered something for; entries are never removed. The others wait in `tables`.
  std::unordered_map<OperatorName, std::unique_ptr<impl::OperatorEntry>> operators;
  std::unordered_map<std::string, std::vector<impl::OperatorEntry*>> by_name;
  std::unordered_map<std::string, std::string> libraries;  // namespace → place
  impl::Fallbacks fallbacks;
  // An operator without registrations: fallbacks only. New entries start as its copy instead of computing every key.
  std::unique_ptr<impl::OperatorEntry> blank;
  std::list<std::unique_ptr<OpRegistrationListener>> listeners;
  std::deque<KernelFunction> published;
  std::unordered_map<const impl::AnnotatedKernel*, const KernelFunction*> published_index;
  // Published for registrations that are gone, by operator (null: fallbacks): the same kernel that comes again takes its place again.
  std::unordered_map<const impl::OperatorEntry*, std::vector<const KernelFunction*>> idle;
  tables::Index tables;
  std::vector<const tables::SchemaTable*> announced_schemas;  // not in `tables` yet
  std::vector<const tables::KernelTable*> announced_kernels;

  void index_announced();
  /// The operator's entry, from the tables or new.
  impl::OperatorEntry& entry(const OperatorName& name);
  /// The same, or null when nothing is known by this name.
  impl::OperatorEntry* find(const OperatorName& name);
  /// Makes entries of all operators called `name`, or of all there are.
  void build_overloads(const std::string& name);
  void build_all();
  void define(impl::OperatorEntry& op, FunctionSchema schema, std::string debug, std::vector<std::string> tags,
              std::string python_module = {});
  std::list<impl::AnnotatedKernel>::iterator add_kernel(impl::OperatorEntry& op, DispatchKey key, impl::AnnotatedKernel kernel);
  void fill_from_tables(impl::OperatorEntry& op, const tables::Index::Operator& rows);
  void update(impl::OperatorEntry& op, DispatchKey key);
  /// Brings tables up to date after a registration is gone. Where memory is short that waits for the next registration: until then calls
  /// find the kernel that is gone, which is never freed.
  template <class F>
  void settle(const F& f) noexcept {
    try {
      f();
    } catch (const std::bad_alloc&) {
      unsettled = true;
    }
  }
  bool unsettled = false;
  void settle_all();
  /// The same for all operators, known and to come, after a fallback came or went.
  void update_everywhere(const std::vector<DispatchKey>& keys);
  void update_all(impl::OperatorEntry& op, DispatchKey registered_key);
  void republish(impl::OperatorEntry& op);
  void notify(const OperatorHandle& op, bool registered);
  const KernelFunction* publish(const impl::OperatorEntry& op, const KernelFunction& k);
  /// Gives up what was published for a registration that goes.
  void retire(const impl::OperatorEntry* op, const impl::AnnotatedKernel& k) noexcept;
  const KernelFunction* published_of(const impl::OperatorEntry& op, const impl::AnnotatedKernel& k);
  /// Is `inferred` a prefix of `declared` whose remaining arguments all have defaults?
  static bool fits_older_schema(const FunctionSchema& inferred, const FunctionSchema& declared);
  static void check_schema(const OperatorName& name, const FunctionSchema& declared, const std::string& declared_at,
                           const FunctionSchema& inferred, const std::string& inferred_at);
};

}  // namespace cresset
