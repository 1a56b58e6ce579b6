// TensorIterator: operands brought to one shape, and loops over them. Dimension 0 is the one that moves fastest.
#pragma once

#include <cresset_compat/aten.h>

namespace at {

struct OperandInfo {
  OperandInfo() = default;
  explicit OperandInfo(Tensor t) : tensor_(std::move(t)) {}
  const Tensor& tensor() const { return tensor_; }
  const TensorBase& tensor_base() const { return tensor_; }
  const Tensor& original_tensor() const { return original_; }
  const TensorBase& original_tensor_base() const { return original_; }
  /// Another tensor in place of the operand; the first one is kept as the original.
  void exchange_tensor(c10::MaybeOwned<TensorBase> t) {
    original_ = tensor_;
    tensor_ = Tensor(*t);
    data = tensor_.data_ptr();
  }
  void restore_original_tensor() {
    tensor_ = original_;
    original_ = Tensor();
    data = tensor_.data_ptr();
  }
  TensorOptions options() const { return TensorOptions(target_dtype).device(device); }
  bool is_type_defined() const { return target_dtype != ScalarType::Undefined; }

  void* data = nullptr;
  std::vector<int64_t> stride_bytes;
  Device device = kCPU;
  ScalarType target_dtype = ScalarType::Undefined, current_dtype = ScalarType::Undefined;
  bool is_output = false, will_resize = false, is_read_write = false, is_const = false;

 private:
  friend struct TensorIteratorBase;
  Tensor tensor_, original_;
};

class TensorIteratorConfig;

struct TensorIteratorBase {
  using loop2d_t = std::function<void(char** data, const int64_t* strides, int64_t size0, int64_t size1)>;

  int ndim() const { return static_cast<int>(shape_.size()); }
  IntArrayRef shape() const { return shape_; }
  int64_t numel() const {
    int64_t n = 1;
    for (int64_t s : shape_) n *= s;
    return n;
  }
  int ntensors() const { return static_cast<int>(operands_.size()); }
  int noutputs() const { return outputs_; }
  int ninputs() const { return ntensors() - outputs_; }
  IntArrayRef strides(int i) const { return operands_[static_cast<std::size_t>(i)].stride_bytes; }
  OperandInfo& operand(int i) { return operands_[static_cast<std::size_t>(i)]; }
  const OperandInfo& operand(int i) const { return operands_[static_cast<std::size_t>(i)]; }
  void* data_ptr(int i) const { return operand(i).data; }
  ScalarType dtype(int i = 0) const { return operand(i).current_dtype; }
  ScalarType common_dtype() const { return common_dtype_; }
  ScalarType input_dtype(int i = 0) const { return dtype(outputs_ + i); }
  Device device(int i = 0) const { return operand(i).device; }
  DeviceType device_type(int i = 0) const { return device(i).type(); }
  int64_t element_size(int i) const { return static_cast<int64_t>(c10::elementSize(dtype(i))); }
  bool is_scalar(int i) const { return operand(i).tensor().numel() == 1; }
  bool is_cpu_scalar(int i) const { return is_scalar(i) && device(i).is_cpu(); }
  const Tensor& tensor(int i) const { return operand(i).tensor(); }
  const TensorBase& tensor_base(int i) const { return operand(i).tensor(); }
  const Tensor& output(int i = 0) const { return tensor(i); }
  const Tensor& input(int i = 0) const { return tensor(outputs_ + i); }
  template <class T>
  T scalar_value(int i) const {
    return operand(i).tensor().template item<T>();
  }
  template <class T>
  T original_scalar_value(int i) const {
    return scalar_value<T>(i);
  }
  /// Can all operands be walked as one array?
  bool is_contiguous() const {
    if (numel() == 1) return true;
    for (int i = 0; i < ntensors(); ++i) {
      int64_t expected = element_size(i);
      for (int d = 0; d < ndim(); ++d) {
        if (shape_[static_cast<std::size_t>(d)] != 1 && strides(i)[static_cast<std::size_t>(d)] != expected) return false;
        expected *= shape_[static_cast<std::size_t>(d)];
      }
    }
    return true;
  }
  bool is_trivial_1d() const { return ndim() == 1; }
  bool can_use_32bit_indexing() const { return numel() < INT32_MAX; }
  /// Writes results that were computed in another type into the given outputs.
  void cast_outputs() {
    for (int i = 0; i < outputs_; ++i)
      if (OperandInfo& o = operand(i); o.original_tensor().defined() && !o.original_tensor().is_same(o.tensor())) {
        o.original_tensor().copy_(o.tensor());
        o.restore_original_tensor();
      }
  }

  /// loop(data, strides in bytes, n): one row at a time, in pieces of at least grain_size elements on threads.
  template <class Loop>
  void for_each(const Loop& loop, int64_t grain_size = at::internal::GRAIN_SIZE) {
    if (numel() == 0) return;
    at::parallel_for(0, numel(), grain_size, [&](int64_t begin, int64_t end) { serial_for_each(loop, begin, end); });
  }
  template <class Loop>
  void serial_for_each(const Loop& loop, int64_t begin, int64_t end) const {
    const auto n = static_cast<std::size_t>(ntensors());
    std::vector<char*> data(n);
    std::vector<int64_t> inner(2 * n, 0);
    const int64_t row = ndim() ? shape_[0] : 1;
    for (std::size_t i = 0; i < n; ++i) inner[i] = ndim() ? operands_[i].stride_bytes[0] : 0;
    for (int64_t at = begin; at < end;) {
      int64_t rest = at;
      for (std::size_t i = 0; i < n; ++i) data[i] = static_cast<char*>(operands_[i].data);
      for (std::size_t d = 0; d < shape_.size(); ++d) {
        const int64_t position = rest % shape_[d];
        rest /= shape_[d];
        for (std::size_t i = 0; i < n; ++i) data[i] += position * operands_[i].stride_bytes[d];
      }
      const int64_t count = std::min(row - at % row, end - at);
      if constexpr (std::is_invocable_v<Loop, char**, const int64_t*, int64_t>)
        loop(data.data(), inner.data(), count);
      else
        loop(data.data(), inner.data(), count, int64_t{1});
      at += count;
    }
  }

 protected:
  friend class TensorIteratorConfig;
  void build(TensorIteratorConfig& config);
  std::vector<OperandInfo> operands_;
  std::vector<int64_t> shape_;
  int outputs_ = 0;
  ScalarType common_dtype_ = ScalarType::Undefined;
};

struct TensorIterator final : TensorIteratorBase {
  static TensorIterator binary_op(Tensor& out, const Tensor& a, const Tensor& b);
  static TensorIterator borrowing_binary_op(Tensor& out, const Tensor& a, const Tensor& b) { return binary_op(out, a, b); }
  static TensorIterator comparison_op(Tensor& out, const Tensor& a, const Tensor& b);
  static TensorIterator unary_op(Tensor& out, const Tensor& a);
  static TensorIterator unary_float_op(Tensor& out, const Tensor& a);
  static TensorIterator nullary_op(Tensor& out);
  static TensorIterator borrowing_nullary_op(const Tensor& out) {
    Tensor same = out;
    return nullary_op(same);
  }
};

class TensorIteratorConfig final {
 public:
#define CRESSET_COMPAT_SETTING(name, member) \
  TensorIteratorConfig& name(bool value) {   \
    member = value;                          \
    return *this;                            \
  }
  CRESSET_COMPAT_SETTING(set_check_mem_overlap, check_overlap_)
  CRESSET_COMPAT_SETTING(check_all_same_dtype, same_dtype_)
  CRESSET_COMPAT_SETTING(check_all_same_device, same_device_)
  CRESSET_COMPAT_SETTING(enforce_safe_casting_to_output, safe_casting_)
  CRESSET_COMPAT_SETTING(enforce_linear_iteration, linear_)
  CRESSET_COMPAT_SETTING(promote_inputs_to_common_dtype, promote_)
  CRESSET_COMPAT_SETTING(promote_integer_inputs_to_float, to_float_)
  CRESSET_COMPAT_SETTING(cast_common_dtype_to_outputs, cast_outputs_)
  CRESSET_COMPAT_SETTING(resize_outputs, resize_)
  CRESSET_COMPAT_SETTING(is_reduction, reduction_)
  CRESSET_COMPAT_SETTING(allow_cpu_scalars, cpu_scalars_)
#undef CRESSET_COMPAT_SETTING
  TensorIteratorConfig& add_output(const TensorBase& t) {
    TORCH_INTERNAL_ASSERT(inputs_ == 0, "Keep in mind that you have to add all outputs first before adding any input.");
    tensors_.emplace_back(t);
    ++outputs_;
    return *this;
  }
  TensorIteratorConfig& add_input(const TensorBase& t) {
    tensors_.emplace_back(t);
    ++inputs_;
    return *this;
  }
  TensorIteratorConfig& add_owned_output(const TensorBase& t) { return add_output(t); }
  TensorIteratorConfig& add_borrowed_output(const TensorBase& t) { return add_output(t); }
  TensorIteratorConfig& add_owned_input(const TensorBase& t) { return add_input(t); }
  TensorIteratorConfig& add_borrowed_input(const TensorBase& t) { return add_input(t); }
  TensorIteratorConfig& add_const_input(const TensorBase& t) { return add_input(t); }
  TensorIteratorConfig& add_owned_const_input(const TensorBase& t) { return add_input(t); }
  TensorIteratorConfig& add_borrowed_const_input(const TensorBase& t) { return add_input(t); }
  TensorIteratorConfig& declare_static_dtype_and_device(ScalarType dtype, Device device) {
    static_dtype_ = dtype;
    static_device_ = device;
    return *this;
  }
  TensorIteratorConfig& declare_static_dtype(ScalarType dtype) {
    static_dtype_ = dtype;
    return *this;
  }
  TensorIteratorConfig& declare_static_device(Device device) {
    static_device_ = device;
    return *this;
  }
  TensorIteratorConfig& declare_static_shape(IntArrayRef shape) {
    resize_ = false;
    static_shape_ = shape.vec();
    return *this;
  }
  TensorIterator build() {
    TensorIterator iter;
    iter.build(*this);
    return iter;
  }

 private:
  friend struct TensorIteratorBase;
  std::vector<Tensor> tensors_;
  int outputs_ = 0, inputs_ = 0;
  std::optional<std::vector<int64_t>> static_shape_;
  std::optional<ScalarType> static_dtype_;
  std::optional<Device> static_device_;
  bool check_overlap_ = true, same_dtype_ = true, same_device_ = true, safe_casting_ = false, linear_ = false, promote_ = false,
       to_float_ = false, cast_outputs_ = false, resize_ = true, reduction_ = false, cpu_scalars_ = false;
};

inline void TensorIteratorBase::build(TensorIteratorConfig& config) {
  outputs_ = config.outputs_;
  std::vector<int64_t> shape;
  if (config.static_shape_) {
    shape = *config.static_shape_;
  } else {
    for (std::size_t i = 0; i < config.tensors_.size(); ++i)
      if (config.tensors_[i].defined() && (static_cast<int>(i) >= outputs_ || !config.resize_))
        shape = infer_size(shape, config.tensors_[i].sizes());
    if (config.inputs_ == 0 && outputs_ > 0 && config.tensors_[0].defined()) shape = config.tensors_[0].sizes().vec();
  }
  // Types: the promoted type of the inputs, or what the first operand has.
  ScalarType common = config.static_dtype_.value_or(ScalarType::Undefined);
  Device device = config.static_device_.value_or(Device(kCPU));
  bool device_known = config.static_device_.has_value();
  for (int pass = 0; pass < 2 && common == ScalarType::Undefined; ++pass) {
    for (std::size_t i = pass ? 0 : static_cast<std::size_t>(outputs_); i < config.tensors_.size(); ++i) {
      const Tensor& t = config.tensors_[i];
      if (!t.defined()) continue;
      if (config.promote_ && common != ScalarType::Undefined)
        common = c10::promoteTypes(common, t.scalar_type());
      else if (common == ScalarType::Undefined)
        common = t.scalar_type();
    }
  }
  if (config.to_float_ && c10::isIntegralType(common, true)) common = c10::get_default_dtype();
  common_dtype_ = common;
  for (const Tensor& t : config.tensors_) {
    if (!t.defined()) continue;
    if (!device_known && !(config.cpu_scalars_ && t.dim() == 0 && t.is_cpu())) {
      device = t.device();
      device_known = true;
    }
  }
  for (std::size_t i = 0; i < config.tensors_.size(); ++i) {
    Tensor t = config.tensors_[i];
    const bool is_output = static_cast<int>(i) < outputs_;
    if (t.defined() && config.same_device_)
      TORCH_CHECK(t.device() == device || (config.cpu_scalars_ && t.dim() == 0 && t.is_cpu()),
                  "Expected all tensors to be on the same device, but found at least two devices, ", device, " and ", t.device(), "!");
    if (t.defined() && config.same_dtype_ && !config.promote_)
      TORCH_CHECK(t.scalar_type() == common, "Found dtype ", t.scalar_type(), " but expected ", common);
    OperandInfo o;
    o.is_output = is_output;
    if (is_output) {
      if (!t.defined()) {
        t = at::empty(shape, TensorOptions(common).device(device));
        o.will_resize = true;
      } else if (t.sizes() != IntArrayRef(shape)) {
        TORCH_CHECK(config.resize_ || config.reduction_, "output with shape ", t.sizes(), " doesn't match the broadcast shape ",
                    IntArrayRef(shape));
        if (config.resize_) {
          t.resize_(shape);
          o.will_resize = true;
        }
      }
      if (config.check_overlap_) at::assert_no_internal_overlap(t);
      if (config.safe_casting_)
        TORCH_CHECK(c10::canCast(common, t.scalar_type()), "result type ", common, " can't be cast to the desired output type ",
                    t.scalar_type());
    }
    o.target_dtype = config.promote_ || config.cast_outputs_ ? common : t.scalar_type();
    o.device = t.device();
    if (is_output ? config.cast_outputs_ && t.scalar_type() != common : config.promote_ && t.scalar_type() != common) {
      o.original_ = t;
      o.tensor_ = is_output ? at::empty(t.sizes(), t.options().dtype(common)) : t.to(common);
    } else {
      o.tensor_ = t;
    }
    o.current_dtype = o.tensor_.scalar_type();
    o.data = o.tensor_.data_ptr();
    const Tensor expanded = is_output && config.reduction_            ? o.tensor_
                            : o.tensor_.sizes() == IntArrayRef(shape) ? o.tensor_
                                                                      : o.tensor_.expand(shape);
    for (std::size_t d = shape.size(); d-- > 0;)
      o.stride_bytes.push_back(expanded.strides()[d] * static_cast<int64_t>(c10::elementSize(o.current_dtype)));
    operands_.push_back(std::move(o));
  }
  shape_.assign(shape.rbegin(), shape.rend());
}

inline TensorIterator TensorIterator::binary_op(Tensor& out, const Tensor& a, const Tensor& b) {
  auto iter = TensorIteratorConfig()
                  .add_output(out)
                  .add_input(a)
                  .add_input(b)
                  .allow_cpu_scalars(true)
                  .promote_inputs_to_common_dtype(true)
                  .cast_common_dtype_to_outputs(true)
                  .enforce_safe_casting_to_output(true)
                  .build();
  if (!out.defined()) out = iter.output();
  return iter;
}
inline TensorIterator TensorIterator::comparison_op(Tensor& out, const Tensor& a, const Tensor& b) {
  if (!out.defined()) out = at::empty({0}, a.options().dtype(kBool));
  auto iter = TensorIteratorConfig()
                  .check_all_same_dtype(false)
                  .add_output(out)
                  .add_input(a)
                  .add_input(b)
                  .allow_cpu_scalars(true)
                  .promote_inputs_to_common_dtype(true)
                  .build();
  return iter;
}
inline TensorIterator TensorIterator::unary_op(Tensor& out, const Tensor& a) {
  auto iter = TensorIteratorConfig()
                  .add_output(out)
                  .add_input(a)
                  .cast_common_dtype_to_outputs(false)
                  .enforce_safe_casting_to_output(false)
                  .check_all_same_dtype(true)
                  .build();
  if (!out.defined()) out = iter.output();
  return iter;
}
inline TensorIterator TensorIterator::unary_float_op(Tensor& out, const Tensor& a) {
  auto iter = TensorIteratorConfig()
                  .add_output(out)
                  .add_input(a)
                  .promote_inputs_to_common_dtype(true)
                  .promote_integer_inputs_to_float(true)
                  .cast_common_dtype_to_outputs(true)
                  .enforce_safe_casting_to_output(true)
                  .build();
  if (!out.defined()) out = iter.output();
  return iter;
}
inline TensorIterator TensorIterator::nullary_op(Tensor& out) {
  return TensorIteratorConfig().check_all_same_dtype(false).add_output(out).resize_outputs(false).build();
}

namespace native {

namespace detail {
template <class F, class R, class... A, std::size_t... I>
void run_row(char** data, const int64_t* strides, int64_t n, F& f, c10::guts::typelist::typelist<A...>*, std::index_sequence<I...>) {
  for (int64_t k = 0; k < n; ++k) {
    if constexpr (std::is_void_v<R>) {
      f(*reinterpret_cast<const std::decay_t<A>*>(data[I] + k * strides[I])...);
    } else if constexpr (requires { std::tuple_size<R>::value; }) {
      constexpr std::size_t outputs = std::tuple_size_v<R>;
      R result = f(*reinterpret_cast<const std::decay_t<A>*>(data[outputs + I] + k * strides[outputs + I])...);
      [&]<std::size_t... O>(std::index_sequence<O...>) {
        ((*reinterpret_cast<std::tuple_element_t<O, R>*>(data[O] + k * strides[O]) = std::get<O>(result)), ...);
      }(std::make_index_sequence<outputs>());
    } else {
      *reinterpret_cast<R*>(data[0] + k * strides[0]) = f(*reinterpret_cast<const std::decay_t<A>*>(data[1 + I] + k * strides[1 + I])...);
    }
  }
}
template <class F>
auto row_loop(F& f) {
  using traits = c10::guts::infer_function_traits_t<F>;
  return [&f](char** data, const int64_t* strides, int64_t n) {
    run_row<F, typename traits::return_type>(data, strides, n, f, static_cast<typename traits::parameter_types*>(nullptr),
                                             std::make_index_sequence<traits::number_of_parameters>());
  };
}
}  // namespace detail

/// out = f(inputs…) for every element; the parameters of f are the operands' types.
template <class F>
void cpu_kernel(TensorIteratorBase& iter, F&& f, int64_t grain_size = at::internal::GRAIN_SIZE) {
  iter.for_each(detail::row_loop(f), grain_size);
  iter.cast_outputs();
}
/// With a second form for vectors, which the compiler does not need to be told.
template <bool check_dynamic_cast = true, class F, class V>
void cpu_kernel_vec(TensorIteratorBase& iter, F&& f, V&&, int64_t grain_size = at::internal::GRAIN_SIZE) {
  cpu_kernel(iter, std::forward<F>(f), grain_size);
}
template <class F>
void cpu_kernel_multiple_outputs(TensorIteratorBase& iter, F&& f, int64_t grain_size = at::internal::GRAIN_SIZE) {
  cpu_kernel(iter, std::forward<F>(f), grain_size);
}
template <class F>
void cpu_serial_kernel(TensorIteratorBase& iter, F&& f) {
  iter.serial_for_each(detail::row_loop(f), 0, iter.numel());
  iter.cast_outputs();
}
template <class F, class V>
void cpu_serial_kernel_vec(TensorIteratorBase& iter, F&& f, V&&) {
  cpu_serial_kernel(iter, std::forward<F>(f));
}

}  // namespace native
}  // namespace at
