// PyTorch's namespaces. They are real namespaces, so that sources may open them. c10 and at take the names of Cresset that
// PyTorch has (names.h, functions.h), not all of them: sources that say `using namespace at` have functions of their own.
#pragma once

namespace cresset {
namespace autograd::impl {}
namespace detail {}
namespace impl {}
namespace indexing {}
namespace ivalue {}
namespace jit {
// Sources may declare these again in torch::jit before they use them.
class AliasDb;
class Block;
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
class Value;
struct Operator;
namespace logging {}
namespace tracer {}
}  // namespace jit
namespace nn {}
namespace optim {}
}  // namespace cresset

namespace c10 {
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
namespace autograd {
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
