#include "base/replaced_file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <string_view>

#include <cresset/base/error.h>

namespace cresset {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kRandomDigits = 16;
constexpr std::string_view kEnding = ".part";
// A file is made first and locked then; nobody takes this long in between.
constexpr time_t kSecondsUntilLeftover = 60;

std::string random_digits() {
  uint64_t number = 0;
  if (getrandom(&number, sizeof number, 0) != sizeof number) CRESSET_THROW(Error, "getrandom: ", std::strerror(errno), ".");
  char text[kRandomDigits + 1];
  std::snprintf(text, sizeof text, "%016llx", static_cast<unsigned long long>(number));
  return text;
}

bool is_temporary_of(std::string_view target, std::string_view name) {
  if (name.size() != target.size() + 1 + kRandomDigits + kEnding.size() || !name.starts_with(target) || name[target.size()] != '.' ||
      !name.ends_with(kEnding))
    return false;
  const std::string_view digits = name.substr(target.size() + 1, kRandomDigits);
  return digits.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

// Files of writers that were killed: nobody holds their lock. What cannot be removed stays.
void remove_leftovers(const fs::path& path) {
  const fs::path folder = path.has_parent_path() ? path.parent_path() : ".";
  const std::string target = path.filename().string();
  std::error_code error;
  for (fs::directory_iterator it(folder, fs::directory_options::skip_permission_denied, error), end; !error && it != end;
       it.increment(error)) {
    if (!is_temporary_of(target, it->path().filename().string())) continue;
    const int file = ::open(it->path().c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    if (file < 0) continue;
    struct stat facts;
    const bool old = fstat(file, &facts) == 0 && std::time(nullptr) - facts.st_mtime > kSecondsUntilLeftover;
    if (old && flock(file, LOCK_EX | LOCK_NB) == 0) ::unlink(it->path().c_str());
    ::close(file);
  }
}

}  // namespace

ReplacedFile::ReplacedFile(std::string who, std::string path) : who_(std::move(who)), path_(std::move(path)), temporary_(path_) {
  struct stat facts;
  if (stat(path_.c_str(), &facts) == 0 && !S_ISREG(facts.st_mode)) {
    if (S_ISDIR(facts.st_mode)) {
      errno = EISDIR;
      fail();
    }
    return;
  }
  remove_leftovers(path_);
  temporary_ = path_ + "." + random_digits() + std::string(kEnding);
  file_ = ::open(temporary_.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0666);
  if (file_ < 0) fail();
  flock(file_, LOCK_EX | LOCK_NB);  // file systems without locks do without the cleaning up
}

void ReplacedFile::commit() {
  if (file_ < 0) return;
  if (fsync(file_) != 0 || std::rename(temporary_.c_str(), path_.c_str()) != 0) fail();
  ::close(file_);
  file_ = -1;
  // The new name reaches the disk with its folder; file systems that cannot do that are taken as they are.
  const fs::path folder = fs::path(path_).has_parent_path() ? fs::path(path_).parent_path() : ".";
  if (const int at = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC); at >= 0) {
    fsync(at);
    ::close(at);
  }
}

ReplacedFile::~ReplacedFile() {
  if (file_ < 0) return;
  ::unlink(temporary_.c_str());
  ::close(file_);
}

void ReplacedFile::fail() const {
  const int reason = errno;
  CRESSET_THROW(Error, who_, ": ", path_, " cannot be written: ", std::strerror(reason), ".");
}

}  // namespace cresset
