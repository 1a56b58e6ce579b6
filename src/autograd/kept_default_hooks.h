// The hooks of saved tensors that were there before.
#pragma once

#include <vector>

#include <cresset/autograd/saved_variable.h>

namespace cresset::autograd {

/// When it ends the thread has the default hooks that it had at its beginning: what is pushed or removed in a backward pass is the pass's.
class KeptDefaultHooks {
 public:
  KeptDefaultHooks();
  ~KeptDefaultHooks();
  KeptDefaultHooks(const KeptDefaultHooks&) = delete;
  KeptDefaultHooks& operator=(const KeptDefaultHooks&) = delete;

 private:
  std::vector<SavedTensorDefaultHooks::Factory> before_;
};

}  // namespace cresset::autograd
