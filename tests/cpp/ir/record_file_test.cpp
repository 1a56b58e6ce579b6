// Files of records: what is written is read, by every kind of source. The names and words are PyTorch's.
#include <cresset/ir/archive.h>
#include <cresset/ir/record_file.h>
#include <cresset/ops/functions_creation.h>

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstring>
#include <fstream>
#include <set>
#include <sstream>

#include "error_of.h"

namespace cresset::jit {
namespace {

const std::string kLong(1000, 'x');

std::string written() {
  std::ostringstream out;
  PyTorchStreamWriter writer([&](const void* data, std::size_t n) {
    out.write(static_cast<const char*>(data), static_cast<std::streamsize>(n));
    return out ? n : 0;
  });
  EXPECT_EQ(writer.archiveName(), "archive");
  writer.writeRecord("key1", "hello", 5);
  writer.writeRecord("dir/key2", kLong.data(), kLong.size(), true);
  EXPECT_EQ(error_of([&] { writer.writeRecord("key1", "hello", 5); }), "Tried to serialize file twice: key1");
  EXPECT_FALSE(writer.finalized());
  writer.writeEndOfFile();
  EXPECT_TRUE(writer.finalized());
  EXPECT_EQ(writer.serializationId().size(), 40u);
  EXPECT_NE(error_of([&] { writer.writeEndOfFile(); }), "no error");
  EXPECT_NE(error_of([&] { writer.writeRecord("more", "", 0); }), "no error");
  return out.str();
}
std::string record(const PyTorchStreamReader& reader, const std::string& name) {
  const auto [data, size] = reader.getRecord(name);
  return {static_cast<const char*>(data.get()), size};
}

TEST(RecordFile, IsReadAsWritten) {
  const std::string bytes = written();
  std::istringstream stream(bytes);
  PyTorchStreamReader reader(&stream);
  EXPECT_EQ(reader.version(), 3u);
  EXPECT_EQ(reader.getAllRecords(), (std::vector<std::string>{"key1", "dir/key2", "version", "byteorder", ".data/serialization_id"}));
  EXPECT_TRUE(reader.hasRecord("key1"));
  EXPECT_FALSE(reader.hasRecord("nope"));
  EXPECT_EQ(record(reader, "key1"), "hello");
  EXPECT_EQ(record(reader, "dir/key2"), kLong);
  EXPECT_EQ(record(reader, "version"), "3\n");
  EXPECT_EQ(record(reader, ".data/serialization_id"), reader.serializationId());
  EXPECT_EQ(reader.getRecordSize("dir/key2"), kLong.size());
  EXPECT_EQ(reader.getRecordOffset("key1") % 64, 0u);
  EXPECT_EQ(bytes.substr(reader.getRecordOffset("key1"), 5), "hello");
  EXPECT_LT(bytes.size(), kLong.size() + 900);  // the long record is compressed
  char five[5];
  EXPECT_EQ(reader.getRecord("key1", five, 5), 5u);
  EXPECT_EQ(std::string(five, 5), "hello");
  EXPECT_EQ(error_of([&] { reader.getRecord("key1", five, 3); }), "record size 5 mismatch with dst size 3");
  EXPECT_NE(error_of([&] { reader.getRecord("nope"); }).find("failed locating file nope: file not found"), std::string::npos);
}

TEST(RecordFile, HidesDebugRecordsWhenTold) {
  std::string bytes;
  {
    PyTorchStreamWriter writer([&](const void* data, std::size_t n) { return bytes.append(static_cast<const char*>(data), n), n; });
    writer.writeRecord("code.debug_pkl", "d", 1);
  }  // ends the file
  std::istringstream stream(bytes);
  PyTorchStreamReader reader(&stream);
  EXPECT_TRUE(reader.hasRecord("code.debug_pkl"));
  reader.setShouldLoadDebugSymbol(false);
  EXPECT_FALSE(reader.hasRecord("code.debug_pkl"));
  EXPECT_EQ(std::get<1>(reader.getRecord("code.debug_pkl")), 0u);
}

TEST(RecordFile, OfEverySource) {
  const std::string bytes = written(), path = testing::TempDir() + "record_file_" + std::to_string(::getpid()) + ".pt";
  {
    PyTorchStreamWriter writer(path);
    writer.setMinVersion(7);
    writer.writeRecord("a", "b", 1);
  }
  EXPECT_EQ(PyTorchStreamReader(path).version(), 7u);
  EXPECT_EQ(record(PyTorchStreamReader(std::make_shared<FileAdapter>(path)), "a"), "b");
  EXPECT_EQ(record(PyTorchStreamReader(std::make_shared<MemoryReadAdapter>(bytes.data(), bytes.size())), "key1"), "hello");
  ::unlink(path.c_str());
  EXPECT_NE(error_of([&] { PyTorchStreamReader reader(path); }).find("cannot be opened"), std::string::npos);
  EXPECT_NE(error_of([&] { FileAdapter file(path); }).find("open file failed because of errno 2"), std::string::npos);
  std::istringstream bad("not a zip");
  EXPECT_NE(error_of([&] { PyTorchStreamReader reader(&bad); }), "no error");
}

TEST(RecordFile, AdaptersEndWhereTheirBytesEnd) {
  const std::string bytes = "0123456789";
  char out[4];
  const MemoryReadAdapter memory(bytes.data(), bytes.size());
  EXPECT_EQ(memory.read(8, out, 4), 2u);
  EXPECT_EQ(std::string(out, 2), "89");
  EXPECT_EQ(memory.read(10, out, 4), 0u);
  std::istringstream stream(bytes);
  const IStreamAdapter adapter(&stream);
  EXPECT_EQ(adapter.size(), 10u);
  EXPECT_EQ(adapter.read(3, out, 4), 4u);
  EXPECT_EQ(std::string(out, 4), "3456");
  EXPECT_EQ(error_of([&] { adapter.read(8, out, 4, "over"); }), "istream reader failed: over.");
}

TEST(RecordFile, SaysWhenTheSinkTakesNoMore) {
  PyTorchStreamWriter writer([](const void*, std::size_t) { return std::size_t{0}; });
  EXPECT_NE(error_of([&] {
              writer.writeRecord("a", "b", 1);
              writer.writeEndOfFile();
            }),
            "no error");
}

TEST(RecordFile, HasValuesBesideAModule) {
  const Tensor x = full({4}, 2.5);
  const std::vector<char> saved = pickle_save(IValue(x));
  std::istringstream in(std::string(saved.begin(), saved.end()));
  const PyTorchStreamReader source(&in);
  const auto read = [&](std::size_t bytes, const std::string& name) {
    std::ostringstream out;
    PyTorchStreamWriter writer([&](const void* data, std::size_t n) {
      out.write(static_cast<const char*>(data), static_cast<std::streamsize>(n));
      return n;
    });
    const std::string pickle = record(source, "data.pkl"), memory = record(source, "data/0");
    writer.writeRecord("traced_inputs.pkl", pickle.data(), pickle.size());
    writer.writeRecord("traced_inputs/0", memory.data(), bytes);
    writer.writeEndOfFile();
    std::istringstream file(out.str());
    PyTorchStreamReader reader(&file);
    return readArchiveAndTensors(name, "", "traced_inputs/", std::nullopt, std::nullopt, std::nullopt, reader);
  };
  EXPECT_TRUE(read(16, "traced_inputs").toTensor().equal(x));
  EXPECT_EQ(error_of([&] { read(12, "traced_inputs"); }),
            "readArchiveAndTensors: the record 'traced_inputs/0' should have 4 elements; its data has 12 bytes.");
  EXPECT_NE(error_of([&] { read(16, "nope"); }), "no error");
}

}  // namespace
}  // namespace cresset::jit
