// Small helpers of the autograd tests.
#pragma once

#include <gtest/gtest.h>

#include <vector>

#include <cresset/autograd/autograd.h>
#include <cresset/autograd/function.h>
#include <cresset/autograd/variable.h>
#include <cresset/ops/functions.h>

namespace cresset::autograd::test {

/// A one-dimensional float64 tensor with these values.
inline Tensor vec(const std::vector<double>& values) {
  Tensor t = cresset::empty({static_cast<int64_t>(values.size())}, TensorOptions(kDouble));
  for (std::size_t i = 0; i < values.size(); ++i) t.data_ptr<double>()[i] = values[i];
  return t;
}
/// The same as a leaf that requires grad.
inline Tensor leaf(const std::vector<double>& values) {
  Tensor t = vec(values);
  t.requires_grad_();
  return t;
}
/// A float64 leaf of a shape, 1, 2, 3, ….
inline Tensor leaf_of(IntArrayRef sizes) {
  Tensor t = cresset::empty(sizes, TensorOptions(kDouble));
  for (int64_t i = 0; i < t.numel(); ++i) t.data_ptr<double>()[i] = static_cast<double>(i + 1);
  t.requires_grad_();
  return t;
}

inline std::vector<double> values_of(const Tensor& t) {
  if (!t.defined()) return {-12345.0};
  NoGradGuard no_grad;
  const Tensor c = cresset::clone(t, MemoryFormat::Contiguous);
  const Tensor d = c.scalar_type() == kDouble ? c : cresset::to(c, kDouble);
  return {d.data_ptr<double>(), d.data_ptr<double>() + d.numel()};
}

inline void expect_values(const Tensor& t, const std::vector<double>& expected) {
  ASSERT_TRUE(t.defined());
  const std::vector<double> got = values_of(t);
  ASSERT_EQ(got.size(), expected.size());
  for (std::size_t i = 0; i < got.size(); ++i) EXPECT_NEAR(got[i], expected[i], 1e-9) << "element " << i;
}

/// Runs f, which must raise E with a message that contains text.
template <class E = Error, class F>
void expect_error(const F& f, const std::string& text) {
  try {
    f();
  } catch (const E& e) {
    EXPECT_NE(e.msg().find(text), std::string::npos) << "message: " << e.msg();
    return;
  }
  ADD_FAILURE() << "nothing was raised; expected: " << text;
}

/// Collects warnings while it lives.
class Warnings {
 public:
  Warnings() {
    messages().clear();
    saved_ = set_warning_handler([](std::string_view, const std::string& m) { messages().push_back(m); });
  }
  ~Warnings() { set_warning_handler(saved_); }
  static std::vector<std::string>& messages() {
    static std::vector<std::string> list;
    return list;
  }

 private:
  WarningHandler saved_;
};

}  // namespace cresset::autograd::test
