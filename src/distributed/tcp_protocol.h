// What a TCP store's client asks of its server. A connection begins with kHello as a message; then each question, a Question and its
// arguments, gets one answer, an Answer and its values, in order.
#pragma once

#include <cstdint>
#include <string>

namespace cresset::distributed {

inline const std::string kHello = "cresset store 1";

enum class Question : uint8_t {
  Set = 1,      // key, value
  Get,          // timeout, keys: values
  Wait,         // timeout, keys
  Add,          // key, i64: i64
  CompareSet,   // key, expected, desired: value
  Check,        // keys: u8
  Erase,        // key: u8
  Size,         // : i64
  Append,       // key, value
  MultiSet,     // keys, values
  Push,         // key, value
  Pop,          // i64 timeout in ms (-1: do not wait), key: value
  QueueLength,  // key: i64
  Keys,         // : keys
};
enum class Answer : uint8_t { Done = 0, Timeout = 1, Failed = 2, Empty = 3 };  // Failed: the words of the error

}  // namespace cresset::distributed
