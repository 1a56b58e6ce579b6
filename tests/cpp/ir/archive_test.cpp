// Archives without Python: a recorded file runs, and the zip format's wide forms, which only files of many gigabytes have otherwise.
#include <cresset/ir/archive.h>
#include <cresset/ops/functions.h>
#include <gtest/gtest.h>

#include <sstream>

#include "ir/archive/zip_archive.h"

namespace cresset::jit {
namespace {

std::string recorded(const std::string& name) { return std::string(CRESSET_TEST_ARCHIVES) + "/" + name + ".pt"; }

TEST(Archive, RecordedFileRuns) {
  const Module m = load(recorded("mlp_scripted"));
  const NoGradGuard no_grad;
  const Tensor y = m.forward({IValue(cresset::ones({3, 8}))}).toTensor();
  EXPECT_EQ(y.sizes(), (std::vector<int64_t>{3, 4}));
  EXPECT_NEAR(y.exp().sum(IntArrayRef{1}).sum().item<double>(), 3.0, 1e-5);  // log_softmax
}

TEST(Archive, LoadedClassesGoWithTheLastObject) {
  for (const char* name : {"mlp_scripted", "lstm_scripted", "state_scripted", "control_scripted", "attention_scripted", "convbn_traced"}) {
    std::weak_ptr<ClassType> root, inner;
    Module child;
    {
      const Module m = load(recorded(name));
      root = m.type();
      for (const Method& method : m.get_methods()) method.function().code();
      if (!m.children().empty()) child = m.children()[0];
      if (child.defined()) inner = child.type();
    }
    EXPECT_EQ(root.expired(), !child.defined()) << name;
    EXPECT_TRUE(!child.defined() || child.find_method("forward")) << name;
    child = Module();
    EXPECT_TRUE(root.expired() && inner.expired()) << name;
  }
}

TEST(Archive, SavedAndLoaded) {
  const Module m = load(recorded("lstm_scripted"));
  std::stringstream stream;
  save(m, stream, {{"note", "words"}});
  ExtraFilesMap files{{"note", ""}};
  const Module back = load(stream, std::nullopt, files);
  EXPECT_EQ(files.at("note"), "words");
  EXPECT_EQ(code_of(back.get_method("forward").function()), code_of(m.get_method("forward").function()));
  EXPECT_EQ(back.named_parameters().size(), m.named_parameters().size());
  EXPECT_EQ(extra_file_names(stream.str()), std::vector<std::string>{"note"});
}

TEST(Archive, WrongFileSaysWhatIsWrong) {
  std::istringstream stream("no zip");
  try {
    load(stream);
    FAIL();
  } catch (const Error& e) {
    EXPECT_EQ(e.msg(), "archive: a zip file was required; it has only 6 bytes. The file is damaged, incomplete or of another kind.");
  }
}

TEST(ZipArchive, WideForms) {
  std::ostringstream out;
  ZipWriter writer(out, 100);  // everything of 100 bytes or behind byte 100 takes the 64-bit form
  writer.add("a/small", "abc");
  writer.add("a/large", std::string(1000, 'x'));
  writer.add("a/last", "");
  EXPECT_THROW(writer.add("a/small", ""), ValueError);
  writer.finish();
  const auto reader = ZipReader::of_bytes(out.str());
  ASSERT_EQ(reader->entries().size(), 3u);
  EXPECT_EQ(reader->read(*reader->find("a/small")), "abc");
  EXPECT_EQ(reader->read(*reader->find("a/large")), std::string(1000, 'x'));
  EXPECT_EQ(reader->read(*reader->find("a/last")), "");
  for (const ZipEntry& e : reader->entries()) EXPECT_EQ(e.offset % 64, 0u);
  EXPECT_EQ(reader->find("a/none"), nullptr);
}

}  // namespace
}  // namespace cresset::jit
