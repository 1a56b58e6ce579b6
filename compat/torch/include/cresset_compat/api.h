// torch/torch.h: the whole C++ front end.
#pragma once

#include <cresset_compat/archive.h>
#include <cresset_compat/data.h>
