// From registrations to table entries: which kernel serves a runtime key, and why.
#pragma once

#include <cresset/dispatch/dispatcher.h>

namespace cresset::impl {

/// A table entry before publication.
struct ComputedEntry {
  const AnnotatedKernel* kernel;  // null for missing and ambiguous
  const char* tag;                // "kernel", "math kernel", "default backend kernel", "autograd kernel", "backend fallback", …
};

/// Backend fallbacks by runtime key.
using Fallbacks = std::array<std::optional<AnnotatedKernel>, kRuntimeKeyCount>;

/// First hit of: exact key; for backends and Undefined the explicit composites; the implicit composite, for autograd keys only
/// when their backend has no kernel of its own and no explicit composite exists; for autograd keys the Autograd alias;
/// the backend fallback; missing.
ComputedEntry compute_entry(const OperatorEntry& op, DispatchKey key, const Fallbacks& fallbacks);

/// Every key that stands in a table.
bool is_runtime_key(DispatchKey k);
bool is_backend_key(DispatchKey k);
bool is_autograd_key(DispatchKey k);
/// The runtime keys an alias key covers, or the key itself.
std::vector<DispatchKey> runtime_keys_of(DispatchKey k);

}  // namespace cresset::impl
