// Text forms of registrations and tables, and the check that one follows from the other.
#include "dispatch/dispatcher_state.h"

namespace cresset {
namespace {

std::string kernel_line(const impl::AnnotatedKernel& k) {
  std::string out = k.kernel.isFallthrough() ? "fallthrough " + k.debug : k.debug;
  if (k.inferred) {
    std::string arguments = k.inferred->str();
    out += " :: " + arguments;
  }
  if (!k.kernel.isFallthrough()) out += k.kernel.isValidUnboxed() ? " [ boxed unboxed ]" : " [ boxed ]";
  return out;
}

}  // namespace

std::string OperatorHandle::dumpState() const {
  std::lock_guard lock(Dispatcher::singleton().state_->mutex);
  std::string out = "name: " + entry_->name.str() + "\n";
  if (entry_->schema) {
    out += "schema: " + entry_->schema->schema.str() + "\ndebug: " + entry_->schema->debug +
           "\nalias analysis kind: " + toString(entry_->schema->schema.alias_analysis()) +
           (entry_->schema->schema.has_alias_analysis() ? "" : " (default)") + "\n";
  } else {
    out += "schema: (none)\n";
  }
  for (const auto& [key, list] : entry_->kernels) {
    bool active = true;
    for (const impl::AnnotatedKernel& k : list) {
      out += std::string(toString(key)) + (isAliasDispatchKey(key) ? "[alias]" : "") + (active ? "" : " (inactive)") + ": " +
             kernel_line(k) + "\n";
      active = false;
    }
  }
  return out;
}

std::string OperatorHandle::dumpComputedTable() const {
  const auto& state = *Dispatcher::singleton().state_;
  std::lock_guard lock(state.mutex);
  std::string out;
  for (int i = 0; i < kRuntimeKeyCount; ++i) {
    const auto key = static_cast<DispatchKey>(i);
    if (!impl::is_runtime_key(key)) continue;
    const impl::ComputedEntry e = impl::compute_entry(*entry_, key, state.fallbacks);
    if (!e.kernel && e.tag[0] == 'm') continue;
    out += std::string(toString(key)) + ": ";
    if (e.kernel)
      out += (e.kernel->kernel.isFallthrough() ? "fallthrough " : "") + e.kernel->debug + " ";
    else
      out += "ambiguous_autogradother ";
    out += std::string("[") + e.tag + "]\n";
  }
  return out;
}

std::string OperatorHandle::checkInvariants() const {
  const auto& state = *Dispatcher::singleton().state_;
  std::lock_guard lock(state.mutex);
  for (const auto& [key, list] : entry_->kernels)
    if (list.empty()) return std::string("an empty kernel list is kept for ") + toString(key);
  for (int i = 0; i < kRuntimeKeyCount; ++i) {
    const auto key = static_cast<DispatchKey>(i);
    if (!impl::is_runtime_key(key)) continue;
    const impl::ComputedEntry e = impl::compute_entry(*entry_, key, state.fallbacks);
    const KernelFunction* published = entry_->table[static_cast<std::size_t>(i)].load();
    if (e.kernel) {
      const auto it = state.published_index.find(e.kernel);
      if (it == state.published_index.end() || it->second != published)
        return std::string("the entry of ") + toString(key) + " is not the computed kernel";
    } else if (published->kind() != (e.tag[0] == 'a' ? KernelFunction::Kind::AmbiguousAutogradOther : KernelFunction::Kind::Missing)) {
      return std::string("the entry of ") + toString(key) + " should be " + e.tag;
    }
    const uint64_t bit = DispatchKeySet(key).raw_repr() & ~DispatchKeySet::kBackendMask;
    const int backend = toBackendIndex(key);
    const uint64_t mask = entry_->masks[static_cast<std::size_t>(backend >= 0 ? backend : 0)].load();
    if (bit && published->isFallthrough() == ((mask & bit) != 0))
      return std::string("the fallthrough mask of ") + toString(key) + " is wrong";
  }
  return "";
}

}  // namespace cresset
