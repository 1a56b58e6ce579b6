// at::DynamicLibrary: a shared library that is opened while the program runs.
#pragma once

#include <dlfcn.h>

#include <cresset/base/error.h>

namespace at {

/// Raises where neither name can be opened. The library is closed with the object, unless `leak_handle`.
struct DynamicLibrary {
  explicit DynamicLibrary(const char* name, const char* alt_name = nullptr, bool leak_handle = false) : leaks_(leak_handle) {
    handle_ = dlopen(name, RTLD_LOCAL | RTLD_NOW);
    if (!handle_ && alt_name) handle_ = dlopen(alt_name, RTLD_LOCAL | RTLD_NOW);
    if (!handle_) throw cresset::Error(std::string("Error in dlopen: ") + dlerror());
  }
  DynamicLibrary(const DynamicLibrary&) = delete;
  DynamicLibrary& operator=(const DynamicLibrary&) = delete;
  ~DynamicLibrary() {
    if (!leaks_) dlclose(handle_);
  }

  /// The address of a symbol; raises where there is none.
  void* sym(const char* name) {
    void* found = dlsym(handle_, name);
    if (!found) throw cresset::Error(std::string("Error in dlsym: ") + dlerror());
    return found;
  }
  bool available() const { return handle_ != nullptr; }

 private:
  void* handle_;
  bool leaks_;
};

}  // namespace at
