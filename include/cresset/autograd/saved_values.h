// What a node keeps for backward, by name: the visitor that shows it.
#pragma once

#include <vector>

#include <cresset/autograd/saved_variable.h>
#include <cresset/dispatch/ivalue.h>

namespace cresset::autograd {

/// Receives each saved value of a node under the name of its argument or result.
struct SavedValueVisitor {
  virtual ~SavedValueVisitor() = default;
  virtual void tensor(const char* name, SavedVariable& saved) = 0;
  /// released: a backward pass has dropped the list.
  virtual void tensors(const char* name, std::vector<SavedVariable>& saved, bool released) = 0;
  virtual void value(const char* name, IValue value) = 0;
};

}  // namespace cresset::autograd
