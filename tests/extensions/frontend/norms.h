#pragma once

namespace at {
class Tensor;  // as programs name it that include the headers elsewhere
}

double norm_of(const at::Tensor& t);
