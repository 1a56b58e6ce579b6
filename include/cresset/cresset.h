// Everything an application uses.
#pragma once

#include <cresset/autograd/autograd.h>
#include <cresset/extension.h>
#include <cresset/nn.h>
#include <cresset/ops/cpu_fallback.h>
#include <cresset/ops/from_blob.h>
#include <cresset/ops/tensor_index.h>
#include <cresset/ops/tensor_literal.h>
#include <cresset/version.h>
