// The files of MNIST: four bytes of magic number, big-endian sizes, then bytes.
#include <algorithm>
#include <cstring>
#include <fstream>
#include <iterator>

#include <cresset/nn/data.h>
#include <cresset/ops/functions_copy.h>

namespace cresset::data::datasets {

namespace {
int64_t number(const std::string& bytes, std::size_t at) {
  int64_t value = 0;
  for (std::size_t i = at; i < at + 4; ++i) value = value << 8 | static_cast<unsigned char>(bytes[i]);
  return value;
}

/// A tensor of bytes with the sizes that the file names.
Tensor read(const std::string& path, int64_t magic, std::size_t dims) {
  std::ifstream file(path, std::ios::binary);
  CRESSET_CHECK(file, "Error opening images file at ", path);
  const std::string bytes{std::istreambuf_iterator<char>(file), {}};
  const std::size_t start = 4 + 4 * dims;
  CRESSET_CHECK(bytes.size() >= start && number(bytes, 0) == magic, path, ": not a file of MNIST of ", dims, " dimensions");
  std::vector<int64_t> sizes;
  int64_t count = 1;
  for (std::size_t d = 0; d < dims; ++d) {
    sizes.push_back(number(bytes, 4 + 4 * d));
    CRESSET_CHECK(sizes.back() <= static_cast<int64_t>(bytes.size()), path, ": sizes beyond the end of the file");
    count *= sizes.back();
  }
  CRESSET_CHECK(static_cast<int64_t>(bytes.size() - start) == count, path, ": ", count, " bytes of data were expected, the file has ",
                bytes.size() - start);
  Tensor out = cresset::empty(sizes, TensorOptions(kByte));
  if (count > 0) std::memcpy(out.data_ptr<uint8_t>(), bytes.data() + start, static_cast<std::size_t>(count));
  return out;
}
}  // namespace

MNIST::MNIST(const std::string& root, Mode mode) : mode_(mode) {
  const std::string prefix = root + (root.empty() || root.back() == '/' ? "" : "/") + (mode == Mode::kTrain ? "train" : "t10k");
  images_ = read(prefix + "-images-idx3-ubyte", 2051, 3).unsqueeze(1).to(kFloat).div_(255);
  targets_ = read(prefix + "-labels-idx1-ubyte", 2049, 1).to(kLong);
  CRESSET_CHECK(images_.size(0) == targets_.size(0), root, ": ", images_.size(0), " images but ", targets_.size(0), " labels");
}

}  // namespace cresset::data::datasets
