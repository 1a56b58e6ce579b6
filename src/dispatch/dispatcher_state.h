// The dispatcher's private state. Everything here is used under `mutex`, except what OperatorEntry says.
#pragma once

#include <deque>
#include <list>
#include <mutex>
#include <unordered_map>

#include "dispatch/computed_table.h"

namespace cresset {

struct Dispatcher::State {
  // Recursive: kernels' destructors and listeners may come back.
  mutable std::recursive_mutex mutex;
  std::unordered_map<OperatorName, std::unique_ptr<impl::OperatorEntry>> operators;  // entries are never removed
  std::unordered_map<std::string, std::vector<impl::OperatorEntry*>> by_name;
  std::unordered_map<std::string, std::string> libraries;  // namespace → place
  impl::Fallbacks fallbacks;
  // An operator without registrations: fallbacks only. New entries start as its copy instead of computing every key.
  std::unique_ptr<impl::OperatorEntry> blank;
  std::list<std::unique_ptr<OpRegistrationListener>> listeners;
  std::deque<KernelFunction> published;
  std::unordered_map<const impl::AnnotatedKernel*, const KernelFunction*> published_index;

  impl::OperatorEntry& entry(const OperatorName& name);
  void update(impl::OperatorEntry& op, DispatchKey key);
  /// The same for all operators, known and to come, after a fallback came or went.
  void update_everywhere(const std::vector<DispatchKey>& keys);
  void update_all(impl::OperatorEntry& op, DispatchKey registered_key);
  void republish(impl::OperatorEntry& op);
  void notify(const OperatorHandle& op, bool registered);
  const KernelFunction* publish(const KernelFunction& k);
  const KernelFunction* published_of(const impl::OperatorEntry& op, const impl::AnnotatedKernel& k);
  /// Is `inferred` a prefix of `declared` whose remaining arguments all have defaults?
  static bool fits_older_schema(const FunctionSchema& inferred, const FunctionSchema& declared);
  static void check_schema(const OperatorName& name, const FunctionSchema& declared, const std::string& declared_at,
                           const FunctionSchema& inferred, const std::string& inferred_at);
};

}  // namespace cresset
