// Files of named records, as archives of scripts and checkpoints are: zip files in which each record lies in a folder with the file's name.
#pragma once

#include <cstdint>
#include <functional>
#include <istream>
#include <memory>
#include <string>
#include <tuple>
#include <unordered_set>
#include <vector>

#include <cresset/core/allocator.h>

namespace cresset::jit {

class ZipReader;
class ZipWriter;

/// A source of bytes at any place.
class CRESSET_API ReadAdapterInterface {
 public:
  virtual ~ReadAdapterInterface();
  virtual std::size_t size() const = 0;
  /// Reads n bytes from `pos` on; gives how many there were. `what` is for the words of an error.
  virtual std::size_t read(uint64_t pos, void* buf, std::size_t n, const char* what = "") const = 0;
};

/// All bytes; raises when there are fewer than it says.
CRESSET_API std::string bytes_of(const ReadAdapterInterface& in);

/// The bytes of a stream, which must outlive it. Reads of more than there is raise.
class CRESSET_API IStreamAdapter final : public ReadAdapterInterface {
 public:
  explicit IStreamAdapter(std::istream* stream) : stream_(stream) {}
  std::size_t size() const override;
  std::size_t read(uint64_t pos, void* buf, std::size_t n, const char* what = "") const override;

 private:
  std::istream* stream_;
};

/// The bytes of a file; raises when it cannot be opened. Reads stop at its end.
class CRESSET_API FileAdapter final : public ReadAdapterInterface {
 public:
  explicit FileAdapter(const std::string& file_name);
  FileAdapter(const FileAdapter&) = delete;
  ~FileAdapter() override;
  std::size_t size() const override { return size_; }
  std::size_t read(uint64_t pos, void* buf, std::size_t n, const char* what = "") const override;

 private:
  int file_;
  std::size_t size_ = 0;
};

/// Bytes of memory, which must outlive it. Reads stop at its end.
class CRESSET_API MemoryReadAdapter final : public ReadAdapterInterface {
 public:
  MemoryReadAdapter(const void* data, std::size_t size) : data_(static_cast<const char*>(data)), size_(size) {}
  std::size_t size() const override { return size_; }
  std::size_t read(uint64_t pos, void* buf, std::size_t n, const char* what = "") const override;

 private:
  const char* data_;
  std::size_t size_;
};

/// Reads records by name, without the folder that they lie in. A file is mapped into memory, what another source gives is read as a whole.
/// Damage and missing records raise.
class CRESSET_API PyTorchStreamReader final {
 public:
  explicit PyTorchStreamReader(const std::string& file_name);
  explicit PyTorchStreamReader(std::istream* in);
  explicit PyTorchStreamReader(std::shared_ptr<ReadAdapterInterface> in);

  /// A record's bytes and how many they are.
  std::tuple<DataPtr, std::size_t> getRecord(const std::string& name) const;
  /// The same into memory of exactly the record's size.
  std::size_t getRecord(const std::string& name, void* dst, std::size_t n) const;
  std::size_t getRecordSize(const std::string& name) const;
  /// Where the record's bytes begin in the file (of a compressed one those of the compressed form).
  std::size_t getRecordOffset(const std::string& name) const;
  bool hasRecord(const std::string& name) const;
  std::vector<std::string> getAllRecords() const;
  /// The archive format's version.
  uint64_t version() const { return version_; }
  const std::string& serializationId() const { return serialization_id_; }
  /// Records named *.debug_pkl count as missing when told false.
  void setShouldLoadDebugSymbol(bool should) { load_debug_symbol_ = should; }

 private:
  explicit PyTorchStreamReader(std::shared_ptr<const ZipReader> zip);
  bool is_hidden(const std::string& name) const;
  std::shared_ptr<const ZipReader> zip_;
  std::string folder_, serialization_id_;
  uint64_t version_ = 0;
  bool load_debug_symbol_ = true;
};

/// Writes records, each aligned to 64 bytes, and at the end the version, the byte order and an identity that the records' names and
/// contents make. Each name once.
class CRESSET_API PyTorchStreamWriter final {
 public:
  /// Takes bytes and gives how many it took; all, or writing raises.
  using Sink = std::function<std::size_t(const void*, std::size_t)>;
  explicit PyTorchStreamWriter(const std::string& file_name);
  explicit PyTorchStreamWriter(Sink sink);
  PyTorchStreamWriter(const PyTorchStreamWriter&) = delete;
  /// Ends the file, where writeEndOfFile did not; what fails then is passed over.
  ~PyTorchStreamWriter();

  /// At least this version is what the file says.
  void setMinVersion(uint64_t version);
  /// `compress`: deflated, where that is shorter.
  void writeRecord(const std::string& name, const void* data, std::size_t size, bool compress = false);
  void writeEndOfFile();
  const std::unordered_set<std::string>& getAllWrittenRecords() const { return names_; }
  bool finalized() const { return finalized_; }
  /// The folder's name: the file's without path and ending, "archive" for a sink.
  const std::string& archiveName() const { return archive_name_; }
  const std::string& serializationId() const { return serialization_id_; }

 private:
  struct Output;
  std::unique_ptr<Output> output_;
  std::string archive_name_, serialization_id_;
  std::unordered_set<std::string> names_;
  uint64_t version_ = 3;  // the first one that such files had
  bool finalized_ = false;
};

}  // namespace cresset::jit
