// What kernels of vendors take from c10/util and ATen/native, with PyTorch's headers for each.
#include <torch/extension.h>

#include <ATen/Operators.h>
#include <ATen/WrapDimUtilsMulti.h>
#include <ATen/autocast_mode.h>
#include <ATen/core/stack.h>
#include <ATen/native/CPUFallback.h>
#include <ATen/native/ConvUtils.h>
#include <ATen/native/ForeachUtils.h>
#include <ATen/native/Pool.h>
#include <ATen/native/Resize.h>
#include <ATen/native/TensorFactories.h>
#include <ATen/native/cpu/DistributionTemplates.h>
#include <ATen/native/layer_norm.h>
#include <ATen/ops/cumsum.h>
#include <c10/core/AllocatorConfig.h>
#include <c10/core/DynamicCast.h>
#include <c10/core/alignment.h>
#include <c10/core/impl/GPUTrace.h>
#include <c10/util/FunctionRef.h>
#include <c10/util/accumulate.h>
#include <c10/util/hash.h>
#include <c10/util/llvmMathExtras.h>
#include <c10/util/overflows.h>
#include <c10/util/thread_name.h>
#include <torch/csrc/utils/object_ptr.h>

namespace {

void fail_at_a_place(const char* function, const char* file, uint32_t line, const char* message) {
  throw ::c10::Error({function, file, line}, message);
}

template <class T>
bool moved(c10::ScalarType type, T value) {
  alignas(16) char memory[16];
  c10::cast_and_store<T>(type, memory, value);
  return c10::fetch_and_cast<T>(type, memory) == value;
}

int boxed_calls = 0;
void counted_fallback(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  boxed_calls += static_cast<int>(torch::jit::last(*stack, op.schema().arguments().size()).size());
  op.callBoxed(stack);
}

int apply_twice(c10::function_ref<int(int)> f, int v) { return f(f(v)); }

}  // namespace

PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {
  m.def("fail_at_a_place", [] { fail_at_a_place("f", "file.cpp", 3, "told apart"); });
  // Operators as classes, as generated code of vendors names them.
  m.def("operator_call", [](const at::Tensor& x) { return at::_ops::add_Tensor::call(x, x, 2); });
  m.def("operator_redispatch",
        [](const at::Tensor& x) { return ATEN_OP(cumsum)::redispatch(c10::DispatchKeySet(c10::DispatchKey::CPU), x, 0, std::nullopt); });
  m.def("operator_words", [] {
    static_assert(
        std::is_same_v<ATEN_OP2(add, out)::schema, at::Tensor&(const at::Tensor&, const at::Tensor&, const at::Scalar&, at::Tensor&)>);
    using Op = ATEN_OP2(add, out);
    return std::vector<std::string>{Op::name, Op::overload_name, Op::schema_str};
  });
  m.def("operator_fallback", [](const at::Tensor& x) {
    const at::Tensor y = at::native::call_fallback_fn<&counted_fallback, ATEN_OP2(mul, Tensor)>::call(x, x);
    const at::Tensor z = at::native::call_fallback_fn_symint<&counted_fallback, ATEN_OP(neg)>::call(y);
    return std::make_pair(z, boxed_calls);
  });
  m.def("index_by_lists", [](const at::Tensor& x, const at::Tensor& rows) {
    c10::List<std::optional<at::Tensor>> indices;
    indices.push_back(rows);
    at::Tensor out = at::empty({0}), written = x.clone(), also = x.clone();
    at::index_out(out, x, indices);
    at::index_put_(written, indices, at::zeros({1}));
    at::_index_put_impl_(also, indices, at::ones({1}), true);
    return std::vector<at::Tensor>{out, written, also};
  });
  m.def("exponential", [](at::Tensor x, double lambda, uint64_t seed) {
    at::Generator generator = at::detail::createCPUGenerator(seed);
    auto iter = at::TensorIterator::borrowing_nullary_op(x);
    at::native::templates::cpu::exponential_kernel(iter, lambda, generator.get<at::CPUGeneratorImpl>());
    return x;
  });
  m.def("sums_of_lists", [](const std::vector<at::Tensor>& tensors) {
    c10::SmallVector<at::Tensor, 2> few(tensors.begin(), tensors.end());
    few.push_back(at::ones({1}));
    return at::cat(few).sum();
  });
  m.def("format_size", [](uint64_t bytes) { return c10::CachingAllocator::format_size(bytes); });
  m.def("host_tensors", [] {
    static_assert(alignof(std::max_align_t) <= c10::hardware_destructive_interference_size);
    const at::Tensor bytes = at::detail::empty_cpu({3}, at::kByte, std::nullopt, std::nullopt, std::nullopt, std::nullopt);
    return std::make_pair(bytes, c10::impl::GPUTrace::get_trace() == nullptr);
  });
  m.def("counted_references", [](const py::object& o) {
    const auto before = Py_REFCNT(o.ptr());
    {
      Py_INCREF(o.ptr());
      THPObjectPtr one(o.ptr());
      THPObjectPtr moved(std::move(one));
      if (one || moved.get() != o.ptr()) return -1L;
    }
    return static_cast<long>(Py_REFCNT(o.ptr()) - before);
  });
  m.def("throw_error", [] { C10_THROW_ERROR(ValueError, "a value"); });
  m.def("pool", [](int64_t in, int64_t kernel, int64_t pad, int64_t stride, int64_t dilation, bool ceil) {
    return at::native::pooling_output_shape<int64_t>(in, kernel, pad, stride, dilation, ceil);
  });
  m.def("check_pool", [](const at::Tensor& x, int64_t kernel, int64_t pad, int64_t out) {
    at::native::pool2d_shape_check(x, kernel, kernel, 1, 1, pad, pad, 1, 1, x.size(-3), x.size(-2), x.size(-1), out, out);
  });
  m.def("downcast", [](int64_t v) { return at::native::safe_downcast<int>(v); });
  m.def("conv_sizes", [](std::vector<int64_t> in, std::vector<int64_t> weight) {
    const std::vector<int64_t> pad = {1, 0}, stride = {2, 1}, dilation = {1, 2};
    const auto out = at::native::conv_output_size(in, weight, pad, stride, dilation);
    return std::pair(out, at::native::conv_input_size(out, weight, pad, std::vector<int64_t>{1, 0}, stride, dilation, 1));
  });
  m.def("set_strided", [](at::Tensor x, std::vector<int64_t> size, std::vector<int64_t> stride, int64_t offset) {
    at::native::setStrided(x, size, stride, offset);
    return x;
  });
  m.def("set_storage", [](at::Tensor x, const at::Tensor& of) {
    at::native::checkSetStorage(x, of.storage(), 0, of.sizes(), of.strides());
    at::native::setStrided(x, of.sizes(), of.strides(), 0);
    return x;
  });
  m.def("rows_of_layer_norm", [](const at::Tensor& x, std::vector<int64_t> shape) {
    return at::native::_check_layer_norm_inputs(x, shape, at::Tensor(), at::Tensor());
  });
  m.def("fast_route", [](std::vector<at::Tensor> a, std::vector<at::Tensor> b) {
    at::native::check_foreach_api_restrictions(a, b);
    return at::native::can_use_fast_route(a, b);
  });
  m.def("moved_through_types", [] {
    return moved<double>(c10::kHalf, 1.5) && moved<int64_t>(c10::kByte, 200) && moved<float>(c10::kBFloat16, -2.0f) &&
           c10::fetch_and_cast<float>(c10::kInt, std::array<int, 1>{7}.data()) == 7;
  });
  m.def("numbers", [] {
    const std::vector<int64_t> sizes = {2, 3, 4};
    return std::vector<int64_t>{c10::multiply_integers(sizes),
                                c10::sum_integers(sizes),
                                c10::numelements_from_dim(1, sizes),
                                c10::overflows<int8_t, int>(128),
                                c10::overflows<int8_t, int>(-128),
                                c10::overflows<uint8_t, int>(-1),
                                c10::overflows<c10::Half, double>(1e6),
                                static_cast<int64_t>(c10::llvm::PowerOf2Floor(100)),
                                static_cast<int64_t>(c10::llvm::NextPowerOf2(64)),
                                at::ceil_div(7, 2),
                                c10::get_hash(1, 2) != c10::get_hash(2, 1),
                                static_cast<int64_t>(at::dim_list_to_bitset(at::IntArrayRef{0, -1}, 3).to_ulong()),
                                apply_twice([](int v) { return v + 3; }, 1)};
  });
  m.def("thread_name", [](const std::string& name) {
    const std::string before = c10::getThreadName();
    c10::setThreadName(name);
    const std::string now = c10::getThreadName();
    c10::setThreadName(before);
    return now;
  });
  m.def("autocast_type", [] {
    const auto before = at::autocast::get_autocast_dtype(at::kCPU);
    at::autocast::set_autocast_dtype(at::kCPU, at::kHalf);
    const bool set = at::autocast::get_lower_precision_fp_from_device_type(at::kCPU) == at::kHalf;
    at::autocast::set_autocast_dtype(at::kCPU, before);
    return set;
  });
  m.def("wrapped", [](const at::Tensor& x) { return (x + at::native::wrapped_scalar_tensor(1.5)).scalar_type(); });
  m.def("without_interpreter", torch::wrap_pybind_function_no_gil([](int64_t v) { return v * 2 + PyGILState_Check(); }));
}
