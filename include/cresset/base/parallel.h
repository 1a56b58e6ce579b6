// parallel_for over a small persistent pool of threads.
#pragma once

#include <cstdint>

#include <cresset/base/macros.h>

namespace cresset {

/// Non-owning reference to a callable (begin, end); valid only during the call.
class RangeFunction {
 public:
  template <class F>
  RangeFunction(const F& f) : object_(&f), call_([](const void* o, int64_t b, int64_t e) { (*static_cast<const F*>(o))(b, e); }) {}
  void operator()(int64_t begin, int64_t end) const { call_(object_, begin, end); }

 private:
  const void* object_;
  void (*call_)(const void*, int64_t, int64_t);
};

/// Number of threads that parallel_for may use (CRESSET_NUM_THREADS, else OMP_NUM_THREADS, else the processors that affinity and control
/// groups leave to the process).
CRESSET_API int get_num_threads();
/// Sets it (at least 1) for all threads of the process.
CRESSET_API void set_num_threads(int n);
/// True while the calling thread runs inside parallel_for: nested calls are helped by threads that have nothing to do.
CRESSET_API bool in_parallel_region();
/// Number of the calling thread within its region, below get_num_threads(); 0 for the caller of parallel_for.
CRESSET_API int get_thread_num();

namespace detail {
CRESSET_API void parallel_for_impl(int64_t begin, int64_t end, int64_t grain_size, RangeFunction f);
}

/// Splits [begin, end) into ranges of about grain_size or more and runs f(begin, end) on each, on at most get_num_threads() threads; a
/// thread may get several ranges.
/// The first exception of any range is rethrown in the caller. Dispatch key and grad-mode state are carried over.
template <class F>
inline void parallel_for(int64_t begin, int64_t end, int64_t grain_size, const F& f) {
  if (begin >= end) return;
  if (end - begin <= (grain_size > 1 ? grain_size : 1)) {
    f(begin, end);
    return;
  }
  detail::parallel_for_impl(begin, end, grain_size, RangeFunction(f));
}

}  // namespace cresset
