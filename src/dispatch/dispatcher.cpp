// Registration, removal and lookup of operators.
#include <cresset/base/warn_always.h>
#include <cresset/dispatch/definitions.h>
#include <cresset/dispatch/dispatcher.h>

#include <algorithm>
#include <deque>
#include <shared_mutex>
#include <unordered_map>

#include "dispatch/backend_default.h"
#include "dispatch/computed_table.h"
#include "dispatch/dispatcher_state.h"
#include "dispatch/missing.h"
#include "dispatch/near_misses.h"
#include "dispatch/tags.h"

namespace cresset {
namespace impl {
namespace {

const KernelFunction* missing_entry() {
  static const auto* k = new KernelFunction(KernelFunction::makeMissing());
  return k;
}
const KernelFunction* ambiguous_entry() {
  static const auto* k = new KernelFunction(KernelFunction::makeAmbiguousAutogradOther());
  return k;
}

}  // namespace

OperatorEntry::OperatorEntry(OperatorName n) : name(std::move(n)) {
  for (auto& slot : table) slot.store(missing_entry(), std::memory_order_relaxed);
  for (auto& mask : masks) mask.store(~uint64_t{0}, std::memory_order_relaxed);
}

}  // namespace impl

using impl::AnnotatedKernel;
using impl::OperatorEntry;

Dispatcher& Dispatcher::singleton() {
  static auto* d = new Dispatcher;  // never destroyed: registrations are undone by static destructors
  return *d;
}
Dispatcher::Dispatcher() : state_(std::make_unique<State>()) {
  state_->blank = std::make_unique<OperatorEntry>(OperatorName{});
  for (int i = 0; i < kRuntimeKeyCount; ++i)
    if (impl::is_runtime_key(static_cast<DispatchKey>(i))) state_->update(*state_->blank, static_cast<DispatchKey>(i));
}

// Entries that calls may still be looking at: published kernels are never freed, so lookups need no lock.
const KernelFunction* Dispatcher::State::publish(const OperatorEntry& op, const KernelFunction& k) {
  for (const OperatorEntry* place : {&op, static_cast<const OperatorEntry*>(nullptr)}) {
    const auto found = idle.find(place);
    if (found == idle.end()) continue;
    auto& known = found->second;
    const auto same = std::find_if(known.begin(), known.end(), [&](const KernelFunction* f) { return *f == k; });
    if (same == known.end()) continue;
    const KernelFunction* again = *same;
    known.erase(same);
    return again;
  }
  published.push_back(k);
  return &published.back();
}

void Dispatcher::State::retire(const OperatorEntry* op, const AnnotatedKernel& k) noexcept {
  constexpr std::size_t most = 32;  // of an operator; of functors that never come again there may be any number
  const auto it = published_index.find(&k);
  if (it == published_index.end()) return;
  const KernelFunction* gone = it->second;
  published_index.erase(it);
  try {
    auto& known = idle[op];
    if (known.size() == most) known.erase(known.begin());
    known.push_back(gone);
  } catch (const std::bad_alloc&) {
  }
}

void Dispatcher::State::settle_all() {
  unsettled = false;
  settle([&] {
    for (int i = 0; i < kRuntimeKeyCount; ++i)
      if (const auto key = static_cast<DispatchKey>(i); impl::is_runtime_key(key)) update_everywhere({key});
  });
}

OperatorEntry& Dispatcher::State::entry(const OperatorName& name) {
  if (CRESSET_UNLIKELY(unsettled)) settle_all();
  index_announced();
  auto& slot = operators[name];
  if (slot) return *slot;
  slot = std::make_unique<OperatorEntry>(name);
  by_name[name.name].push_back(slot.get());
  for (std::size_t i = 0; i < slot->table.size(); ++i) slot->table[i].store(blank->table[i].load(), std::memory_order_relaxed);
  for (std::size_t i = 0; i < slot->masks.size(); ++i) slot->masks[i].store(blank->masks[i].load(), std::memory_order_relaxed);
  if (const auto rows = tables.take(name.str(), false)) fill_from_tables(*slot, *rows);
  return *slot;
}

OperatorEntry* Dispatcher::State::find(const OperatorName& name) {
  index_announced();
  if (const auto it = operators.find(name); it != operators.end()) return it->second.get();
  return tables.has(name.str()) ? &entry(name) : nullptr;
}

void Dispatcher::State::define(OperatorEntry& op, FunctionSchema schema, std::string debug, std::vector<std::string> tags,
                               std::string python_module) {
  for (const auto& [key, list] : op.kernels)
    for (const AnnotatedKernel& k : list)
      if (k.inferred) check_schema(op.name, schema, debug, *k.inferred, k.debug);
  op.schema = impl::AnnotatedSchema{std::move(schema), std::move(debug), std::move(tags), std::move(python_module)};
  op.def_count = 1;
  notify(OperatorHandle(&op), true);
}

std::list<AnnotatedKernel>::iterator Dispatcher::State::add_kernel(OperatorEntry& op, DispatchKey key, AnnotatedKernel kernel) {
  if (op.schema && kernel.inferred) check_schema(op.name, op.schema->schema, op.schema->debug, *kernel.inferred, kernel.debug);
  const bool older = op.schema && kernel.inferred && fits_older_schema(*kernel.inferred, op.schema->schema);
  if (kernel.signature && !older) {
    if (op.handle_signature)
      CRESSET_CHECK(op.handle_signature->first == *kernel.signature,
                    "Mismatch in kernel C++ signatures: Tried to access or call an operator with a wrong signature.\n  operator: ", op.name,
                    "\n  correct signature: ", op.handle_signature->first.name(), "  (", op.handle_signature->second,
                    ")\n  accessed/called as: ", kernel.signature->name(), "  (", kernel.debug, ")");
    else
      op.handle_signature.emplace(*kernel.signature, kernel.debug);
  }
  auto& list = op.kernels[key];
  list.push_front(std::move(kernel));
  ++op.impl_count;
  return list.begin();
}

void Dispatcher::State::update(OperatorEntry& op, DispatchKey key) {
  const impl::ComputedEntry e = impl::compute_entry(op, key, fallbacks);
  const KernelFunction* fresh = impl::missing_entry();
  bool fallthrough = false;
  if (e.kernel) {
    fallthrough = e.kernel->kernel.isFallthrough();
    fresh = published_of(op, *e.kernel);
  } else if (e.tag[0] == 'a') {
    fresh = impl::ambiguous_entry();
  }
  // A key is skipped before its entry is replaced by the fallthrough, and used only after it is a real kernel again.
  const auto slot = static_cast<std::size_t>(key);
  if (!fallthrough) op.table[slot].store(fresh, std::memory_order_release);
  const uint64_t backend_bits = DispatchKeySet::kBackendMask;
  const uint64_t bit = DispatchKeySet(key).raw_repr() & ~backend_bits;
  const int backend = toBackendIndex(key);
  for (int b = backend >= 0 ? backend : 0; b < (backend >= 0 ? backend + 1 : kBackendCount); ++b) {
    const uint64_t mask = op.masks[static_cast<std::size_t>(b)].load();
    op.masks[static_cast<std::size_t>(b)].store(fallthrough ? mask & ~bit : mask | bit, std::memory_order_release);
  }
  if (fallthrough) op.table[slot].store(fresh, std::memory_order_release);
}

void Dispatcher::State::update_everywhere(const std::vector<DispatchKey>& keys) {
  for (DispatchKey k : keys) {
    update(*blank, k);
    for (auto& [name, op] : operators) update(*op, k);
  }
}

void Dispatcher::State::update_all(OperatorEntry& op, DispatchKey registered_key) {
  for (DispatchKey k : impl::runtime_keys_of(registered_key)) update(op, k);
  // A backend kernel decides whether its autograd key may use the implicit composite.
  if (impl::is_backend_key(registered_key)) {
    const int backend = toBackendIndex(registered_key);
    update(op, backend >= 0 ? autogradKey(static_cast<DeviceType>(backend)) : DispatchKey::AutogradOther);
  }
  if (registered_key == DispatchKey::CompositeExplicitAutograd || registered_key == DispatchKey::CompositeExplicitAutogradNonFunctional)
    for (DispatchKey k : impl::runtime_keys_of(DispatchKey::Autograd)) update(op, k);
}

// The published form of a kernel: adapted when it was made for a shorter, older schema.
const KernelFunction* Dispatcher::State::published_of(const OperatorEntry& op, const AnnotatedKernel& k) {
  const auto it = published_index.find(&k);
  if (it != published_index.end()) return it->second;
  KernelFunction f = k.kernel;
  if (op.schema && k.inferred && fits_older_schema(*k.inferred, op.schema->schema))
    f = f.adapt_to_longer_schema(k.inferred->arguments().size());
  return published_index[&k] = publish(op, f);
}

bool Dispatcher::State::fits_older_schema(const FunctionSchema& inferred, const FunctionSchema& declared) {
  const auto &a = inferred.arguments(), &b = declared.arguments();
  if (a.size() >= b.size() || inferred.returns().size() != declared.returns().size() || declared.is_mutable()) return false;
  for (std::size_t i = 0; i < b.size(); ++i) {
    if (i < a.size() && !(*a[i].type == *b[i].type)) return false;
    if (i >= a.size() && !b[i].default_value) return false;
  }
  return true;
}

void Dispatcher::State::check_schema(const OperatorName& name, const FunctionSchema& declared, const std::string& declared_at,
                                     const FunctionSchema& inferred, const std::string& inferred_at) {
  const auto difference = find_schema_differences(declared, inferred);
  if (!difference || fits_older_schema(inferred, declared)) return;
  CRESSET_THROW(Error, "Inferred operator schema for a C++ kernel function doesn't match the expected function schema.\n  operator: ", name,
                "\n  expected schema: ", declared, "\n    ", declared_at, "\n  inferred schema: ", inferred, "\n    ", inferred_at,
                "\n  reason: ", *difference);
}

namespace {
/// What `finish` still has to do and the handle that undoes all; the registration is undone when there is no memory for that.
template <class Undo, class Finish>
RegistrationHandleRAII finished(const Undo& undo, const Finish& finish) {
  try {
    finish();
    return RegistrationHandleRAII(undo);
  } catch (...) {
    undo();
    throw;
  }
}
}  // namespace

RegistrationHandleRAII Dispatcher::registerLibrary(std::string ns, std::string debug) {
  std::lock_guard lock(state_->mutex);
  state_->index_announced();
  const auto [it, fresh] = state_->libraries.emplace(ns, debug);
  CRESSET_CHECK(
      fresh, "Only a single TORCH_LIBRARY can be used to register the namespace ", ns,
      "; please put all of your definitions in a single TORCH_LIBRARY block.  If you were trying to specify implementations, consider "
      "using "
      "TORCH_LIBRARY_IMPL (which can be duplicated).  If you really intended to define operators for a single namespace in a distributed "
      "way, you can use TORCH_LIBRARY_FRAGMENT to explicitly indicate this.  Previous registration of TORCH_LIBRARY was ",
      it->second, "; latest registration was ", debug);
  const auto undo = [this, ns] {
    std::lock_guard inner(state_->mutex);
    state_->libraries.erase(ns);
  };
  return finished(undo, [] {});
}

namespace {
std::atomic<uint64_t> definitions{1};
}  // namespace

RegistrationHandleRAII Dispatcher::registerDef(FunctionSchema schema, std::string debug, std::vector<std::string> tags,
                                               std::string python_module) {
  const OperatorName name = schema.operator_name();
  std::unique_lock lock(state_->mutex);
  OperatorEntry& op = state_->entry(name);
  CRESSET_CHECK(op.def_count == 0, "Tried to register an operator (", schema,
                ") with the same name and overload name multiple times. Each overload's schema should "
                "only be registered with a single call to def(). Duplicate registration: ",
                debug, ". Original registration: ", op.schema ? op.schema->debug : "");
  const auto undo = [this, entry = &op] {
    std::lock_guard inner(state_->mutex);
    OperatorEntry& e = *entry;
    state_->notify(OperatorHandle(&e), false);
    e.schema.reset();
    e.def_count = 0;
    state_->settle([&] { state_->republish(e); });
    ++definitions;
  };
  state_->define(op, std::move(schema), std::move(debug), std::move(tags), std::move(python_module));
  return finished(undo, [&] {
    state_->republish(op);
    ++definitions;
  });
}

uint64_t definition_count() { return definitions.load(std::memory_order_acquire); }

RegistrationHandleRAII Dispatcher::registerImpl(OperatorName name, std::optional<DispatchKey> key, KernelFunction kernel,
                                                std::optional<CppSignature> signature, std::unique_ptr<FunctionSchema> inferred,
                                                std::string debug) {
  // No key means every backend, differentiable through its parts.
  const DispatchKey k = key.value_or(DispatchKey::CompositeImplicitAutograd);
  std::unique_lock lock(state_->mutex);
  OperatorEntry& op = state_->entry(name);
  const auto earlier = op.kernels.find(k);
  const std::string overridden = earlier == op.kernels.end() || earlier->second.empty() ? std::string() : earlier->second.front().debug;
  const std::string place = debug;
  const auto where = state_->add_kernel(op, k, {std::move(kernel), std::move(inferred), signature, std::move(debug)});
  const auto undo = [this, entry = &op, k, where] {
    std::lock_guard inner(state_->mutex);
    OperatorEntry& e = *entry;
    state_->retire(&e, *where);
    auto& kernels = e.kernels[k];
    kernels.erase(where);
    if (kernels.empty()) e.kernels.erase(k);
    if (--e.impl_count == 0 && e.def_count == 0) e.handle_signature.reset();
    state_->settle([&] { state_->update_all(e, k); });
  };
  RegistrationHandleRAII handle = finished(undo, [&] { state_->update_all(op, k); });
  lock.unlock();  // the warning may run Python code
  if (!overridden.empty() && overridden.rfind(kBackendDefault, 0) != 0)
    CRESSET_WARN_FIRST("Overriding a previously registered kernel for the same operator and the same dispatch key. operator: ", name,
                       ", dispatch key: ", k, ", previous kernel: ", overridden, ", new kernel: ", place);
  return handle;
}

RegistrationHandleRAII Dispatcher::registerFallback(DispatchKey key, KernelFunction kernel, std::string debug) {
  std::unique_lock lock(state_->mutex);
  const std::vector<DispatchKey> keys = impl::runtime_keys_of(key);
  // Vendors skip layers that are skipped already, such as Autocast for their device: nothing changes by it.
  const auto is_skipped = [&](DispatchKey k) {
    const auto& slot = state_->fallbacks[static_cast<std::size_t>(k)];
    return slot && slot->kernel.isFallthrough();
  };
  if (kernel.isFallthrough() && std::ranges::all_of(keys, is_skipped)) return RegistrationHandleRAII([] {});
  for (DispatchKey k : keys) {
    const auto& slot = state_->fallbacks[static_cast<std::size_t>(k)];
    CRESSET_CHECK(!slot, "Tried to register multiple backend fallbacks for the same dispatch key ", k, "; previous registration ",
                  slot ? slot->debug : "", ", new registration ", debug);
  }
  const auto undo = [this, keys] {
    std::lock_guard inner(state_->mutex);
    for (DispatchKey k : keys) {
      auto& slot = state_->fallbacks[static_cast<std::size_t>(k)];
      if (!slot) continue;
      state_->retire(nullptr, *slot);
      slot.reset();
    }
    state_->settle([&] { state_->update_everywhere(keys); });
  };
  return finished(undo, [&] {
    for (DispatchKey k : keys)
      state_->fallbacks[static_cast<std::size_t>(k)].emplace(AnnotatedKernel{kernel, nullptr, std::nullopt, debug});
    state_->update_everywhere(keys);
  });
}

RegistrationHandleRAII Dispatcher::addRegistrationListener(std::unique_ptr<OpRegistrationListener> listener) {
  std::unique_lock lock(state_->mutex);
  state_->build_all();
  for (auto& [name, op] : state_->operators)
    if (op->schema) listener->onOperatorRegistered(OperatorHandle(op.get()));
  state_->listeners.push_back(std::move(listener));
  OpRegistrationListener* raw = state_->listeners.back().get();
  return RegistrationHandleRAII([this, raw] {
    std::lock_guard inner(state_->mutex);
    state_->listeners.remove_if([raw](const auto& l) { return l.get() == raw; });
  });
}

void Dispatcher::State::republish(OperatorEntry& op) {
  // Whether a kernel needs the older-schema adapter depends on the schema: publish afresh.
  for (const auto& [key, list] : op.kernels)
    for (const AnnotatedKernel& k : list)
      if (k.inferred) retire(&op, k);
  for (const auto& [key, list] : op.kernels) update_all(op, key);
}

// A registration ends in a destructor: what a listener raises then is dropped.
void Dispatcher::State::notify(const OperatorHandle& op, bool registered) {
  for (auto& l : listeners) {
    if (registered) {
      l->onOperatorRegistered(op);
      continue;
    }
    try {
      l->onOperatorDeregistered(op);
    } catch (...) {
    }
  }
}

std::optional<OperatorHandle> Dispatcher::findOp(const OperatorName& name) const {
  std::lock_guard lock(state_->mutex);
  impl::OperatorEntry* op = state_->find(name);
  if (!op || (op->def_count == 0 && op->impl_count == 0)) return std::nullopt;
  return OperatorHandle(op);
}

std::optional<OperatorHandle> Dispatcher::findSchema(const OperatorName& name) const {
  auto op = findOp(name);
  return op && op->hasSchema() ? op : std::nullopt;
}

OperatorHandle Dispatcher::findSchemaOrThrow(const char* name, const char* overload) const {
  const OperatorName full{name, overload};
  if (auto op = findSchema(full)) return *op;
  std::vector<std::string> candidates;
  for (const OperatorName& n : getAllOpNames()) candidates.push_back(n.str());
  const std::string near = impl::near_misses(full.str(), candidates);
  CRESSET_THROW(Error, "Could not find schema for ", full, ".", near.empty() ? "" : " Near names: " + near + ".",
                findOp(full) ? " Found a kernel for it, but no definition: call def() as well." : "");
}

std::vector<OperatorName> Dispatcher::getAllOpNames() const {
  std::lock_guard lock(state_->mutex);
  state_->build_all();
  std::vector<OperatorName> out;
  for (const auto& [name, op] : state_->operators)
    if (op->schema) out.push_back(name);
  std::sort(out.begin(), out.end());
  return out;
}

std::vector<OperatorHandle> Dispatcher::overloadsOf(const std::string& name) const {
  std::lock_guard lock(state_->mutex);
  state_->build_overloads(name);
  std::vector<OperatorHandle> out;
  if (const auto it = state_->by_name.find(name); it != state_->by_name.end())
    for (OperatorEntry* e : it->second)
      if (e->schema) out.emplace_back(e);
  return out;
}

bool Dispatcher::hasBackendFallbackForDispatchKey(DispatchKey k) const {
  std::lock_guard lock(state_->mutex);
  // Keys of device kinds without a slot are behind the table.
  return static_cast<std::size_t>(k) < state_->fallbacks.size() && state_->fallbacks[static_cast<std::size_t>(k)].has_value();
}

std::vector<OperatorHandle> Dispatcher::findDanglingImpls() const {
  std::lock_guard lock(state_->mutex);
  state_->build_all();
  std::vector<OperatorHandle> out;
  for (const auto& [name, op] : state_->operators)
    if (op->def_count == 0 && op->impl_count > 0) out.emplace_back(op.get());
  return out;
}

std::vector<OperatorName> Dispatcher::getRegistrationsForDispatchKey(std::optional<DispatchKey> k) const {
  std::lock_guard lock(state_->mutex);
  state_->build_all();
  std::vector<OperatorName> out;
  for (const auto& [name, op] : state_->operators)
    if (k ? op->kernels.count(*k) > 0 : op->impl_count > 0) out.push_back(name);
  std::sort(out.begin(), out.end());
  return out;
}

void Dispatcher::checkInvariants() const {
  std::vector<OperatorHandle> all;
  {
    std::lock_guard lock(state_->mutex);
    state_->build_all();
    for (const auto& [name, op] : state_->operators) all.emplace_back(op.get());
  }
  for (const OperatorHandle& op : all) {
    const std::string wrong = op.checkInvariants();
    CRESSET_CHECK(wrong.empty(), "dispatch table of ", op.operator_name(), ": ", wrong);
  }
}

// ---- handles

const FunctionSchema& OperatorHandle::schema() const {
  CRESSET_CHECK(hasSchema(), "Tried to access the schema for ", entry_->name, " which doesn't have a schema registered yet");
  return entry_->schema->schema;
}

bool OperatorHandle::hasTag(std::string_view tag) const { return has_tag(*this, tag); }
const std::vector<std::string>& OperatorHandle::getTags() const {
  static const std::vector<std::string> none;
  return entry_->schema ? entry_->schema->tags : none;
}

void OperatorHandle::assert_signature(CppSignature s) const {
  std::lock_guard lock(Dispatcher::singleton().state_->mutex);
  auto& known = entry_->handle_signature;
  if (!known) {
    known.emplace(s, "typed handle");
    return;
  }
  CRESSET_CHECK(known->first == s, "Tried to access or call an operator with a wrong signature.\n  operator: ", entry_->name,
                "\n  correct signature: ", known->first.name(), "  (", known->second, ")\n  accessed/called as: ", s.name());
}

DispatchKeySet OperatorHandle::computeKeySet(const Stack& stack) const {
  DispatchKeySet ks;
  const std::size_t n = schema().arguments().size();
  CRESSET_CHECK(stack.size() >= n, entry_->name, ": ", n, " arguments were required on the stack; ", stack.size(), " were given.");
  for (std::size_t i = stack.size() - n; i < stack.size(); ++i) {
    const IValue& v = stack[i];
    if (CRESSET_LIKELY(v.isTensor())) {
      ks |= v.toTensor().key_set();
    } else if (v.isList()) {
      for (const IValue& e : v.toListRef())
        if (e.isTensor())
          ks |= e.toTensor().key_set();
        else if (!e.isNone())
          break;
    } else if (v.isGenerator()) {
      ks |= v.toGenerator().key_set();
    }
  }
  return impl::with_local_keys(ks);
}

void OperatorHandle::callBoxed(Stack* stack) const {
  const DispatchKeySet ks = computeKeySet(*stack);
  entry_->lookup(ks).callBoxed(*this, ks, stack);
}

void OperatorHandle::callBoxedForDispatchKey(DispatchKey k, Stack& stack) const {
  const DispatchKeySet ks = computeKeySet(stack);
  entry_->table.at(static_cast<std::size_t>(k)).load(std::memory_order_acquire)->callBoxed(*this, ks, &stack);
}

bool OperatorHandle::hasKernelForDispatchKey(DispatchKey k) const {
  std::lock_guard lock(Dispatcher::singleton().state_->mutex);
  return entry_->kernels.count(k) > 0;
}
bool OperatorHandle::hasKernelForAnyDispatchKey(DispatchKeySet ks) const {
  std::lock_guard lock(Dispatcher::singleton().state_->mutex);
  for (const auto& [key, list] : entry_->kernels)
    if (!isAliasDispatchKey(key) && ks.has(key)) return true;
  return false;
}
bool OperatorHandle::hasComputedKernelForDispatchKey(DispatchKey k) const {
  CRESSET_CHECK(!isAliasDispatchKey(k), "Alias keys do not have runtime kernel registrations.");
  const auto i = static_cast<std::size_t>(k);
  return i < entry_->table.size() && entry_->table[i].load()->kind() != KernelFunction::Kind::Missing;
}
bool OperatorHandle::isKernelFallthroughKernel(DispatchKey k) const {
  const auto i = static_cast<std::size_t>(k);
  return i < entry_->table.size() && entry_->table[i].load()->isFallthrough();
}

}  // namespace cresset
