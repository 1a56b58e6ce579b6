// The inter-op pool: whole tasks beside each other, where parallel_for splits one operator.
#pragma once

#include <functional>

#include <cresset/base/macros.h>

namespace cresset {

/// Queues a task; a thread of the inter-op pool runs it with the caller's dispatch keys and modes. An exception that leaves the task is
/// written to stderr. A task must not wait for one that is queued behind it: jit::wait runs such a task itself.
CRESSET_API void launch(std::function<void()> task);
/// Threads of the pool: set_num_interop_threads, else CRESSET_NUM_INTEROP_THREADS, else the CPU count. They start with the first tasks.
CRESSET_API int get_num_interop_threads();
/// At least 1; once, and before the first task.
CRESSET_API void set_num_interop_threads(int n);

}  // namespace cresset
