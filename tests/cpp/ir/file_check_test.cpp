// FileCheck: what matches, and what the errors say.
#include <cresset/ir/file_check.h>

#include <gtest/gtest.h>

#include <cresset/base/error.h>

#include "error_of.h"

namespace cresset::jit::testing {
namespace {

const std::string kText = "a = mul(x)\nb = add(a)\nc = mul(b)\nreturn c\n";

TEST(FileCheck, ChecksMatchBehindOneAnother) {
  FileCheck().check("mul")->check_next("add")->check_not("add")->check("mul")->check_same("(b)")->check("return")->run(kText);
  FileCheck().check_count("mul", 2, true)->run(kText);
  FileCheck().check_dag("return")->check_dag("add")->run(kText);
  FileCheck().check_regex("c = [a-z]+\\(b\\)")->check("return")->run(kText);
  FileCheck().check_count("div", 0, true)->run(kText);
}

TEST(FileCheck, ErrorsShowThePlace) {
  EXPECT_EQ(error_of([] { FileCheck().check("add")->check("div")->run(kText); }),
            "Expected to find \"div\" but did not find it\nSearched string:\na = mul(x)\nb = add(a)\n       ~~~ <--- HERE\nc = "
            "mul(b)\nreturn c\n\n"
            "From CHECK: div\n");
  EXPECT_EQ(error_of([] { FileCheck().check_not("add")->check("return")->run(kText); }).substr(0, 44),
            "Expected to not find \"add\" but found it\na = ");
  EXPECT_THROW(FileCheck().check("mul")->check_same("add")->run(kText), Error);
  EXPECT_THROW(FileCheck().check("mul(x)")->check_next("return")->run(kText), Error);
  EXPECT_THROW(FileCheck().check_count("mul", 1, true)->run(kText), Error);
  EXPECT_THROW(FileCheck().check_count("mul", 3)->run(kText), Error);
  FileCheck nothing;
  EXPECT_THROW(nothing.run(kText), Error);
}

TEST(FileCheck, ChecksAreReadFromComments) {
  FileCheck().run("# CHECK: mul\n  x\n  # CHECK-NEXT: add\n# CHECK-COUNT-EXACTLY-1: mul\n", kText);
  EXPECT_THROW(FileCheck().run("# CHECK-COUNT-2: add", kText), Error);
  EXPECT_EQ(error_of([] { FileCheck().run("# CHECK-FIRST: mul", kText); }),
            "Could not parse check at:\n# CHECK-FIRST: mul\n       ~ <--- HERE\nCheck for bad input.");
  EXPECT_EQ(error_of([] { FileCheck().run("  # CHECK1\n# CHECK: mul", kText); }),
            "Could not parse check at:\n  # CHECK1\n         ~ <--- HERE\n# CHECK: mul\nCheck for bad input.");
  EXPECT_EQ(error_of([] { FileCheck().run("x\n # CHECK-NEXT mul\ny", kText); }),
            "Could not parse check at:\nx\n # CHECK-NEXT mul\n        ~ <--- HERE\ny\nCheck for bad input.");
  EXPECT_EQ(error_of([] { FileCheck().run("#CHECK", kText); }), "Could not parse check at:\n#CHECKCheck for bad input.");
  EXPECT_THROW(FileCheck().run("# CHECK-COUNT: mul", kText), Error);
  EXPECT_THROW(FileCheck().run("## CHECK: mul", kText), Error);  // none is there
  FileCheck().run("text # CHECK: mul", kText);
}

TEST(FileCheck, HighlightsAreTheLineBelow) {
  const std::string shown = "f(x, yy)\n  ~  <--- HERE\nf(x, yy)\n     ~~\n";
  FileCheck().check_source_highlighted("x")->check_source_highlighted("yy")->run(shown);
  EXPECT_THROW(FileCheck().check_source_highlighted("f")->run(shown), Error);
}

}  // namespace
}  // namespace cresset::jit::testing
