// A device that is mounted by PyTorch's C++ interfaces alone, without a table of functions: allocator, guard, hooks, generator, maker of
// storages, kernels, fallbacks. Its memory is the host's; it counts what the library asks of it.
#include <ATen/EmptyTensor.h>
#include <ATen/core/DistributionsHelper.h>
#include <ATen/core/GeneratorForPrivateuseone.h>
#include <ATen/detail/PrivateUse1HooksInterface.h>
#include <ATen/native/CPUFallback.h>
#include <ATen/native/DispatchStub.h>
#include <ATen/native/Resize.h>
#include <ATen/native/UnaryOps.h>
#include <ATen/native/transformers/sdp_utils_cpp.h>
#include <c10/core/Allocator.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>
#include <c10/core/impl/alloc_cpu.h>
#include <torch/csrc/Device.h>
#include <torch/csrc/jit/serialization/pickler.h>
#include <torch/extension.h>

#include <atomic>
#include <cstring>
#include <map>
#include <set>
#include <string>

namespace {

constexpr c10::DeviceType kPebble = c10::DeviceType::PrivateUse1;
constexpr c10::DeviceIndex kPebbles = 2;

std::map<std::string, int64_t> counts;
std::set<const void*> pinned;
std::atomic<int64_t> live_blocks{0};

// --- the current device and its streams

thread_local c10::DeviceIndex current = 0;
thread_local c10::StreamId streams[kPebbles] = {0, 0};
c10::StreamId newest_stream = 0;

struct PebbleGuard final : c10::impl::DeviceGuardImplInterface {
  PebbleGuard() = default;
  explicit PebbleGuard(c10::DeviceType t) { TORCH_CHECK(t == kPebble); }
  c10::DeviceType type() const override { return kPebble; }
  c10::Device exchangeDevice(c10::Device d) const override {
    const c10::Device old = getDevice();
    setDevice(d);
    return old;
  }
  c10::Device getDevice() const override { return c10::Device(kPebble, current); }
  void setDevice(c10::Device d) const override {
    TORCH_CHECK(d.index() >= 0 && d.index() < kPebbles, "pebble: there is no device ", static_cast<int>(d.index()));
    current = d.index();
  }
  void uncheckedSetDevice(c10::Device d) const noexcept override { current = d.index(); }
  c10::Stream getStream(c10::Device d) const noexcept override { return c10::Stream(c10::Stream::UNSAFE, d, streams[index_of(d)]); }
  c10::Stream getNewStream(c10::Device d, int) const override { return c10::Stream(c10::Stream::UNSAFE, d, ++newest_stream); }
  c10::Stream exchangeStream(c10::Stream s) const noexcept override {
    return c10::Stream(c10::Stream::UNSAFE, s.device(), std::exchange(streams[index_of(s.device())], s.id()));
  }
  c10::DeviceIndex deviceCount() const noexcept override { return kPebbles; }
  void record(void** event, const c10::Stream& s, const c10::DeviceIndex, const c10::EventFlag) const override {
    if (!*event) *event = new c10::StreamId;
    *static_cast<c10::StreamId*>(*event) = s.id();
    ++counts["record"];
  }
  void block(void*, const c10::Stream&) const override { ++counts["block"]; }
  bool queryEvent(void*) const override { return true; }
  void destroyEvent(void* event, const c10::DeviceIndex) const noexcept override { delete static_cast<c10::StreamId*>(event); }
  void synchronizeStream(const c10::Stream&) const override { ++counts["synchronizeStream"]; }

 private:
  static c10::DeviceIndex index_of(c10::Device d) { return d.has_index() ? d.index() : current; }
};

// --- memory

struct PebbleAllocator final : c10::Allocator {
  c10::DataPtr allocate(size_t n) override {
    void* data = n ? c10::alloc_cpu(n) : nullptr;
    live_blocks += data != nullptr;
    return {data, data, &free_block, c10::Device(kPebble, current)};
  }
  c10::DeleterFnPtr raw_deleter() const override { return &free_block; }
  void copy_data(void* target, const void* source, std::size_t n) const override { default_copy_data(target, source, n); }
  static void free_block(void* data) {
    live_blocks -= data != nullptr;
    c10::free_cpu(data);
  }
};
PebbleAllocator allocator;

struct PinnedAllocator final : c10::Allocator {
  c10::DataPtr allocate(size_t n) override {
    void* data = n ? c10::alloc_cpu(n) : nullptr;
    pinned.insert(data);
    return {data, data, &unpin, c10::Device(c10::DeviceType::CPU)};
  }
  c10::DeleterFnPtr raw_deleter() const override { return &unpin; }
  void copy_data(void* target, const void* source, std::size_t n) const override { default_copy_data(target, source, n); }
  static void unpin(void* data) {
    pinned.erase(data);
    c10::free_cpu(data);
  }
};
PinnedAllocator pinned_allocator;

c10::intrusive_ptr<c10::StorageImpl> make_storage(c10::StorageImpl::use_byte_size_t tag, c10::SymInt nbytes, c10::DataPtr data,
                                                  c10::Allocator* from, bool resizable) {
  ++counts["storage"];
  if (data == nullptr) return c10::make_intrusive<c10::StorageImpl>(tag, nbytes, from, resizable);
  return c10::make_intrusive<c10::StorageImpl>(tag, nbytes, std::move(data), from, resizable);
}

// --- random numbers

struct PebbleGenerator : at::CPUGeneratorImpl {
  explicit PebbleGenerator(c10::DeviceIndex index) {
    device_ = c10::Device(kPebble, index);
    key_set_ = c10::DispatchKeySet(c10::DispatchKey::PrivateUse1);
  }
  static c10::DeviceType device_type() { return kPebble; }
};
at::Generator make_pebble_generator(c10::DeviceIndex index) { return at::make_generator<PebbleGenerator>(index); }

// --- hooks

struct PebbleHooks : at::PrivateUse1HooksInterface {
  bool hasPrimaryContext(c10::DeviceIndex) const override { return true; }
  bool isBuilt() const override { return true; }
  bool isAvailable() const override { return true; }
  const at::Generator& getDefaultGenerator(c10::DeviceIndex index) const override {
    static const std::vector<at::Generator> all = {make_pebble_generator(0), make_pebble_generator(1)};
    return all.at(static_cast<std::size_t>(index < 0 ? current : index));
  }
  bool isPinnedPtr(const void* data) const override { return pinned.count(data) != 0; }
  c10::Allocator* getPinnedMemoryAllocator() const override { return &pinned_allocator; }
  void resizePrivateUse1Bytes(const c10::Storage& storage, size_t nbytes) const override {
    ++counts["resize"];
    c10::DataPtr fresh = allocator.allocate(nbytes);
    if (nbytes && storage.nbytes()) std::memcpy(fresh.get(), storage.data(), std::min(nbytes, storage.nbytes()));
    storage.set_data_ptr(std::move(fresh));
    storage.set_nbytes(nbytes);
  }
};

// --- kernels

at::Tensor empty(c10::IntArrayRef size, std::optional<at::ScalarType> dtype, std::optional<at::Layout>, std::optional<at::Device> device,
                 std::optional<bool>, std::optional<at::MemoryFormat> format) {
  const c10::OptionalDeviceGuard guard(device);
  constexpr c10::DispatchKeySet keys(c10::DispatchKey::PrivateUse1);
  return at::detail::empty_generic(size, &allocator, keys, c10::dtype_or_default(dtype), format);
}
at::Tensor empty_strided(c10::IntArrayRef size, c10::IntArrayRef stride, std::optional<at::ScalarType> dtype, std::optional<at::Layout>,
                         std::optional<at::Device> device, std::optional<bool>) {
  const c10::OptionalDeviceGuard guard(device);
  constexpr c10::DispatchKeySet keys(c10::DispatchKey::PrivateUse1);
  return at::detail::empty_strided_generic(size, stride, &allocator, keys, c10::dtype_or_default(dtype));
}
/// The same memory as a tensor of the CPU: in place of a vendor's functions.
at::Tensor on_host(const at::Tensor& t) {
  return t.is_cpu() ? t : at::from_blob(t.data_ptr(), t.sizes(), t.strides(), t.options().device(at::kCPU));
}
at::Tensor copy_from(const at::Tensor& self, const at::Tensor& target, bool /*non_blocking*/) {
  ++counts["_copy_from"];
  on_host(target).copy_(on_host(self));
  return target;
}
at::Tensor copy_from_and_resize(const at::Tensor& self, const at::Tensor& target) {
  target.resize_(self.sizes());
  return copy_from(self, target, false);
}
at::Tensor add_tensors(const at::Tensor& a, const at::Tensor& b, const at::Scalar& alpha) {
  ++counts["add"];
  const c10::DeviceGuard guard(a.device());
  const at::Tensor sum = at::add(on_host(a), on_host(b), alpha), out = at::empty(sum.sizes(), a.options());
  on_host(out).copy_(sum);
  return out;
}
at::Tensor& uniform_(at::Tensor& self, double from, double to, std::optional<at::Generator> generator) {
  auto* g = at::get_generator_or_default<PebbleGenerator>(generator, at::globalContext().defaultGenerator(self.device()));
  const std::lock_guard<std::mutex> lock(g->mutex_);
  at::uniform_real_distribution<float> distribution(static_cast<float>(from), static_cast<float>(to));
  float* data = self.data_ptr<float>();
  for (int64_t i = 0; i < self.numel(); ++i) data[i] = distribution(g);
  return self;
}
void abs_kernel(at::TensorIteratorBase& iter) {
  ++counts["abs"];
  at::Tensor out = on_host(iter.tensor(0));
  at::abs_out(out, on_host(iter.tensor(1)));
}
at::Tensor& abs_out(const at::Tensor& self, at::Tensor& out) { return at::native::abs_out(self, out); }
at::Tensor as_strided(const at::Tensor& self, c10::IntArrayRef size, c10::IntArrayRef stride, std::optional<int64_t> offset) {
  return at::native::as_strided_tensorimpl(self, size, stride, offset);
}
// Both run on the host and give results on the device.
at::Tensor on_device(const at::Tensor& t, const at::Tensor& like) {
  const at::Tensor out = at::empty(t.sizes(), like.options());
  on_host(out).copy_(t);
  return out;
}
at::Tensor convolve(const at::Tensor& input, const at::Tensor& weight, const std::optional<at::Tensor>& bias, c10::IntArrayRef stride,
                    c10::IntArrayRef padding, c10::IntArrayRef dilation, bool transposed, c10::IntArrayRef output_padding, int64_t groups) {
  ++counts["convolution"];
  return on_device(at::convolution(on_host(input), on_host(weight), bias ? std::optional(on_host(*bias)) : std::nullopt, stride, padding,
                                   dilation, transposed, output_padding, groups),
                   input);
}
std::tuple<at::Tensor, at::Tensor, at::Tensor> convolve_backward(const at::Tensor& grad, const at::Tensor& input, const at::Tensor& weight,
                                                                 c10::IntArrayRef stride, c10::IntArrayRef padding,
                                                                 c10::IntArrayRef dilation, bool transposed,
                                                                 c10::IntArrayRef output_padding, int64_t groups,
                                                                 std::array<bool, 3> mask) {
  ++counts["convolution_backward"];
  const auto [x, w, b] = at::convolution_backward(on_host(grad), on_host(input), on_host(weight), grad.size(1), stride, padding, dilation,
                                                  transposed, output_padding, groups, {true, true, true});
  return {mask[0] ? on_device(x, input) : at::Tensor(), mask[1] ? on_device(w, input) : at::Tensor(),
          mask[2] ? on_device(b, input) : at::Tensor()};
}

int64_t attention_choice(const at::Tensor&, const at::Tensor&, const at::Tensor&, const std::optional<at::Tensor>&, double, bool,
                         std::optional<double>, bool) {
  return static_cast<int64_t>(sdp::SDPBackend::overrideable);
}
std::tuple<at::Tensor, at::Tensor, at::Tensor, at::Tensor, c10::SymInt, c10::SymInt, at::Tensor, at::Tensor, at::Tensor> attend(
    const at::Tensor& query, const at::Tensor& key, const at::Tensor& value, const std::optional<at::Tensor>&, double, bool is_causal, bool,
    std::optional<double> scale) {
  ++counts["attention"];
  const at::Tensor out = at::scaled_dot_product_attention(on_host(query), on_host(key), on_host(value), {}, 0, is_causal, scale);
  const at::Tensor sums = at::empty({query.size(0), query.size(1), query.size(2)}, query.options());
  return {on_device(out, query), sums, at::Tensor(), at::Tensor(), query.size(2), key.size(2), sums, sums, at::Tensor()};
}
std::tuple<at::Tensor, at::Tensor, at::Tensor, at::Tensor> attend_backward(const at::Tensor&, const at::Tensor& query,
                                                                           const at::Tensor& key, const at::Tensor& value,
                                                                           const at::Tensor& bias, std::array<bool, 4>, const at::Tensor&,
                                                                           const at::Tensor&, const at::Tensor&, const at::Tensor&,
                                                                           int64_t max_q, int64_t max_k, double, bool, const at::Tensor&,
                                                                           const at::Tensor&, std::optional<double>) {
  ++counts["attention_backward"];
  TORCH_CHECK(!bias.defined() && max_q == query.size(2) && max_k == key.size(2));
  return {at::ones_like(query), at::ones_like(key), at::ones_like(value), at::Tensor()};
}

void on_the_cpu(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  ++counts["fallback:" + op.schema().name()];
  at::native::cpu_fallback(op, stack);
}

// --- an operator with a gradient of its own

at::Tensor twice(const at::Tensor& self) { return add_tensors(self, self, 1); }
at::Tensor thrice(const at::Tensor& self) { return add_tensors(self, twice(self), 1); }
struct Twice : torch::autograd::Function<Twice> {
  static at::Tensor forward(torch::autograd::AutogradContext*, const at::Tensor& self) {
    const at::AutoDispatchBelowAutograd below;
    static auto op = c10::Dispatcher::singleton().findSchemaOrThrow("pebble::twice", "").typed<decltype(twice)>();
    return op.call(self);
  }
  static torch::autograd::variable_list backward(torch::autograd::AutogradContext*, const torch::autograd::variable_list& grads) {
    ++counts["twice_backward"];
    return {grads[0] * 2};
  }
};
at::Tensor twice_with_gradient(const at::Tensor& self) { return Twice::apply(self); }

// --- what is kept beside a tensor

struct PebbleMeta : c10::BackendMeta {
  explicit PebbleMeta(bool polished) : polished(polished) {}
  bool polished;
};
void save_meta(const at::Tensor& t, std::unordered_map<std::string, bool>& m) {
  if (auto* meta = dynamic_cast<PebbleMeta*>(t.unsafeGetTensorImpl()->get_backend_meta())) m["polished"] = meta->polished;
}
void load_meta(const at::Tensor& t, std::unordered_map<std::string, bool>& m) {
  t.unsafeGetTensorImpl()->set_backend_meta(c10::make_intrusive<PebbleMeta>(m.at("polished")));
}
bool is_polished(const at::Tensor& t) {
  auto* meta = dynamic_cast<PebbleMeta*>(t.unsafeGetTensorImpl()->get_backend_meta());
  return meta && meta->polished;
}

}  // namespace

C10_REGISTER_GUARD_IMPL(PrivateUse1, PebbleGuard);
REGISTER_ALLOCATOR(c10::DeviceType::PrivateUse1, &allocator);
REGISTER_GENERATOR_PRIVATEUSE1(make_pebble_generator)
namespace at::native {
REGISTER_PRIVATEUSE1_DISPATCH(abs_stub, &abs_kernel);
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  m.impl("empty.memory_format", &empty);
  m.impl("empty_strided", &empty_strided);
  m.impl("as_strided", &as_strided);
  m.impl("_copy_from", &copy_from);
  m.impl("_copy_from_and_resize", &copy_from_and_resize);
  m.impl("add.Tensor", &add_tensors);
  m.impl("abs.out", &abs_out);
  m.impl("uniform_", &uniform_);
  m.impl("convolution_overrideable", &convolve);
  m.impl("convolution_backward_overrideable", &convolve_backward);
  m.impl("_fused_sdp_choice", &attention_choice);
  m.impl("_scaled_dot_product_fused_attention_overrideable", &attend);
  m.impl("_scaled_dot_product_fused_attention_overrideable_backward", &attend_backward);
}
TORCH_LIBRARY_IMPL(_, PrivateUse1, m) { m.fallback(torch::CppFunction::makeFromBoxedFunction<&on_the_cpu>()); }
TORCH_LIBRARY(pebble, m) {
  m.def("twice(Tensor self) -> Tensor");
  m.def("thrice(Tensor self) -> Tensor");
}
TORCH_LIBRARY_IMPL(pebble, PrivateUse1, m) {
  m.impl("twice", &twice);
  m.impl("thrice", &thrice);
}
TORCH_LIBRARY_IMPL(pebble, AutogradPrivateUse1, m) {
  m.impl("twice", &twice_with_gradient);
  m.impl("thrice", torch::autograd::autogradNotImplementedFallback());
}

PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {
  static PebbleHooks hooks;
  at::RegisterPrivateUse1HooksInterface(&hooks);
  torch::jit::TensorBackendMetaRegistry(kPebble, &save_meta, &load_meta);
  m.def("register_the_generator_again", [] { REGISTER_GENERATOR_PRIVATEUSE1(make_pebble_generator) });
  m.def("use_own_storages", [] { c10::SetStorageImplCreate(kPebble, &make_storage); });
  m.def("device", [](int index) { return c10::Device(kPebble, static_cast<c10::DeviceIndex>(index)); });
  m.def("count", [](const std::string& name) { return counts[name]; });
  m.def("live_blocks", [] { return live_blocks.load(); });
  m.def("polish", [](const at::Tensor& t) { t.unsafeGetTensorImpl()->set_backend_meta(c10::make_intrusive<PebbleMeta>(true)); });
  m.def("is_polished", &is_polished);
}
