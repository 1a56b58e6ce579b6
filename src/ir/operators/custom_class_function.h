// Constructors, static methods and properties of C++ classes that extensions register, as functions that scripts call.
#pragma once

#include <cresset/dispatch/custom_class.h>
#include <cresset/ir/function.h>

namespace cresset::jit {

/// The class behind a type, or null.
const CustomClassInfo* custom_class_of(const Type& type);
/// A method as a function; the object, where there is one, is its first argument.
intrusive_ptr<Function> custom_class_function(const CustomClassInfo& cls, const std::string& name, const CustomMethod& method);
/// Runs the method of the object that lies below its other arguments on the stack; leaves one result.
void call_custom_method(const IValue& self, const std::string& name, Stack& stack);

}  // namespace cresset::jit
