// Archives without Python: a recorded file runs, and the zip format's wide forms, which only files of many gigabytes have otherwise.
#include <cresset/ir/archive.h>
#include <cresset/ops/functions.h>
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <sstream>

#include "error_of.h"
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

TEST(Archive, ValuesWithoutCode) {
  const Tensor weight = cresset::arange(6).view({2, 3});
  Dict<std::string, Tensor> state;
  state.insert("weight", weight);
  state.insert("row", weight[1]);  // shares the storage
  const IValue back = pickle_load(pickle_save(IValue(state)));
  const auto read = back.toGenericDict();
  EXPECT_EQ(read.size(), 2u);
  const Tensor whole = read.at(IValue("weight")).toTensor(), row = read.at(IValue("row")).toTensor();
  EXPECT_TRUE(whole.equal(weight));
  EXPECT_TRUE(row.equal(weight[1]));
  EXPECT_TRUE(row.is_alias_of(whole));
  EXPECT_DOUBLE_EQ(pickle_load(pickle_save(IValue(2.5))).toDouble(), 2.5);

  const auto unit = compile("class Point:\n  def __init__(self):\n    self.x = 1\n\ndef point():\n  return Point()\n");
  EXPECT_EQ(
      error_of([&] { pickle_save(unit->run_method("point")); }),
      "pickle_save: a value without objects of scripts' classes was required; this one has one of '__torch__.Point'. jit::save writes "
      "their code, too.");
  EXPECT_EQ(error_of([] { pickle_load({'n', 'o'}); }),
            "archive: a zip file was required; it has only 2 bytes. The file is damaged, incomplete or of another kind.");
}

// A state_dict that Python's torch.save wrote.
TEST(Archive, ValuesFromPython) {
  std::ifstream file(CRESSET_TEST_CHECKPOINTS "/convbn_state_dict.pt", std::ios::binary);
  const std::vector<char> bytes(std::istreambuf_iterator<char>(file), {});
  const auto state = pickle_load(bytes).toGenericDict();
  EXPECT_GT(state.size(), 3u);
  for (const auto& entry : state) {
    EXPECT_TRUE(entry.key().isString());
    EXPECT_TRUE(entry.value().toTensor().defined()) << entry.key().toStringRef();
  }
}

TEST(CompilationUnit, CompilesAndRuns) {
  const auto unit = compile("def scaled(a, n: int = 2):\n  return a * n\n\ndef length(a: List[int]):\n  return len(a)\n");
  EXPECT_EQ(unit->run_method("scaled", cresset::ones({1}), 3).toTensor().item<int64_t>(), 3);
  EXPECT_EQ(unit->run_method("scaled", cresset::ones({1})).toTensor().item<int64_t>(), 2);
  EXPECT_EQ(unit->run_method("length", List<int64_t>({3, 4})).toInt(), 2);
  EXPECT_EQ(error_of([&] { unit->run_method("width"); }), "attempted to get undefined function width");
}

TEST(ZipArchive, WideForms) {
  std::ostringstream out;
  ZipWriter writer(out, 100);  // everything of 100 bytes or behind byte 100 takes the 64-bit form
  writer.add("a/small", "abc");
  writer.add("a/large", std::string(1000, 'x'));
  writer.add("a/last", "");
  const std::string text(1000, 'y'), noise("\x01\x7f\x80z\xff", 5);
  writer.add_text("a/text", text);
  writer.add_text("a/noise", noise);  // not shorter by compression
  EXPECT_THROW(writer.add("a/small", ""), ValueError);
  writer.finish();
  const auto reader = ZipReader::of_bytes(out.str());
  ASSERT_EQ(reader->entries().size(), 5u);
  EXPECT_EQ(reader->read(*reader->find("a/text")), text);
  EXPECT_TRUE(reader->find("a/text")->deflated);
  EXPECT_LT(reader->find("a/text")->compressed_size, 50u);
  EXPECT_EQ(reader->read(*reader->find("a/noise")), noise);
  EXPECT_FALSE(reader->find("a/noise")->deflated);
  EXPECT_EQ(reader->read(*reader->find("a/small")), "abc");
  EXPECT_EQ(reader->read(*reader->find("a/large")), std::string(1000, 'x'));
  EXPECT_EQ(reader->read(*reader->find("a/last")), "");
  for (const ZipEntry& e : reader->entries()) EXPECT_EQ(e.offset % 64, 0u);
  EXPECT_EQ(reader->find("a/none"), nullptr);
}

}  // namespace
}  // namespace cresset::jit
