// C++ modules, optimisers and weight files.
#pragma once

#include <cresset/nn/adaptive_softmax.h>
#include <cresset/nn/attention.h>
#include <cresset/nn/containers.h>
#include <cresset/nn/functional.h>
#include <cresset/nn/init.h>
#include <cresset/nn/layers.h>
#include <cresset/nn/lbfgs.h>
#include <cresset/nn/lr_scheduler.h>
#include <cresset/nn/module.h>
#include <cresset/nn/optim.h>
#include <cresset/nn/rnn.h>
#include <cresset/nn/safetensors.h>
#include <cresset/nn/stateless.h>
#include <cresset/nn/transformer.h>
#include <cresset/nn/utils.h>
