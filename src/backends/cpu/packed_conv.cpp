// Two-dimensional convolutions and linear layers of floats for graphs that are compiled once and run often: weights in oneDNN's layout,
// tensors with channels last in memory, and what follows in the same pass (epilogue.h).
//
// Channels last is as fast for oneDNN as its own blocked layouts (Zen 3, AVX2: within 5 % over the convolutions of ResNet-50 and
// MobileNet), and all other kernels read it, so that no tensor is ever reordered between two operators. A linear layer is a convolution of
// 1 x 1 over its rows: on that machine 75 to 87 GFLOP/s where OpenBLAS has 42 to 75, and 27 against 5 for a single row.
#include <array>
#include <memory>
#include <mutex>
#include <string_view>
#include <utility>

#include <cresset/base/parallel.h>
#include <cresset/dispatch/custom_class.h>
#include <cresset/ops/functions_conv.h>
#include <cresset/ops/functions_creation.h>
#include <cresset/ops/functions_matmul.h>

#include "backends/cpu/epilogue.h"
#include "backends/cpu/onednn.h"

namespace cresset::cpu {
namespace {

using dnnl::memory;

constexpr auto kFloats = memory::data_type::f32;
constexpr auto kNHWC = memory::format_tag::nhwc;

// A convolution of some images, or of some rows of one, or (of a single place) some channels of the result.
struct Window {
  int64_t images, rows_in, rows_out, above, below;  // the last two: rows of padding
  int64_t first_output, outputs;
  bool operator==(const Window&) const = default;
};
struct Part {
  std::size_t primitive;
  int64_t image, row_in, row_out;
};
// What a primitive is given: more costly to make than to fill in, so calls borrow one and give it back.
struct Arguments {
  std::vector<memory> memories;
  std::vector<dnnl_exec_arg_t> list;

  void add(int argument, const memory::desc& desc, void* data = DNNL_MEMORY_NONE) {
    memories.emplace_back(desc, onednn_engine(), data);
    list.push_back({argument, memories.back().get()});
  }
};
class SpareArguments {
 public:
  /// Null when there are none.
  std::unique_ptr<Arguments> take() {
    const std::lock_guard lock(mutex_);
    if (spare_.empty()) return nullptr;
    auto out = std::move(spare_.back());
    spare_.pop_back();
    return out;
  }
  void give(std::unique_ptr<Arguments> a) {
    const std::lock_guard lock(mutex_);
    spare_.push_back(std::move(a));
  }

 private:
  std::mutex mutex_;
  std::vector<std::unique_ptr<Arguments>> spare_;
};

struct Primitive {
  Window window;
  dnnl::primitive run;
  memory::desc x, y, weight, bias, scratch;
  const void* packed;
  std::unique_ptr<SpareArguments> spare = std::make_unique<SpareArguments>();
};
// What was made for one size of the input. Nothing in `parts`: oneDNN has no machine code for it.
struct Plan {
  std::array<int64_t, 4> x, y;  // N, C, H, W
  std::vector<Primitive> primitives;
  std::vector<Part> parts;
};

}  // namespace

class PackedConvolution : public CustomClassHolder {
 public:
  PackedConvolution(Tensor weight, std::optional<Tensor> bias, std::vector<int64_t> stride, std::vector<int64_t> padding,
                    std::vector<int64_t> dilation, int64_t groups, Epilogue epilogue)
      : weight_(std::move(weight)),
        bias_(std::move(bias)),
        stride_(std::move(stride)),
        padding_(std::move(padding)),
        dilation_(std::move(dilation)),
        groups_(groups),
        epilogue_(std::move(epilogue)) {
    CRESSET_CHECK_VALUE(is_floats(weight_, 4) && weight_.numel() > 0,
                        "pack_convolution: a weight of 4 dimensions and dtype float32 on the CPU, with elements, was required.");
    const int64_t outputs = weight_.size(0);
    CRESSET_CHECK_VALUE(!bias_ || (is_floats(*bias_, 1) && bias_->size(0) == outputs), "pack_convolution: a bias of ", outputs,
                        " elements and dtype float32 on the CPU was required.");
    CRESSET_CHECK_VALUE(groups_ > 0 && outputs % groups_ == 0, "pack_convolution: groups that divide ", outputs, " were required; got ",
                        groups_, ".");
    const auto check_pair = [](const char* name, const std::vector<int64_t>& list, int64_t least) {
      const bool fits = list.size() == 2 && std::min(list[0], list[1]) >= least && std::max(list[0], list[1]) <= INT32_MAX;
      CRESSET_CHECK_VALUE(fits, "pack_convolution: two numbers from ", least, " up were required for ", name, ".");
    };
    check_pair("stride", stride_, 1);
    check_pair("padding", padding_, 0);
    check_pair("dilation", dilation_, 1);
  }

  Tensor run(const Tensor& x, TensorList operands) const {
    check_operands("convolution_packed", operands);
    std::shared_ptr<const Plan> plan;
    bool whole = false;
    if (x.dim() == 4 && x.scalar_type() == kFloat && x.device().is_cpu() && x.numel() > 0 && x.size(1) == weight_.size(1) * groups_) {
      const std::array<int64_t, 4> sizes = result_sizes(x);
      whole = sizes[2] > 0 && sizes[3] > 0;
      for (const Tensor& t : operands) whole = whole && t.scalar_type() == kFloat && t.device().is_cpu() && t.sizes() == IntArrayRef(sizes);
      if (sizes[2] > 0 && sizes[3] > 0) plan = plan_for({x.size(0), x.size(1), x.size(2), x.size(3)}, sizes, whole);
    }
    if (!plan || plan->parts.empty())
      return epilogue_.apply(convolution(x, weight_, bias_, stride_, padding_, dilation_, false, {0, 0}, groups_), operands);
    const Tensor y = execute(*plan, x, whole ? operands : TensorList());
    return whole ? y : epilogue_.apply(y, operands);
  }

  /// The weight of 1 x 1 on the last dimension of x, (..., inputs) to (..., outputs).
  Tensor run_linear(const Tensor& x, TensorList operands) const {
    check_operands("linear_packed", operands);
    CRESSET_CHECK_VALUE(is_pointwise() && groups_ == 1,
                        "linear_packed: a packed weight of 1 x 1 without stride, padding and groups was required.");
    std::vector<int64_t> sizes = x.sizes().vec();
    const bool fits = x.dim() >= 1 && x.scalar_type() == kFloat && x.device().is_cpu() && x.numel() > 0 && sizes.back() == weight_.size(1);
    if (!fits) return epilogue_.apply(linear(x, weight_.flatten(1), bias_), operands);
    const int64_t rows = x.numel() / sizes.back();
    sizes.back() = weight_.size(0);
    bool whole = true;
    for (const Tensor& t : operands) whole = whole && t.scalar_type() == kFloat && t.device().is_cpu() && t.sizes() == IntArrayRef(sizes);
    const auto plan = plan_for({1, weight_.size(1), rows, 1}, {1, weight_.size(0), rows, 1}, whole);
    if (plan->parts.empty()) return epilogue_.apply(linear(x, weight_.flatten(1), bias_), operands);
    const auto as_image = [&](const Tensor& t) { return t.contiguous().view({1, rows, 1, t.size(-1)}).permute({0, 3, 1, 2}); };
    std::vector<Tensor> images;
    if (whole)
      for (const Tensor& t : operands) images.push_back(as_image(t));
    const Tensor y = execute(*plan, as_image(x), images).permute({0, 2, 3, 1}).view(sizes);
    return whole ? y : epilogue_.apply(y, operands);
  }

 private:
  static bool is_floats(const Tensor& t, int64_t dim) {
    return t.defined() && t.dim() == dim && t.scalar_type() == kFloat && t.device().is_cpu();
  }
  void check_operands(const char* op, TensorList operands) const {
    CRESSET_CHECK_VALUE(operands.size() == epilogue_.num_operands(), op, ": ", epilogue_.num_operands(), " operands were required; ",
                        operands.size(), " were given.");
  }

  std::array<int64_t, 4> result_sizes(const Tensor& x) const {
    std::array<int64_t, 4> y{x.size(0), weight_.size(0), 0, 0};
    for (int d = 0; d < 2; ++d)
      y[2 + d] = (x.size(2 + d) + 2 * padding_[d] - dilation_[d] * (weight_.size(2 + d) - 1) - 1) / stride_[d] + 1;
    return y;
  }

  Tensor execute(const Plan& plan, const Tensor& x, TensorList operands) const {
    const Tensor from = x.contiguous(MemoryFormat::ChannelsLast);
    std::vector<Tensor> with;
    for (const Tensor& t : operands) with.push_back(t.contiguous(MemoryFormat::ChannelsLast));
    const Tensor y = empty(plan.y, from.options(), MemoryFormat::ChannelsLast);
    const int64_t row_in = plan.x[3] * plan.x[1], row_out = plan.y[3] * plan.y[1];
    parallel_for(0, static_cast<int64_t>(plan.parts.size()), 1, [&](int64_t begin, int64_t end) {
      const SignalsBlocked blocked;
      use_one_onednn_thread();
      for (int64_t i = begin; i < end; ++i) {
        const Part& part = plan.parts[static_cast<std::size_t>(i)];
        const Primitive& p = plan.primitives[part.primitive];
        const int64_t at_x = (part.image * plan.x[2] + part.row_in) * row_in;
        const int64_t at_y = (part.image * plan.y[2] + part.row_out) * row_out + p.window.first_output;
        execute(p, from.data_ptr<float>() + at_x, with, at_y, y.data_ptr<float>() + at_y);
      }
      onednn_stream().wait();
    });
    return y;
  }

  // Operands are read from element at_y on.
  void execute(const Primitive& p, float* x, const std::vector<Tensor>& operands, int64_t at_y, float* y) const {
    std::unique_ptr<Arguments> a = p.spare->take();
    if (!a) a = new_arguments(p, operands.size());
    OnednnScratch scratch;
    std::size_t next = 0;
    const auto fill = [&](void* data) { a->memories[next++].set_data_handle(data); };
    fill(x);
    fill(y);
    for (const Tensor& t : operands) fill(t.data_ptr<float>() + at_y);
    if (p.scratch.get_size() > 0) fill(scratch.make(p.scratch).get_data_handle());
    dnnl::error::wrap_c_api(dnnl_primitive_execute(p.run.get(), onednn_stream().get(), static_cast<int>(a->list.size()), a->list.data()),
                            "could not execute a convolution");
    p.spare->give(std::move(a));
  }
  // Those that change from call to call come first.
  std::unique_ptr<Arguments> new_arguments(const Primitive& p, std::size_t operands) const {
    auto a = std::make_unique<Arguments>();
    a->add(DNNL_ARG_SRC, p.x);
    a->add(DNNL_ARG_DST, p.y);
    for (std::size_t i = 0; i < operands; ++i) a->add(epilogue_.onednn_arguments()[i], p.y);
    if (p.scratch.get_size() > 0) a->add(DNNL_ARG_SCRATCHPAD, p.scratch);
    a->add(DNNL_ARG_WEIGHTS, p.weight, const_cast<void*>(p.packed));
    if (bias_) a->add(DNNL_ARG_BIAS, p.bias, bias_->data_ptr<float>() + p.window.first_output);
    return a;
  }

  // ---- plans

  // Clears `whole` where what follows cannot be part of it.
  std::shared_ptr<const Plan> plan_for(const std::array<int64_t, 4>& x, const std::array<int64_t, 4>& y, bool& whole) const {
    auto plan = kept_plan(x, y, whole);
    if (!whole || !plan->parts.empty()) return plan;
    whole = false;
    return kept_plan(x, y, whole);
  }
  std::shared_ptr<const Plan> kept_plan(const std::array<int64_t, 4>& x, const std::array<int64_t, 4>& y, bool whole) const {
    constexpr std::size_t kMost = 64;  // sizes that are remembered
    const int64_t threads = in_parallel_region() ? 1 : get_num_threads();
    const std::array<int64_t, 6> key{x[0], x[1], x[2], x[3], threads, whole};
    const std::lock_guard lock(mutex_);
    for (auto it = plans_.begin(); it != plans_.end(); ++it)
      if (it->first == key) {
        if (it != plans_.begin()) std::rotate(plans_.begin(), it, it + 1);
        return plans_.front().second;
      }
    auto plan = std::make_shared<Plan>(Plan{x, y, {}, {}});
    if (!onednn_guarded("convolution", [&] { return make(*plan, threads, whole); })) plan->parts.clear();
    if (plans_.size() == kMost) plans_.pop_back();
    plans_.insert(plans_.begin(), {key, plan});
    return plan;
  }

  // Threads take images where there are enough, otherwise rows of the result, or its channels where it is a single place.
  bool make(Plan& plan, int64_t threads, bool whole) const {
    constexpr double kWorthThreads = 4e6, kLongPart = 6e7;  // multiply-adds; the latter take some 1 ms
    constexpr double kWorthReading = 2.5e5;                 // weights, of a single place: reading them is the work then
    const auto &x = plan.x, &y = plan.y;
    const double work = static_cast<double>(y[0] * y[1] * y[2] * y[3]) * static_cast<double>(weight_.numel() / weight_.size(0));
    const Window all{x[0], x[2], y[2], padding_[0], padding_[0], 0, y[1]};
    if (threads == 1 || work < kWorthThreads) {
      const bool single = threads > 1 && y[0] * y[2] * y[3] == 1 && groups_ == 1 && work >= kWorthReading;
      return single ? split_outputs(plan, all, threads, whole) : add(plan, all, {0, 0, 0, 0}, whole);
    }
    const int64_t parts = threads * (work / static_cast<double>(threads) > 4 * kLongPart ? 4 : 1);
    if (x[0] % threads == 0 || x[0] >= 4 * threads) return split_images(plan, all, parts, whole);
    return y[2] == 1 && y[3] == 1 && x[0] == 1 && groups_ == 1 ? split_outputs(plan, all, threads, whole) : split_rows(plan, parts, whole);
  }

  bool split_outputs(Plan& plan, Window v, int64_t parts, bool whole) const {
    constexpr int64_t kBlock = 64;  // channels
    const int64_t all = v.outputs, each = (all + parts * kBlock - 1) / (parts * kBlock) * kBlock;
    for (v.first_output = 0; v.first_output < all; v.first_output += each) {
      v.outputs = std::min(each, all - v.first_output);
      if (!add(plan, v, {0, 0, 0, 0}, whole)) return false;
    }
    return true;
  }

  bool split_images(Plan& plan, Window v, int64_t parts, bool whole) const {
    const int64_t all = v.images, each = std::max<int64_t>(1, all / parts);
    for (int64_t i = 0; i < all; i += each) {
      v.images = std::min(each, all - i);
      if (!add(plan, v, {0, i, 0, 0}, whole)) return false;
    }
    return true;
  }

  bool split_rows(Plan& plan, int64_t parts, bool whole) const {
    const int64_t all = plan.y[2], each = (all + parts - 1) / parts, height = plan.x[2];
    const int64_t reach = dilation_[0] * (weight_.size(2) - 1) + 1;
    for (int64_t i = 0; i < plan.x[0]; ++i)
      for (int64_t row = 0; row < all; row += each) {
        const int64_t rows = std::min(each, all - row);
        const int64_t from = row * stride_[0] - padding_[0], to = (row + rows - 1) * stride_[0] - padding_[0] + reach;
        const int64_t first = std::clamp<int64_t>(from, 0, height), last = std::clamp<int64_t>(to, first, height);
        if (last == first) return false;  // padding alone
        if (!add(plan, {1, last - first, rows, first - from, to - last, 0, plan.y[1]}, {0, i, first, row}, whole)) return false;
      }
    return true;
  }

  bool add(Plan& plan, const Window& window, Part part, bool whole) const {
    for (part.primitive = 0; part.primitive < plan.primitives.size(); ++part.primitive)
      if (plan.primitives[part.primitive].window == window) break;
    if (part.primitive == plan.primitives.size() && !add_primitive(plan, window, whole)) return false;
    plan.parts.push_back(part);
    return true;
  }

  bool is_pointwise() const {
    const auto all = [](const std::vector<int64_t>& list, int64_t v) { return list[0] == v && list[1] == v; };
    return weight_.size(2) == 1 && weight_.size(3) == 1 && all(stride_, 1) && all(padding_, 0);
  }

  bool add_primitive(Plan& plan, const Window& v, bool whole) const {
    use_one_onednn_thread();
    const int64_t inputs = weight_.size(1);
    memory::dims from{v.images, plan.x[1], v.rows_in, plan.x[3]}, to{v.images, v.outputs, v.rows_out, plan.y[3]};
    if (is_pointwise()) {  // places in one row
      from = {1, plan.x[1], 1, v.images * v.rows_in * plan.x[3]};
      to = {1, v.outputs, 1, from[3]};
    }
    const memory::desc x(from, kFloats, kNHWC), y(to, kFloats, kNHWC), bias({v.outputs}, kFloats, memory::format_tag::x);
    memory::dims sizes{v.outputs, inputs, weight_.size(2), weight_.size(3)};
    if (groups_ > 1) {
      sizes[0] /= groups_;
      sizes.insert(sizes.begin(), groups_);
    }
    const memory::desc weight(sizes, kFloats, memory::format_tag::any);
    dnnl::primitive_attr attributes;
    attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
    if (whole) attributes.set_post_ops(epilogue_.onednn(y));
    const memory::dims stride(stride_), above{v.above, padding_[1]}, below{v.below, padding_[1]};
    const memory::dims dilation{dilation_[0] - 1, dilation_[1] - 1};
    using Forward = dnnl::convolution_forward;
    const auto kind = dnnl::prop_kind::forward_inference;
    const auto direct = dnnl::algorithm::convolution_direct;
    const Forward::desc d = bias_ ? Forward::desc(kind, direct, x, weight, bias, y, stride, dilation, above, below)
                                  : Forward::desc(kind, direct, x, weight, y, stride, dilation, above, below);
    const Forward::primitive_desc pd(d, attributes, onednn_engine());
    const std::string_view name = pd.impl_info_str();
    if (name.find("ref") != std::string_view::npos) return false;
    // Version 2.6 reads the operands of its convolutions by gemm at the wrong places.
    if (whole && epilogue_.num_operands() > 0 && name.find("gemm") != std::string_view::npos) return false;
    plan.primitives.push_back(
        {v, Forward(pd), x, y, pd.weights_desc(), bias, pd.scratchpad_desc(), packed(sizes, v.first_output, pd.weights_desc())});
    return true;
  }

  // The weight, or some of its outputs, in oneDNN's layout; there are few of them, since they do not depend on the sizes of images.
  const void* packed(const memory::dims& sizes, int64_t first_output, const memory::desc& wanted) const {
    for (const Packed& p : packed_)
      if (p.first_output == first_output && p.desc == wanted) return p.data.const_data_ptr();
    const Tensor source = weight_.contiguous();
    const memory::desc plain(sizes, kFloats, groups_ > 1 ? memory::format_tag::goihw : memory::format_tag::oihw);
    Tensor kept = detail::empty_cpu({static_cast<int64_t>(wanted.get_size())}, kByte);
    memory from(plain, onednn_engine(), source.data_ptr<float>() + first_output * source.stride(0));
    memory to(wanted, onednn_engine(), kept.data_ptr());
    dnnl::reorder(from, to).execute(onednn_stream(), from, to);
    onednn_stream().wait();
    packed_.push_back({first_output, wanted, std::move(kept)});
    return packed_.back().data.const_data_ptr();
  }
  struct Packed {
    int64_t first_output;
    memory::desc desc;
    Tensor data;
  };

  Tensor weight_;
  std::optional<Tensor> bias_;
  std::vector<int64_t> stride_, padding_, dilation_;
  int64_t groups_;
  Epilogue epilogue_;
  mutable std::mutex mutex_;                                                                   // of what follows
  mutable std::vector<std::pair<std::array<int64_t, 6>, std::shared_ptr<const Plan>>> plans_;  // the last one used first
  mutable std::vector<Packed> packed_;
};

CRESSET_LIBRARY_FRAGMENT(cresset, m) {
  m.class_<PackedConvolution>("PackedConvolution");
  m.def(
      "pack_convolution(Tensor weight, Tensor? bias, int[] stride, int[] padding, int[] dilation, int groups, str[] steps, "
      "float[] numbers) -> __torch__.torch.classes.cresset.PackedConvolution",
      [](const Tensor& weight, const std::optional<Tensor>& bias, std::vector<int64_t> stride, std::vector<int64_t> padding,
         std::vector<int64_t> dilation, int64_t groups, const std::vector<std::string>& steps, const std::vector<double>& numbers) {
        return make_intrusive<PackedConvolution>(weight, bias ? std::optional(bias->contiguous()) : std::nullopt, std::move(stride),
                                                 std::move(padding), std::move(dilation), groups, Epilogue(steps, numbers));
      });
  m.def("convolution_packed(Tensor input, Tensor[] operands, __torch__.torch.classes.cresset.PackedConvolution packed) -> Tensor",
        [](const Tensor& input, const std::vector<Tensor>& operands, const intrusive_ptr<PackedConvolution>& packed) {
          return packed->run(input, operands);
        });
  m.def("linear_packed(Tensor input, Tensor[] operands, __torch__.torch.classes.cresset.PackedConvolution packed) -> Tensor",
        [](const Tensor& input, const std::vector<Tensor>& operands, const intrusive_ptr<PackedConvolution>& packed) {
          return packed->run_linear(input, operands);
        });
}

}  // namespace cresset::cpu
