// caffe2::serialize: numbers of the archive format.
#pragma once

#include <cresset_compat/torch.h>

namespace caffe2::serialize {
inline constexpr uint64_t kMinSupportedFileFormatVersion = 1;
inline constexpr uint64_t kMaxSupportedFileFormatVersion = 10;
inline constexpr uint64_t kProducedFileFormatVersion = 10;
/// A source of bytes at any place.
class ReadAdapterInterface {
 public:
  virtual ~ReadAdapterInterface() = default;
  virtual std::size_t size() const = 0;
  virtual std::size_t read(uint64_t pos, void* buf, std::size_t n, const char* what = "") const = 0;
};
class IStreamAdapter final : public ReadAdapterInterface {
 public:
  explicit IStreamAdapter(std::istream* stream) : stream_(stream) {}
  std::size_t size() const override {
    const auto here = stream_->tellg();
    stream_->seekg(0, std::ios::end);
    const auto end = stream_->tellg();
    stream_->seekg(here);
    return static_cast<std::size_t>(end);
  }
  std::size_t read(uint64_t pos, void* buf, std::size_t n, const char* what = "") const override {
    stream_->seekg(static_cast<std::streamoff>(pos));
    stream_->read(static_cast<char*>(buf), static_cast<std::streamsize>(n));
    CRESSET_CHECK(stream_->good(), "istream reader failed: ", what);
    return n;
  }

 private:
  std::istream* stream_;
};
}  // namespace caffe2::serialize
