// Numbers and strings in messages of stores and records of files: little-endian, strings behind their length.
#pragma once

#include <cstring>
#include <string>

#include <cresset/distributed/store.h>

namespace cresset::distributed {

class Writer {
 public:
  template <class T>
  Writer& number(T v) {
    static_assert(std::is_integral_v<T>);
    const std::size_t at = bytes.size();
    bytes.resize(at + sizeof v);
    std::memcpy(bytes.data() + at, &v, sizeof v);
    return *this;
  }
  template <class T>
  Writer& text(const T& s) {
    number(static_cast<uint32_t>(s.size()));
    bytes.insert(bytes.end(), s.begin(), s.end());
    return *this;
  }
  template <class T>
  Writer& texts(const std::vector<T>& list) {
    number(static_cast<uint32_t>(list.size()));
    for (const auto& s : list) text(s);
    return *this;
  }
  Store::Bytes bytes;
};

/// Throws DistStoreError where the message ends too early.
class Reader {
 public:
  Reader(const uint8_t* begin, std::size_t size) : at_(begin), end_(begin + size) {}
  template <class T>
  T number() {
    T v;
    std::memcpy(&v, take(sizeof v), sizeof v);
    return v;
  }
  template <class T>
  T text() {
    const auto n = number<uint32_t>();
    const uint8_t* p = take(n);
    return T(p, p + n);
  }
  template <class T>
  std::vector<T> texts() {
    std::vector<T> out;
    for (auto n = number<uint32_t>(); n > 0; --n) out.push_back(text<T>());
    return out;
  }
  std::size_t left() const { return static_cast<std::size_t>(end_ - at_); }

 private:
  const uint8_t* take(std::size_t n) {
    if (n > left()) CRESSET_THROW(DistStoreError, "store: a message ended too early.");
    const uint8_t* p = at_;
    at_ += n;
    return p;
  }
  const uint8_t *at_, *end_;
};

}  // namespace cresset::distributed
