// Records by name over zip files.
#include <cresset/ir/record_file.h>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <fstream>
#include <optional>

#include <cresset/base/error.h>

#include "ir/archive/zip_archive.h"

namespace cresset::jit {

// ---- sources of bytes

ReadAdapterInterface::~ReadAdapterInterface() = default;

std::size_t IStreamAdapter::size() const {
  const auto here = stream_->tellg();
  stream_->seekg(0, std::ios::end);
  const auto end = stream_->tellg();
  stream_->seekg(here);
  CRESSET_CHECK(stream_->good(), "istream reader failed: getting the size.");
  return static_cast<std::size_t>(end);
}
std::size_t IStreamAdapter::read(uint64_t pos, void* buf, std::size_t n, const char* what) const {
  stream_->seekg(static_cast<std::streamoff>(pos));
  stream_->read(static_cast<char*>(buf), static_cast<std::streamsize>(n));
  CRESSET_CHECK(stream_->good(), "istream reader failed: ", what, ".");
  return n;
}

FileAdapter::FileAdapter(const std::string& file_name) : file_(::open(file_name.c_str(), O_RDONLY | O_CLOEXEC)) {
  CRESSET_CHECK(file_ >= 0, "open file failed because of errno ", errno, ": ", std::strerror(errno), ", file path: ", file_name);
  struct stat info = {};
  if (::fstat(file_, &info) == 0) size_ = static_cast<std::size_t>(info.st_size);
}
FileAdapter::~FileAdapter() { ::close(file_); }
std::size_t FileAdapter::read(uint64_t pos, void* buf, std::size_t n, const char* what) const {
  std::size_t done = 0;
  while (done < n) {
    const ssize_t got = ::pread(file_, static_cast<char*>(buf) + done, n - done, static_cast<off_t>(pos + done));
    if (got < 0 && errno == EINTR) continue;
    CRESSET_CHECK(got >= 0, "file reader failed: ", what, ": ", std::strerror(errno), ".");
    if (got == 0) break;
    done += static_cast<std::size_t>(got);
  }
  return done;
}

std::size_t MemoryReadAdapter::read(uint64_t pos, void* buf, std::size_t n, const char* /*what*/) const {
  if (pos >= size_) return 0;
  const std::size_t there = std::min<std::size_t>(n, size_ - pos);
  std::memcpy(buf, data_ + pos, there);
  return there;
}

// ---- reading

std::string bytes_of(const ReadAdapterInterface& in) {
  std::string bytes(in.size(), '\0');
  const std::size_t got = in.read(0, bytes.data(), bytes.size(), "reading the archive");
  CRESSET_CHECK(got == bytes.size(), "archive: the source has ", bytes.size(), " bytes; ", got, " could be read.");
  return bytes;
}

namespace {

std::shared_ptr<const ZipReader> all_of(const ReadAdapterInterface& in) { return ZipReader::of_bytes(bytes_of(in)); }

const ZipEntry& entry_of(const ZipReader& zip, const std::string& folder, const std::string& name) {
  const ZipEntry* entry = zip.find(folder + name);
  CRESSET_CHECK(entry, "PytorchStreamReader failed locating file ", name, ": file not found.");
  return *entry;
}

}  // namespace

PyTorchStreamReader::PyTorchStreamReader(const std::string& file_name) : PyTorchStreamReader(ZipReader::open(file_name)) {}
PyTorchStreamReader::PyTorchStreamReader(std::istream* in) : PyTorchStreamReader(all_of(IStreamAdapter(in))) {}
PyTorchStreamReader::PyTorchStreamReader(std::shared_ptr<ReadAdapterInterface> in) : PyTorchStreamReader(all_of(*in)) {}
PyTorchStreamReader::PyTorchStreamReader(std::shared_ptr<const ZipReader> zip) : zip_(std::move(zip)) {
  CRESSET_CHECK(!zip_->entries().empty(), "archive: the file has no entries.");
  const std::string& first = zip_->entries()[0].name;
  const std::size_t slash = first.find('/');
  CRESSET_CHECK(slash != std::string::npos, "file in archive is not in a subdirectory: ", first);
  folder_ = first.substr(0, slash + 1);
  if (hasRecord(".data/serialization_id")) serialization_id_ = zip_->read(entry_of(*zip_, folder_, ".data/serialization_id"));
  const std::string text = zip_->read(entry_of(*zip_, folder_, hasRecord("version") ? "version" : ".data/version"));
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), version_);
  CRESSET_CHECK(error == std::errc(), "archive: the version of the format is no number: '", text, "'.");
}

bool PyTorchStreamReader::is_hidden(const std::string& name) const { return !load_debug_symbol_ && name.ends_with(".debug_pkl"); }
bool PyTorchStreamReader::hasRecord(const std::string& name) const { return !is_hidden(name) && zip_->find(folder_ + name); }
std::vector<std::string> PyTorchStreamReader::getAllRecords() const {
  std::vector<std::string> names;
  for (const ZipEntry& e : zip_->entries()) {
    CRESSET_CHECK(e.name.starts_with(folder_), "file in archive is not in a subdirectory ", folder_, ": ", e.name);
    if (std::string name = e.name.substr(folder_.size()); !is_hidden(name)) names.push_back(std::move(name));
  }
  return names;
}
std::tuple<DataPtr, std::size_t> PyTorchStreamReader::getRecord(const std::string& name) const {
  if (is_hidden(name)) return {DataPtr(), 0};
  const ZipEntry& entry = entry_of(*zip_, folder_, name);
  DataPtr bytes = GetCPUAllocator()->allocate(static_cast<std::size_t>(entry.size));
  zip_->read_to(entry, bytes.get());
  return {std::move(bytes), static_cast<std::size_t>(entry.size)};
}
std::size_t PyTorchStreamReader::getRecord(const std::string& name, void* dst, std::size_t n) const {
  if (is_hidden(name)) return 0;
  const ZipEntry& entry = entry_of(*zip_, folder_, name);
  CRESSET_CHECK(entry.size == n, "record size ", entry.size, " mismatch with dst size ", n);
  zip_->read_to(entry, dst);
  return n;
}
std::size_t PyTorchStreamReader::getRecordSize(const std::string& name) const {
  return static_cast<std::size_t>(entry_of(*zip_, folder_, name).size);
}
std::size_t PyTorchStreamReader::getRecordOffset(const std::string& name) const {
  return static_cast<std::size_t>(entry_of(*zip_, folder_, name).offset);
}

// ---- writing

namespace {

// A stream that hands everything to a function.
class SinkBuffer final : public std::streambuf {
 public:
  explicit SinkBuffer(PyTorchStreamWriter::Sink sink) : sink_(std::move(sink)) {}

 protected:
  std::streamsize xsputn(const char* data, std::streamsize n) override {
    return sink_(data, static_cast<std::size_t>(n)) == static_cast<std::size_t>(n) ? n : 0;
  }
  int_type overflow(int_type c) override {
    const char byte = traits_type::to_char_type(c);
    return xsputn(&byte, 1) == 1 ? c : traits_type::eof();
  }

 private:
  PyTorchStreamWriter::Sink sink_;
};

std::string name_of_archive(const std::string& file_name) {
  const std::string name = file_name.substr(file_name.find_last_of('/') + 1);
  return name.substr(0, name.find_last_of('.'));
}

}  // namespace

struct PyTorchStreamWriter::Output {
  explicit Output(Sink sink) : buffer(std::in_place, std::move(sink)), stream(&*buffer), zip(stream) {}
  explicit Output(const std::string& file_name) : file(file_name, std::ios::binary), stream(file.rdbuf()), zip(stream) {
    CRESSET_CHECK(file.good(), "archive: ", file_name, " cannot be opened for writing: ", std::strerror(errno), ".");
  }
  std::optional<SinkBuffer> buffer;
  std::ofstream file;
  std::ostream stream;
  ZipWriter zip;
};

PyTorchStreamWriter::PyTorchStreamWriter(const std::string& file_name)
    : output_(std::make_unique<Output>(file_name)), archive_name_(name_of_archive(file_name)) {}
PyTorchStreamWriter::PyTorchStreamWriter(Sink sink) : output_(std::make_unique<Output>(std::move(sink))), archive_name_("archive") {}
PyTorchStreamWriter::~PyTorchStreamWriter() {
  if (finalized_) return;
  try {
    writeEndOfFile();
  } catch (const std::exception&) {
    // Who wants to know says writeEndOfFile.
  }
}

void PyTorchStreamWriter::setMinVersion(uint64_t version) { version_ = std::max(version_, version); }

void PyTorchStreamWriter::writeRecord(const std::string& name, const void* data, std::size_t size, bool compress) {
  CRESSET_CHECK(!finalized_, "writeRecord: the file is finished; '", name, "' was given.");
  CRESSET_CHECK(!names_.contains(name), "Tried to serialize file twice: ", name);
  const std::string_view bytes(static_cast<const char*>(data), size);
  if (compress)
    output_->zip.add_text(archive_name_ + "/" + name, bytes);
  else
    output_->zip.add(archive_name_ + "/" + name, bytes);
  names_.insert(name);
}

void PyTorchStreamWriter::writeEndOfFile() {
  CRESSET_CHECK(!finalized_, "writeEndOfFile: the file is finished already.");
  const auto write = [&](const std::string& name, const std::string& text) {
    if (!names_.contains(name)) writeRecord(name, text.data(), text.size());
  };
  write("version", std::to_string(version_) + "\n");
  write("byteorder", std::endian::native == std::endian::little ? "little" : "big");
  serialization_id_ = identity_of(output_->zip, archive_name_.size() + 1);
  write(".data/serialization_id", serialization_id_);
  finalized_ = true;
  output_->zip.finish();
  output_->stream.flush();
  CRESSET_CHECK(output_->stream.good(), "archive: the last bytes could not be written.");
}

}  // namespace cresset::jit
