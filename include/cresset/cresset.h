// Everything an application uses.
#pragma once

#include <cresset/autograd/autograd.h>
#include <cresset/extension.h>
#include <cresset/ops/from_blob.h>
