// C++ operators and indexing of Tensor in terms of the operator table.
#include <cresset/ops/functions_arith.h>
#include <cresset/ops/functions_compare.h>
#include <cresset/ops/functions_copy.h>
#include <cresset/ops/functions_index.h>
#include <cresset/ops/functions_view.h>

namespace cresset {

Tensor Tensor::operator-() const { return cresset::neg(*this); }
Tensor Tensor::operator~() const { return cresset::bitwise_not(*this); }
Tensor& Tensor::operator+=(const Tensor& o) { return add_(o); }
Tensor& Tensor::operator+=(const Scalar& o) { return add_(o); }
Tensor& Tensor::operator-=(const Tensor& o) { return sub_(o); }
Tensor& Tensor::operator-=(const Scalar& o) { return sub_(o); }
Tensor& Tensor::operator*=(const Tensor& o) { return mul_(o); }
Tensor& Tensor::operator*=(const Scalar& o) { return mul_(o); }
Tensor& Tensor::operator/=(const Tensor& o) { return div_(o); }
Tensor& Tensor::operator/=(const Scalar& o) { return div_(o); }

Tensor Tensor::operator[](int64_t i) const { return cresset::select(*this, 0, i); }
Tensor Tensor::operator[](const Tensor& index) const {
  const std::optional<Tensor> one[] = {index};
  return cresset::index(*this, one);
}

Tensor& Tensor::operator=(const Tensor& o) && {
  copy_(o);
  return *this;
}
Tensor& Tensor::operator=(const Scalar& v) && {
  fill_(v);
  return *this;
}

Scalar Tensor::item_scalar() const { return item(); }

#define CRESSET_ARITHMETIC(symbol, function)                                                   \
  Tensor operator symbol(const Tensor& a, const Tensor& b) { return cresset::function(a, b); } \
  Tensor operator symbol(const Tensor& a, const Scalar& b) { return cresset::function(a, b); }
CRESSET_ARITHMETIC(+, add)
CRESSET_ARITHMETIC(-, sub)
CRESSET_ARITHMETIC(*, mul)
CRESSET_ARITHMETIC(/, div)
CRESSET_ARITHMETIC(==, eq)
CRESSET_ARITHMETIC(!=, ne)
CRESSET_ARITHMETIC(<, lt)
CRESSET_ARITHMETIC(<=, le)
CRESSET_ARITHMETIC(>, gt)
CRESSET_ARITHMETIC(>=, ge)
#undef CRESSET_ARITHMETIC

Tensor operator+(const Scalar& a, const Tensor& b) { return cresset::add(b, a); }
Tensor operator-(const Scalar& a, const Tensor& b) { return cresset::rsub(b, a); }
Tensor operator*(const Scalar& a, const Tensor& b) { return cresset::mul(b, a); }
Tensor operator/(const Scalar& a, const Tensor& b) { return cresset::mul(cresset::reciprocal(b), a); }
Tensor operator&(const Tensor& a, const Tensor& b) { return cresset::bitwise_and(a, b); }
Tensor operator|(const Tensor& a, const Tensor& b) { return cresset::bitwise_or(a, b); }
Tensor operator^(const Tensor& a, const Tensor& b) { return cresset::bitwise_xor(a, b); }

}  // namespace cresset
