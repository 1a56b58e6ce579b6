// Visibility and branch hints used by every header.
#pragma once

#if defined(_WIN32)
#error "Cresset supports ELF and Mach-O platforms"
#endif

#define CRESSET_API __attribute__((visibility("default")))
#define CRESSET_HIDDEN __attribute__((visibility("hidden")))
#define CRESSET_NOINLINE __attribute__((noinline))
#define CRESSET_ALWAYS_INLINE inline __attribute__((always_inline))
#define CRESSET_COLD __attribute__((cold, noinline))
#define CRESSET_LIKELY(x) __builtin_expect(static_cast<bool>(x), 1)
#define CRESSET_UNLIKELY(x) __builtin_expect(static_cast<bool>(x), 0)

#define CRESSET_CONCAT_(a, b) a##b
#define CRESSET_CONCAT(a, b) CRESSET_CONCAT_(a, b)
#define CRESSET_UNIQUE(name) CRESSET_CONCAT(name, __COUNTER__)
#define CRESSET_STRINGIZE_(x) #x
#define CRESSET_STRINGIZE(x) CRESSET_STRINGIZE_(x)
