// Files in the safetensors format: what is written comes back, and damaged files are refused.
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>

#include <cresset/cresset.h>
#include <cresset/nn/safetensors.h>

using namespace cresset;

namespace {

struct File {
  std::string path = (std::filesystem::temp_directory_path() / ("cresset_safetensors_" + std::to_string(::getpid()))).string();
  ~File() { std::filesystem::remove(path); }
  void write(const std::string& header, const std::string& data) const {
    const uint64_t length = header.size();
    std::ofstream out(path, std::ios::binary);
    out.write(reinterpret_cast<const char*>(&length), sizeof length);
    out << header << data;
  }
};

bool refused(const std::string& path) {
  try {
    load_safetensors(path);
  } catch (const Error&) {
    return true;
  }
  return false;
}

}  // namespace

TEST(Safetensors, RoundTripOfTypesViewsAndEmptyTensors) {
  const File file;
  const Tensor matrix = arange(6, kFloat).reshape({2, 3});
  save_safetensors(file.path, {{"a", matrix.t()}, {"b", zeros({0, 4}, kLong)}, {"c", full({}, true, TensorOptions(kBool))}});
  const auto loaded = load_safetensors(file.path);
  ASSERT_EQ(loaded.size(), 3u);
  EXPECT_EQ(loaded[0].first, "a");
  EXPECT_TRUE(loaded[0].second.equal(matrix.t()));
  EXPECT_EQ(loaded[1].second.sizes(), IntArrayRef({0, 4}));
  EXPECT_EQ(loaded[1].second.scalar_type(), kLong);
  EXPECT_EQ(loaded[2].second.dim(), 0);
}

TEST(Safetensors, DamagedFilesAreRefused) {
  const File file;
  EXPECT_TRUE(refused(file.path + ".missing"));
  const std::string four = std::string(16, '\0');
  file.write(R"({"a":{"dtype":"F32","shape":[4],"data_offsets":[0,16]}})", four);
  EXPECT_FALSE(refused(file.path));
  file.write(R"({"a":{"dtype":"F32","shape":[4],"data_offsets":[0,16]}})", "short");
  EXPECT_TRUE(refused(file.path)) << "range beyond the data";
  file.write(R"({"a":{"dtype":"F32","shape":[5],"data_offsets":[0,16]}})", four);
  EXPECT_TRUE(refused(file.path)) << "shape and range differ";
  file.write(R"({"a":{"dtype":"F32","shape":[-4],"data_offsets":[0,16]}})", four);
  EXPECT_TRUE(refused(file.path)) << "negative size";
  file.write(R"({"a":{"dtype":"F32","shape":[4611686018427387904,4],"data_offsets":[0,16]}})", four);
  EXPECT_TRUE(refused(file.path)) << "sizes that overflow";
  file.write(R"({"a":{"dtype":"F99","shape":[4],"data_offsets":[0,16]}})", four);
  EXPECT_TRUE(refused(file.path)) << "unknown dtype";
  file.write(R"({"a":{"dtype":"F32","shape":[4],"data_offsets":[0,16]},"b":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})", four);
  EXPECT_TRUE(refused(file.path)) << "ranges that overlap";
  file.write("{\"a\":" + std::string(100000, '[') + std::string(100000, ']') + "}", four);
  EXPECT_TRUE(refused(file.path)) << "nested deeply";
  file.write("{\"a\":{\"dtype\":[[1]],\"shape\":[4],\"data_offsets\":[0,16]}}", four);
  EXPECT_TRUE(refused(file.path)) << "a dtype that is no text";
  file.write("{ not json", four);
  EXPECT_TRUE(refused(file.path)) << "no header";
  std::ofstream(file.path, std::ios::binary) << "\xff\xff\xff\xff\xff\xff\xff\x7f";
  EXPECT_TRUE(refused(file.path)) << "a header longer than the file";
}
