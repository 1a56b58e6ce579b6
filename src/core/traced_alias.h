// Tensors that are made without an operator and show the values of another: what a trace must be told of.
#pragma once

#include <atomic>

#include <cresset/core/dispatch_key_set.h>
#include <cresset/core/tensor_base.h>

namespace cresset::detail {

/// Called with a tensor and one that stands for the same value. Null until there is a tracer.
extern CRESSET_API std::atomic<void (*)(const TensorBase& known, const TensorBase& alias)> traced_alias;

/// Does a trace run on this thread? In a recorded operator, too.
inline bool trace_runs() { return impl::tls_local_dispatch_key_set().included.has(DispatchKey::Tracer); }

/// `alias` has been made of `known` without an operator.
inline void note_traced_alias(const TensorBase& known, const TensorBase& alias) {
  if (CRESSET_LIKELY(!trace_runs())) return;
  if (auto* note = traced_alias.load(std::memory_order_relaxed)) note(known, alias);
}

}  // namespace cresset::detail
