// Profiles as files in Chrome's format.
#include <cresset/autograd/profiler.h>

#include <gtest/gtest.h>

#include <sstream>

#include <cresset/ops/functions.h>

namespace cresset::autograd::profiler {
namespace {

TEST(RecordProfile, WritesWhatRanInItsScope) {
  std::ostringstream out;
  {
    const RecordProfile record(out);
    EXPECT_THROW(RecordProfile{out}, Error);
    CRESSET_RECORD_FUNCTION("a \"step\"", {});
    ones({2}).add(1);
  }
  const std::string text = out.str();
  EXPECT_EQ(text.substr(0, 2), "[\n");
  EXPECT_NE(text.find("{\"name\": \"a \\\"step\\\"\", \"ph\": \"X\", \"ts\": "), std::string::npos);
  EXPECT_NE(text.find("\"aten::add\""), std::string::npos);
  EXPECT_EQ(text.substr(text.size() - 3), "\n]\n");
  EXPECT_THROW(RecordProfile("/no such folder/profile.json"), Error);
}

}  // namespace
}  // namespace cresset::autograd::profiler
