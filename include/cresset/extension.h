// What an extension needs: tensors, operators, registration. (torch/extension.h forwards here.)
#pragma once

#include <cresset/autograd/function.h>
#include <cresset/core/dispatch_types.h>
#include <cresset/dispatch/library.h>
#include <cresset/ops/functions.h>
