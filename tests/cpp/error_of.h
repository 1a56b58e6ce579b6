// The message of what a call raises.
#pragma once

#include <exception>
#include <string>

template <class Function>
std::string error_of(const Function& f) {
  try {
    f();
  } catch (const std::exception& e) {
    return e.what();
  }
  return "no error";
}
