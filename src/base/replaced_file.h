// Writing a file so that others see the old one or the whole new one.
#pragma once

#include <string>

#include <cresset/base/macros.h>

namespace cresset {

/// What is written to `temporary()` takes the place of `path` in commit(), after it has reached the disk; without it, nothing is left.
///
/// The temporary file lies beside `path`, is opened exclusively and has a name that cannot be foretold. It is locked as long as its
/// writer lives: those of writers that were killed go with the next writing of the same path. A `path` that is no regular file (a pipe,
/// a device) is written in place.
class CRESSET_API ReplacedFile {
 public:
  /// `who` begins the texts of errors: "archive: PATH cannot be written: REASON."
  ReplacedFile(std::string who, std::string path);
  ~ReplacedFile();
  ReplacedFile(const ReplacedFile&) = delete;

  const std::string& temporary() const { return temporary_; }
  void commit();
  /// Raises with the system's reason, which is read from errno.
  [[noreturn]] void fail() const;

 private:
  std::string who_, path_, temporary_;
  int file_ = -1;  // holds the lock
};

}  // namespace cresset
