// What a TCP store's client asks of its server. A connection begins with a Greeting, whose nonce comes back as it is, as with PyTorch's
// stores; then each question, a Question and its arguments, gets one answer, an Answer and its values, in order.
#pragma once

#include <cstdint>
#include <string>

namespace cresset::distributed {

/// Ten bytes: 0 ("validate"), a number that other protocols do not begin with, 13 ("ping"), and a nonce.
struct Greeting {
  static constexpr std::size_t kSize = 10, kNonce = 6;
  static constexpr uint8_t kBegin[kNonce] = {0, 0xce, 0xf7, 0x85, 0x3c, 13};
};

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
