// Reading and writing of zip files as script archives use them: data lie stored, aligned to 64 bytes; code is deflated.
//
// Written over zlib alone: libzip brings OpenSSL with it, and an archive needs neither encryption nor editing in place.
#pragma once

#include <cstdint>
#include <memory>
#include <ostream>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include <cresset/base/macros.h>

namespace cresset::jit {

/// Bytes of memory that a load may make of a file of this size. A memory limit of the caller's own takes its place.
inline constexpr uint64_t load_budget(uint64_t file_size) { return (uint64_t{64} << 20) + 128 * file_size; }

struct ZipEntry {
  std::string name;
  uint64_t offset = 0;  // of the entry's data in the file
  uint64_t compressed_size = 0, size = 0;
  uint32_t crc = 0;
  bool deflated = false;
};

/// The table of a zip file. Everything it says was checked against the file's size; contents are checked when they are read.
class ZipReader {
 public:
  /// Maps the file into memory.
  static std::shared_ptr<const ZipReader> open(const std::string& path);
  static std::shared_ptr<const ZipReader> of_bytes(std::string bytes);
  /// Bytes that outlive the reader.
  static std::shared_ptr<const ZipReader> of_view(std::string_view bytes);

  const std::vector<ZipEntry>& entries() const { return entries_; }
  /// Null when there is none.
  const ZipEntry* find(const std::string& name) const;
  std::string read(const ZipEntry& entry) const;
  /// Writes entry.size bytes.
  void read_to(const ZipEntry& entry, void* target) const;
  uint64_t size() const { return bytes_.size(); }

 private:
  void check_budget(uint64_t bytes, const char* what) const;
  explicit ZipReader(std::shared_ptr<const void> owner, std::string_view bytes);
  std::shared_ptr<const void> owner_;
  std::string_view bytes_;
  std::vector<ZipEntry> entries_;
  std::unordered_map<std::string, std::size_t> index_;
};

class ZipWriter {
 public:
  /// Entries of `zip64_from` bytes or more, or beyond that offset, take the 64-bit form (tests lower it).
  explicit ZipWriter(std::ostream& out, uint64_t zip64_from = 0xffffffff) : out_(out), zip64_from_(zip64_from) {}
  void add(const std::string& name, std::string_view data);
  /// Text is deflated where that is shorter.
  void add_text(const std::string& name, std::string_view text);
  /// Writes the table; nothing may be added after it. Raises when the stream failed.
  void finish();
  /// CRC of each entry in the order they were written.
  std::vector<uint32_t> checksums() const;
  std::vector<std::string> names() const;

 private:
  struct Written {
    std::string name;
    uint64_t header, size, compressed_size;
    uint32_t crc;
    bool deflated() const { return size != compressed_size; }
  };
  void add(const std::string& name, std::string_view data, std::string_view deflated);
  void put(std::string_view bytes);
  std::ostream& out_;
  uint64_t zip64_from_, position_ = 0;
  std::vector<Written> written_;
  std::unordered_set<std::string> names_;
};

/// Forty digits that the names of the entries written so far, without a folder of `folder` characters, and their contents make.
std::string identity_of(const ZipWriter& zip, std::size_t folder);

}  // namespace cresset::jit
