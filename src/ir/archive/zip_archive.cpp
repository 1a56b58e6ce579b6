#include "ir/archive/zip_archive.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>

#include <cresset/base/error.h>
#include <cresset/base/interrupt.h>

namespace cresset::jit {
namespace {

constexpr uint32_t kLocalHeader = 0x04034b50, kCentralHeader = 0x02014b50, kEnd = 0x06054b50, kEnd64 = 0x06064b50,
                   kEnd64Locator = 0x07064b50;
constexpr std::size_t kLocalSize = 30, kCentralSize = 46, kEndSize = 22, kEnd64Size = 56, kLocatorSize = 20, kLongestComment = 0xffff;
constexpr uint16_t kEncrypted = 1, kStored = 0, kDeflated = 8, kZip64Extra = 1, kPaddingExtra = 0x4246;  // "FB"
constexpr uint64_t kAlignment = 64, kIn64BitField = 0xffffffff;
// Deflate cannot do better than 1032 bytes from one.
constexpr uint64_t kBestRatio = 1032;
constexpr uint64_t kPiece = uint64_t{16} << 20;  // bytes between two looks for an interrupt

[[noreturn]] void damaged(const std::string& why) {
  CRESSET_THROW(Error, "archive: a zip file was required; ", why, ". The file is damaged, incomplete or of another kind.");
}

// Little-endian numbers of a piece of the file; every access is checked.
class Fields {
 public:
  Fields(std::string_view bytes, uint64_t at, uint64_t size, const char* what) {
    if (at > bytes.size() || size > bytes.size() - at) damaged(std::string(what) + " lies outside of the file");
    bytes_ = bytes.substr(at, size);
  }
  explicit Fields(std::string_view bytes) : bytes_(bytes) {}
  template <class T>
  T get(std::size_t at) const {
    if (at > bytes_.size() || sizeof(T) > bytes_.size() - at) damaged("a record is cut off");
    T v;
    std::memcpy(&v, bytes_.data() + at, sizeof v);
    return v;
  }
  std::string_view text(std::size_t at, std::size_t size) const {
    if (at > bytes_.size() || size > bytes_.size() - at) damaged("a record is cut off");
    return bytes_.substr(at, size);
  }

 private:
  std::string_view bytes_;
};

struct Directory {
  uint64_t offset, size, count;
};

// The table's place, from the record at the end of the file and its 64-bit companion.
Directory find_directory(std::string_view bytes) {
  if (bytes.size() < kEndSize) damaged("it has only " + std::to_string(bytes.size()) + " bytes");
  const std::size_t lowest = bytes.size() - kEndSize > kLongestComment ? bytes.size() - kEndSize - kLongestComment : 0;
  for (std::size_t at = bytes.size() - kEndSize + 1; at-- > lowest;) {
    const Fields end(bytes, at, kEndSize, "the end record");
    if (end.get<uint32_t>(0) != kEnd || at + kEndSize + end.get<uint16_t>(20) != bytes.size()) continue;
    if (end.get<uint16_t>(4) != 0 && end.get<uint16_t>(4) != 0xffff) damaged("it is one part of several");
    Directory d{end.get<uint32_t>(16), end.get<uint32_t>(12), end.get<uint16_t>(10)};
    uint64_t limit = at;
    const bool saturated = d.offset == kIn64BitField || d.size == kIn64BitField || d.count == 0xffff;
    if (at >= kLocatorSize && Fields(bytes, at - kLocatorSize, kLocatorSize, "").get<uint32_t>(0) == kEnd64Locator) {
      const auto place = Fields(bytes, at - kLocatorSize, kLocatorSize, "").get<uint64_t>(8);
      const Fields end64(bytes, place, kEnd64Size, "the 64-bit end record");
      if (end64.get<uint32_t>(0) != kEnd64) damaged("the 64-bit end record is missing");
      d = {end64.get<uint64_t>(48), end64.get<uint64_t>(40), end64.get<uint64_t>(32)};
      limit = place;
    } else if (saturated) {
      damaged("the 64-bit end record is missing");
    }
    if (d.offset > limit || d.size > limit - d.offset) damaged("the table lies outside of the file");
    if (d.count > d.size / kCentralSize) damaged("the table is too short for its " + std::to_string(d.count) + " entries");
    return d;
  }
  damaged("no end record was found");
}

// 64-bit sizes and offset, where the record's own fields are saturated.
void read_zip64(std::string_view extra, ZipEntry& entry, uint64_t& header) {
  for (std::size_t at = 0; at + 4 <= extra.size();) {
    const Fields f(extra);
    const auto id = f.get<uint16_t>(at), size = f.get<uint16_t>(at + 2);
    const Fields content(f.text(at + 4, size));
    at += 4 + size;
    if (id != kZip64Extra) continue;
    std::size_t next = 0;
    for (uint64_t* field : {&entry.size, &entry.compressed_size, &header})
      if (*field == kIn64BitField) {
        *field = content.get<uint64_t>(next);
        next += 8;
      }
  }
}

struct Mapping {
  Mapping(void* address, std::size_t size) : address(address), size(size) {}
  Mapping(const Mapping&) = delete;
  void* const address;
  const std::size_t size;
  ~Mapping() { ::munmap(address, size); }
};

}  // namespace

ZipReader::ZipReader(std::shared_ptr<const void> owner, std::string_view bytes) : owner_(std::move(owner)), bytes_(bytes) {
  const Directory d = find_directory(bytes);
  uint64_t at = d.offset;
  std::vector<std::pair<uint64_t, uint64_t>> ranges;
  for (uint64_t i = 0; i < d.count; ++i) {
    const Fields record(bytes, at, kCentralSize, "the table");
    if (record.get<uint32_t>(0) != kCentralHeader) damaged("the table has no entry where one should be");
    ZipEntry entry;
    const auto flags = record.get<uint16_t>(8), method = record.get<uint16_t>(10);
    entry.crc = record.get<uint32_t>(16);
    entry.compressed_size = record.get<uint32_t>(20);
    entry.size = record.get<uint32_t>(24);
    const auto name_size = record.get<uint16_t>(28), extra_size = record.get<uint16_t>(30), comment_size = record.get<uint16_t>(32);
    uint64_t header = record.get<uint32_t>(42);
    const Fields tail(bytes, at + kCentralSize, uint64_t{name_size} + extra_size + comment_size, "the table");
    entry.name = std::string(tail.text(0, name_size));
    read_zip64(tail.text(name_size, extra_size), entry, header);
    at += kCentralSize + name_size + extra_size + comment_size;
    if (at > d.offset + d.size) damaged("the table is longer than it says");

    if (flags & kEncrypted) damaged("'" + entry.name + "' is encrypted");
    if (method != kStored && method != kDeflated)
      damaged("'" + entry.name + "' is compressed by method " + std::to_string(method) + ", only 0 and 8 are known");
    entry.deflated = method == kDeflated;
    const Fields local(bytes, header, kLocalSize, "an entry");
    if (local.get<uint32_t>(0) != kLocalHeader) damaged("'" + entry.name + "' is not where the table says");
    const auto local_name = local.get<uint16_t>(26), local_extra = local.get<uint16_t>(28);
    if (Fields(bytes, header + kLocalSize, local_name, "an entry").text(0, local_name) != entry.name)
      damaged("'" + entry.name + "' has another name in its place");
    entry.offset = header + kLocalSize + local_name + local_extra;
    if (entry.offset > d.offset || entry.compressed_size > d.offset - entry.offset) damaged("'" + entry.name + "' is longer than the file");
    if (entry.deflated ? entry.size / kBestRatio > entry.compressed_size : entry.size != entry.compressed_size)
      damaged("'" + entry.name + "' cannot have " + std::to_string(entry.size) + " bytes");
    ranges.emplace_back(header, entry.offset + entry.compressed_size);
    if (!index_.emplace(entry.name, entries_.size()).second) damaged("'" + entry.name + "' is there twice");
    entries_.push_back(std::move(entry));
  }
  uint64_t inflated = 0;
  for (const ZipEntry& e : entries_) inflated += e.deflated ? e.size : 0;
  check_budget(inflated, "its compressed entries have");
  // Entries that share bytes make small files claim much.
  std::sort(ranges.begin(), ranges.end());
  for (std::size_t i = 1; i < ranges.size(); ++i)
    if (ranges[i].first < ranges[i - 1].second) damaged("entries overlap");
}

std::shared_ptr<const ZipReader> ZipReader::open(const std::string& path) {
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  CRESSET_CHECK(file >= 0, "archive: ", path, " cannot be opened: ", std::strerror(errno), ".");
  struct stat info = {};
  void* address = MAP_FAILED;
  const bool regular = ::fstat(file, &info) == 0 && S_ISREG(info.st_mode);
  const auto size = static_cast<std::size_t>(info.st_size);
  if (regular && size) address = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file, 0);
  ::close(file);
  CRESSET_CHECK(regular, "archive: ", path, " cannot be read: it is not a regular file.");
  if (!size) damaged(path + " is empty");
  CRESSET_CHECK(address != MAP_FAILED, "archive: ", path, " cannot be mapped into memory: ", std::strerror(errno), ".");
  auto owner = std::make_shared<Mapping>(address, size);
  return std::shared_ptr<const ZipReader>(new ZipReader(std::move(owner), {static_cast<const char*>(address), size}));
}
std::shared_ptr<const ZipReader> ZipReader::of_bytes(std::string bytes) {
  auto owner = std::make_shared<const std::string>(std::move(bytes));
  const std::string_view view = *owner;
  return std::shared_ptr<const ZipReader>(new ZipReader(std::move(owner), view));
}
std::shared_ptr<const ZipReader> ZipReader::of_view(std::string_view bytes) {
  return std::shared_ptr<const ZipReader>(new ZipReader(nullptr, bytes));
}

void ZipReader::check_budget(uint64_t bytes, const char* what) const {
  const uint64_t budget = load_budget(bytes_.size());
  CRESSET_CHECK(bytes <= budget || memory_is_limited(), "archive: ", what, " ", bytes, " bytes; a file of ", bytes_.size(),
                " bytes may stand for ", budget,
                ". If it is to be trusted, load it with a limit of its own: limits=cresset.jit.Limits(memory=...).");
}

const ZipEntry* ZipReader::find(const std::string& name) const {
  const auto found = index_.find(name);
  return found == index_.end() ? nullptr : &entries_[found->second];
}

std::string ZipReader::read(const ZipEntry& entry) const {
  std::string out(entry.size, '\0');
  read_to(entry, out.data());
  return out;
}

void ZipReader::read_to(const ZipEntry& entry, void* target) const {
  const char* source = bytes_.data() + entry.offset;
  if (!entry.deflated) {
    for (uint64_t at = 0; at < entry.size; at += kPiece) {
      check_interrupt();
      std::memcpy(static_cast<char*>(target) + at, source + at, std::min(kPiece, entry.size - at));
    }
  } else {
    z_stream z = {};
    CRESSET_CHECK(::inflateInit2(&z, -MAX_WBITS) == Z_OK, "archive: zlib cannot start.");
    const std::unique_ptr<z_stream, int (*)(z_stream*)> end(&z, &::inflateEnd);
    uint64_t in_left = entry.compressed_size, out_left = entry.size;
    z.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(source));
    z.next_out = static_cast<Bytef*>(target);
    int result = Z_OK;
    // zlib counts in 32 bits. A last byte of room lets it see the end of an exact fit.
    Bytef rest;
    while (result == Z_OK) {
      if (!z.avail_in && in_left) in_left -= z.avail_in = static_cast<uInt>(std::min<uint64_t>(in_left, 1u << 30));
      if (!z.avail_out && out_left) {
        check_interrupt();
        out_left -= z.avail_out = static_cast<uInt>(std::min(out_left, kPiece));
      }
      if (!z.avail_out) {
        z.next_out = &rest;
        z.avail_out = 1;
      }
      result = ::inflate(&z, Z_NO_FLUSH);
    }
    if (result != Z_STREAM_END || z.total_out != entry.size) damaged("the contents of '" + entry.name + "' are broken");
  }
  uLong crc = 0;
  for (uint64_t at = 0; at < entry.size; at += kPiece) {
    check_interrupt();
    crc = ::crc32_z(crc, static_cast<const Bytef*>(target) + at, std::min(kPiece, entry.size - at));
  }
  if (crc != entry.crc) damaged("the contents of '" + entry.name + "' do not have their checksum");
}

namespace {
template <class T>
void number(std::string& out, T v) {
  out.append(reinterpret_cast<const char*>(&v), sizeof v);
}
uint32_t saturated(uint64_t v, bool wide) { return wide ? static_cast<uint32_t>(kIn64BitField) : static_cast<uint32_t>(v); }

/// Empty when that is not shorter.
std::string deflated(std::string_view text) {
  z_stream stream{};
  constexpr int kDefaultMemory = 8;
  CRESSET_CHECK(::deflateInit2(&stream, Z_DEFAULT_COMPRESSION, Z_DEFLATED, -MAX_WBITS, kDefaultMemory, Z_DEFAULT_STRATEGY) == Z_OK,
                "archive: zlib could not begin to compress ", text.size(), " bytes.");
  const std::unique_ptr<z_stream, int (*)(z_stream*)> owner(&stream, &::deflateEnd);
  std::string out(text.size(), '\0');
  stream.next_in = const_cast<Bytef*>(reinterpret_cast<const Bytef*>(text.data()));
  stream.avail_in = static_cast<uInt>(text.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  if (::deflate(&stream, Z_FINISH) != Z_STREAM_END || stream.avail_out == 0) return {};
  out.resize(out.size() - stream.avail_out);
  return out;
}
}  // namespace

void ZipWriter::put(std::string_view bytes) {
  out_.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  position_ += bytes.size();
}

void ZipWriter::add(const std::string& name, std::string_view data) { add(name, data, {}); }

void ZipWriter::add_text(const std::string& name, std::string_view text) {
  constexpr std::size_t kLongestPiece = std::size_t{1} << 30;  // zlib counts in 32 bits
  add(name, text, text.size() > kLongestPiece ? std::string() : deflated(text));
}

void ZipWriter::add(const std::string& name, std::string_view data, std::string_view deflated) {
  const std::string_view content = deflated.empty() ? data : deflated;
  CRESSET_CHECK_VALUE(name.size() <= 0xff00, "archive: the name of an entry is too long (", name.size(), " bytes).");
  CRESSET_CHECK_VALUE(names_.insert(name).second, "archive: there is an entry '", name, "' already.");
  const bool wide = data.size() >= zip64_from_;
  const auto crc = static_cast<uint32_t>(::crc32_z(0, reinterpret_cast<const Bytef*>(data.data()), data.size()));
  std::string extra;
  if (wide) {
    number<uint16_t>(extra, kZip64Extra);
    number<uint16_t>(extra, 16);
    number<uint64_t>(extra, data.size());
    number<uint64_t>(extra, content.size());
  }
  const uint64_t unpadded = position_ + kLocalSize + name.size() + extra.size() + 4;
  const auto padding = static_cast<uint16_t>((kAlignment - unpadded % kAlignment) % kAlignment);
  number<uint16_t>(extra, kPaddingExtra);
  number<uint16_t>(extra, padding);
  extra.append(padding, 'Z');

  std::string header;
  number<uint32_t>(header, kLocalHeader);
  number<uint16_t>(header, wide ? 45 : 20);  // version needed
  number<uint16_t>(header, 0x800);           // names are UTF-8
  number<uint16_t>(header, deflated.empty() ? kStored : kDeflated);
  number<uint32_t>(header, 0);  // time and date: archives of the same module are the same
  number<uint32_t>(header, crc);
  number<uint32_t>(header, saturated(content.size(), wide));
  number<uint32_t>(header, saturated(data.size(), wide));
  number<uint16_t>(header, static_cast<uint16_t>(name.size()));
  number<uint16_t>(header, static_cast<uint16_t>(extra.size()));
  written_.push_back({name, position_, data.size(), content.size(), crc});
  put(header + name + extra);
  put(content);
}

void ZipWriter::finish() {
  const uint64_t table = position_;
  for (const Written& w : written_) {
    const bool wide = w.size >= zip64_from_, far = w.header >= zip64_from_;
    std::string extra;
    if (wide || far) {
      number<uint16_t>(extra, kZip64Extra);
      number<uint16_t>(extra, static_cast<uint16_t>((wide ? 16 : 0) + (far ? 8 : 0)));
      if (wide) {
        number<uint64_t>(extra, w.size);
        number<uint64_t>(extra, w.compressed_size);
      }
      if (far) number<uint64_t>(extra, w.header);
    }
    std::string record;
    number<uint32_t>(record, kCentralHeader);
    number<uint16_t>(record, 45);
    number<uint16_t>(record, wide || far ? 45 : 20);
    number<uint16_t>(record, 0x800);
    number<uint16_t>(record, w.deflated() ? kDeflated : kStored);
    number<uint32_t>(record, 0);
    number<uint32_t>(record, w.crc);
    number<uint32_t>(record, saturated(w.compressed_size, wide));
    number<uint32_t>(record, saturated(w.size, wide));
    number<uint16_t>(record, static_cast<uint16_t>(w.name.size()));
    number<uint16_t>(record, static_cast<uint16_t>(extra.size()));
    record.append(10, '\0');  // no comment, first disk, no attributes
    number<uint32_t>(record, saturated(w.header, far));
    put(record + w.name + extra);
  }
  const uint64_t end = position_, size = end - table;
  std::string record;
  number<uint32_t>(record, kEnd64);
  number<uint64_t>(record, kEnd64Size - 12);
  number<uint16_t>(record, 45);
  number<uint16_t>(record, 45);
  number<uint64_t>(record, 0);  // disks
  number<uint64_t>(record, written_.size());
  number<uint64_t>(record, written_.size());
  number<uint64_t>(record, size);
  number<uint64_t>(record, table);
  number<uint32_t>(record, kEnd64Locator);
  number<uint32_t>(record, 0);
  number<uint64_t>(record, end);
  number<uint32_t>(record, 1);
  number<uint32_t>(record, kEnd);
  number<uint32_t>(record, 0);
  const auto count = static_cast<uint16_t>(std::min<std::size_t>(written_.size(), 0xffff));
  number<uint16_t>(record, count);
  number<uint16_t>(record, count);
  number<uint32_t>(record, saturated(size, size >= kIn64BitField));
  number<uint32_t>(record, saturated(table, table >= kIn64BitField));
  number<uint16_t>(record, 0);
  put(record);
  out_.flush();
  CRESSET_CHECK(out_.good(), "archive: writing failed after ", position_, " bytes: ", std::strerror(errno), ".");
}

std::vector<uint32_t> ZipWriter::checksums() const {
  std::vector<uint32_t> out;
  for (const Written& w : written_) out.push_back(w.crc);
  return out;
}
std::vector<std::string> ZipWriter::names() const {
  std::vector<std::string> out;
  for (const Written& w : written_) out.push_back(w.name);
  return out;
}

namespace {
std::string fnv(const std::vector<std::string>& parts) {
  uint64_t hash = 0xcbf29ce484222325u;
  for (const std::string& part : parts)
    for (unsigned char c : part + '\n') hash = (hash ^ c) * 0x100000001b3u;
  std::string digits = std::to_string(hash);
  return std::string(20 - digits.size(), '0') + digits;
}
}  // namespace

std::string identity_of(const ZipWriter& zip, std::size_t folder) {
  std::vector<std::string> names, checksums;
  for (const uint32_t crc : zip.checksums()) checksums.push_back(std::to_string(crc));
  for (const std::string& n : zip.names()) names.push_back(n.substr(folder));
  return fnv(names) + fnv(checksums);
}

}  // namespace cresset::jit
