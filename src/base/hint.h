// Errors with PyTorch's words and something to add: C++ sees both as one text, Python the words, and the hint as a note behind them,
// so that programs which compare messages find the ones they know.
#pragma once

#include <string>

#include <cresset/base/error.h>

namespace cresset::detail {

/// The other half of an error with a hint.
class CRESSET_API Hint {
 public:
  explicit Hint(std::size_t words) : words_(words) {}
  Hint(const Hint&) = default;
  virtual ~Hint();
  /// How much of what() are the words.
  std::size_t words() const noexcept { return words_; }

 private:
  std::size_t words_;
};

template <class E>
class Hinted final : public E, public Hint {
 public:
  Hinted(const std::string& words, const std::string& hint) : E(words + "\n" + hint), Hint(words.size()) {}
};

template <class E = Error>
[[noreturn]] CRESSET_COLD void raise_with_hint(const std::string& words, const std::string& hint) {
  throw Hinted<E>(words, hint);
}

}  // namespace cresset::detail
