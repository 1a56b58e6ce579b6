#include "norms.h"

#include <torch/torch.h>

double norm_of(const at::Tensor& t) { return t.norm().item<double>(); }
