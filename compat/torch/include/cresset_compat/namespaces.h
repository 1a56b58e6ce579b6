// PyTorch's namespaces. They are real namespaces, so that sources may open them. c10 and at take the names of Cresset that
// PyTorch has (names.h, functions.h), not all of them: sources that say `using namespace at` have functions of their own.
//
// Builds include this file in front of every source, for headers declare PyTorch's classes before they include any of its headers: the
// declaration must find the name taken, or it makes another class.
#pragma once
#ifdef __cplusplus

namespace cresset {
class DataPtr;
class Dispatcher;
class DispatchKeySet;
class FunctionSchema;
class Generator;
class IValue;
class OperatorHandle;
class QualifiedName;
class Scalar;
class Storage;
class Stream;
class Tensor;
class TensorBase;
struct Allocator;
struct Argument;
struct Device;
struct GeneratorImpl;
struct OperatorName;
struct StorageImpl;
struct SymInt;
struct TensorImpl;
struct TensorOptions;
struct TensorType;
struct Type;
namespace autograd {
struct AutogradMeta;
struct Edge;
struct Engine;
struct Node;
namespace impl {}
}  // namespace autograd
namespace detail {}
namespace impl {}
namespace indexing {}
namespace ivalue {}
namespace jit {
class AliasDb;
class Block;
class ClassType;
class Code;
class CompilationUnit;
class Function;
class Graph;
class GraphFunction;
class Method;
class Module;
class Node;
class Object;
class SourceRange;
class Symbol;
class Value;
struct Operator;
namespace logging {}
namespace tracer {}
}  // namespace jit
namespace nn {}
namespace optim {}
}  // namespace cresset

namespace c10 {
using cresset::Allocator;
using cresset::Argument;
using cresset::DataPtr;
using cresset::Device;
using cresset::Dispatcher;
using cresset::DispatchKeySet;
using cresset::FunctionSchema;
using cresset::GeneratorImpl;
using cresset::IValue;
using cresset::OperatorHandle;
using cresset::OperatorName;
using cresset::QualifiedName;
using cresset::Scalar;
using cresset::Storage;
using cresset::StorageImpl;
using cresset::Stream;
using cresset::SymInt;
using cresset::TensorImpl;
using cresset::TensorOptions;
using cresset::TensorType;
using cresset::Type;
using cresset::jit::ClassType;
using cresset::jit::Symbol;
namespace detail {
using namespace cresset::detail;
}
namespace impl {
using namespace cresset::impl;
}
namespace ivalue {
using namespace cresset::ivalue;
}
namespace guts {}
namespace utils {}
namespace util {}
}  // namespace c10

namespace caffe2 {
using namespace c10;
}

namespace at {
using cresset::Generator;
using cresset::Tensor;
using cresset::TensorBase;
using namespace c10;
namespace detail {
using namespace c10::detail;
}
namespace impl {
using namespace c10::impl;
}
namespace indexing {
using namespace cresset::indexing;
}
namespace internal {}
namespace native {
using namespace at;
}
namespace meta {}
}  // namespace at

namespace torch {
using namespace at;
using cresset::Tensor;  // found before a Tensor of a program's own at global scope
namespace autograd {
using cresset::autograd::AutogradMeta;
using cresset::autograd::Edge;
using cresset::autograd::Engine;
using cresset::autograd::Node;
using namespace cresset::autograd;
namespace impl {
using namespace cresset::autograd::impl;
}
}  // namespace autograd
namespace detail {
using namespace at::detail;
}
namespace indexing {
using namespace cresset::indexing;
}
namespace jit {
using cresset::jit::AliasDb;
using cresset::jit::Block;
using cresset::jit::Code;
using cresset::jit::CompilationUnit;
using cresset::jit::Function;
using cresset::jit::Graph;
using cresset::jit::GraphFunction;
using cresset::jit::Method;
using cresset::jit::Module;
using cresset::jit::Node;
using cresset::jit::Object;
using cresset::jit::Operator;
using cresset::jit::SourceRange;
using cresset::jit::Value;
using namespace c10;
namespace logging {
using namespace cresset::jit::logging;
}
namespace tracer {
using namespace cresset::jit::tracer;
}
namespace script {
using torch::jit::CompilationUnit;
using torch::jit::Method;
using torch::jit::Module;
using torch::jit::Object;
}  // namespace script
}  // namespace jit
namespace utils {}
}  // namespace torch
#endif  // __cplusplus
