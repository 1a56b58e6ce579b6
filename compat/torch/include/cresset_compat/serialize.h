// caffe2::serialize: files of records, and numbers of the archive format.
#pragma once

#include <cresset_compat/torch.h>

#include <cresset/ir/record_file.h>

namespace caffe2::serialize {
inline constexpr uint64_t kMinSupportedFileFormatVersion = 1;
inline constexpr uint64_t kMaxSupportedFileFormatVersion = 10;
inline constexpr uint64_t kProducedFileFormatVersion = 10;
inline constexpr uint64_t kMinProducedFileFormatVersion = 3;
using cresset::jit::FileAdapter;
using cresset::jit::IStreamAdapter;
using cresset::jit::MemoryReadAdapter;
using cresset::jit::PyTorchStreamReader;
using cresset::jit::PyTorchStreamWriter;
using cresset::jit::ReadAdapterInterface;
}  // namespace caffe2::serialize
