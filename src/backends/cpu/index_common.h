// What the sources of the index family share: reading index tensors and combining elements.
#pragma once

#include <cresset/core/allocator.h>
#include <cresset/core/dispatch_types.h>
#include <cresset/core/tensor.h>

#include <cmath>
#include <limits>
#include <new>
#include <string_view>
#include <utility>
#include <vector>

#include "backends/cpu/walk.h"

namespace cresset::cpu {

// Memory of the CPU allocator for vectors: it keeps big blocks, where fresh pages would cost more than what is done with the numbers. New
// elements hold anything.
template <class T>
struct KeptMemory {
  using value_type = T;
  KeptMemory() = default;
  template <class U>
  KeptMemory(const KeptMemory<U>&) {}
  T* allocate(std::size_t n) { return static_cast<T*>(alloc_cpu(n * sizeof(T))); }
  void deallocate(T* p, std::size_t n) noexcept { free_cpu_sized(p, n * sizeof(T)); }
  template <class U>
  void construct(U* p) noexcept {
    ::new (static_cast<void*>(p)) U;
  }
  template <class U, class... Args>
  void construct(U* p, Args&&... args) {
    ::new (static_cast<void*>(p)) U(std::forward<Args>(args)...);
  }
  template <class U>
  friend bool operator==(const KeptMemory&, const KeptMemory<U>&) {
    return true;
  }
};
using Indices = std::vector<int64_t, KeptMemory<int64_t>>;

// The values of an int32 or int64 tensor in logical order.
inline Indices read_indices(const Tensor& index) {
  Indices out(static_cast<std::size_t>(index.numel()));
  if (out.empty()) return out;
  int64_t* to = out.data();
  const Walk<1> walk(index.sizes(), {index.strides()});
  CRESSET_DISPATCH(index.scalar_type(), "index", CRESSET_INDEX_TYPES, [&] {
    const scalar_t* const from = index.const_data_ptr<scalar_t>();
    walk.run([&](const std::array<int64_t, 1>& at) {
      const int64_t n = walk.row_size(), s = walk.stride(0);
      for (int64_t i = 0; i < n; ++i) *to++ = from[at[0] + i * s];
    });
  });
  return out;
}

// The one element of a 0-dim CPU tensor.
inline Scalar scalar_of(const Tensor& t) {
  return CRESSET_DISPATCH(t.scalar_type(), "item", CRESSET_STORED_AND_ALL_TYPES, [&] { return Scalar(*t.const_data_ptr<scalar_t>()); });
}

template <class T>
inline T reduce_add(T a, T b) {
  if constexpr (std::is_same_v<T, bool>)
    return a || b;
  else
    return static_cast<T>(static_cast<opmath_type<T>>(a) + static_cast<opmath_type<T>>(b));
}

// a + factor * b
template <class T>
inline T add_scaled(T a, opmath_type<T> factor, T b) {
  if constexpr (std::is_same_v<T, bool>)
    return a || (factor && b);
  else
    return static_cast<T>(static_cast<opmath_type<T>>(a) + factor * static_cast<opmath_type<T>>(b));
}

enum class Reduction { Sum, Prod, Mean, Amax, Amin };

// Accepts the names of scatter_reduce and the older "add" and "multiply"; shape functions have refused all others.
inline Reduction reduction_named(std::string_view name) {
  if (name == "sum" || name == "add") return Reduction::Sum;
  if (name == "prod" || name == "multiply") return Reduction::Prod;
  if (name == "mean") return Reduction::Mean;
  return name == "amax" ? Reduction::Amax : Reduction::Amin;
}

// The elements of a bool tensor: memory that came from elsewhere may hold other bytes than 0 and 1, of which none may count more than once.
struct Flags {
  explicit Flags(const Tensor& t) : bytes(static_cast<const uint8_t*>(t.const_data_ptr())) {}
  bool operator[](int64_t i) const { return bytes[i] != 0; }
  const uint8_t* bytes;
};

// The value that leaves another one alone.
template <class T>
T reduction_start(Reduction how) {
  using L = std::numeric_limits<opmath_type<T>>;
  switch (how) {
    case Reduction::Prod: return T(1);
    case Reduction::Amax:
      if constexpr (std::is_same_v<T, bool>)
        return false;
      else if constexpr (std::is_integral_v<T>)
        return std::numeric_limits<T>::lowest();
      else
        return static_cast<T>(-L::infinity());
    case Reduction::Amin:
      if constexpr (std::is_same_v<T, bool>)
        return true;
      else if constexpr (std::is_integral_v<T>)
        return std::numeric_limits<T>::max();
      else
        return static_cast<T>(L::infinity());
    default: return T(0);
  }
}

struct AddInto {
  template <class T>
  void operator()(T& place, T value) const {
    place = reduce_add(place, value);
  }
};

// Calls f with combine(T& place, T value).
template <class T, class F>
void with_reduction(Reduction how, const F& f) {
  using C = opmath_type<T>;
  switch (how) {
    case Reduction::Prod:
      return f([](T& a, T b) {
        if constexpr (std::is_same_v<T, bool>)
          a = a && b;
        else if constexpr (is_complex_v<T> && sizeof(T) == 16)  // rounded once less, as mul rounds
          a = T(std::fma(a.real(), b.real(), -(a.imag() * b.imag())), std::fma(a.real(), b.imag(), a.imag() * b.real()));
        else
          a = static_cast<T>(static_cast<C>(a) * static_cast<C>(b));
      });
    case Reduction::Amax:
      if constexpr (!is_complex_v<T>) {
        return f([](T& a, T b) {
          const C x = static_cast<C>(a), y = static_cast<C>(b);
          a = x != x || x > y ? a : b;
        });
      }
      break;
    case Reduction::Amin:
      if constexpr (!is_complex_v<T>) {
        return f([](T& a, T b) {
          const C x = static_cast<C>(a), y = static_cast<C>(b);
          a = x != x || x < y ? a : b;
        });
      }
      break;
    default: break;
  }
  f(AddInto());
}

// A sum as a mean; integers round towards minus infinity.
template <class T>
T divide_mean(T sum, int64_t n) {
  if (n <= 1) return sum;
  if constexpr (std::is_integral_v<T>) {
    const int64_t s = sum, q = s / n;
    return static_cast<T>(s % n != 0 && s < 0 ? q - 1 : q);
  } else {
    using C = opmath_type<T>;
    return static_cast<T>(static_cast<C>(sum) / static_cast<C>(n));
  }
}

}  // namespace cresset::cpu
