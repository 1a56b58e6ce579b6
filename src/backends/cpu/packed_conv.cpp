// Two-dimensional convolutions and linear layers of floats for graphs that are compiled once and run often: weights in oneDNN's layout,
// tensors with channels last in memory, and what follows in the same pass (epilogue.h). They compute in float32, in bfloat16, or in whole
// numbers of 8 bits, and give results of any of those (packed_types.h): then what comes next takes them as they are.
//
// Channels last is as fast for oneDNN as its own blocked layouts (Zen 3, AVX2: within 5 % over the convolutions of ResNet-50 and
// MobileNet), and all other kernels read it, so that no tensor is ever reordered between two operators. A linear layer is a convolution of
// 1 x 1 over its rows: on that machine 75 to 87 GFLOP/s where OpenBLAS has 42 to 75, and 27 against 5 for a single row.
#include "backends/cpu/packed_conv.h"

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

#include "backends/cpu/activation_loops.h"
#include "backends/cpu/epilogue.h"
#include "backends/cpu/linear_rows.h"
#include "backends/cpu/onednn.h"
#include "backends/cpu/packed_types.h"
#include "backends/cpu/panel_loops.h"

namespace cresset::cpu {
namespace {

using dnnl::memory;

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
  std::vector<memory::desc> operands;
  std::vector<int> places;                     // DNNL_ARG_… of the operands
  std::vector<std::pair<int, float>> factors;  // arguments that are a number
  const void* packed;
  std::unique_ptr<SpareArguments> spare = std::make_unique<SpareArguments>();
};
// The operands of a call that are read in the same pass; none: what follows comes after it, of a result of float32.
struct With {
  bool whole = false;
  std::vector<Format> operands;

  int64_t key() const {
    int64_t out = whole;
    for (const Format& f : operands) out = 5 * out + 1 + (f.dtype == kFloat ? 0 : f.dtype == kBFloat16 ? 1 : f.dtype == kByte ? 2 : 3);
    return out;
  }
  std::vector<float> scales() const {
    std::vector<float> out;
    for (const Format& f : operands) out.push_back(f.scale);
    return out;
  }
};
// What was made for one size of the input. Nothing in `parts`: oneDNN has no machine code for it.
struct Plan {
  std::array<int64_t, 4> x, y;  // N, C, H, W
  With with;
  Format out;
  std::vector<Primitive> primitives;
  std::vector<Part> parts;
};

}  // namespace

// How tensors come and go: scales of operands only where those may have 8 bits.
struct Formats {
  Format in, out;
  std::vector<float> operands;
};

class PackedConvolution : public CustomClassHolder {
 public:
  PackedConvolution(Tensor weight, std::optional<Tensor> bias, std::vector<int64_t> stride, std::vector<int64_t> padding,
                    std::vector<int64_t> dilation, int64_t groups, Epilogue epilogue, Formats formats)
      : weight_(std::move(weight)),
        bias_(std::move(bias)),
        stride_(std::move(stride)),
        padding_(std::move(padding)),
        dilation_(std::move(dilation)),
        groups_(groups),
        epilogue_(std::move(epilogue)),
        formats_(std::move(formats)),
        activation_(own_activation()) {
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
    if (formats_.in.is_quantized()) quantize();
  }

  Tensor run(const Tensor& x, TensorList operands) const {
    check_operands("convolution_packed", operands);
    std::shared_ptr<const Plan> plan;
    With with;
    if (x.dim() == 4 && takes(x) && x.numel() > 0 && x.size(1) == weight_.size(1) * groups_) {
      const std::array<int64_t, 4> sizes = result_sizes(x);
      if (sizes[2] > 0 && sizes[3] > 0) {
        const int64_t places = sizes[0] * sizes[2] * sizes[3];
        if (const LinearRows* own = reads_weights(places) ? rows_for(x, operands, sizes, places) : nullptr)
          return run_places(*own, x, operands, sizes);
        with = formats_with(operands, sizes);
        plan = plan_for({x.size(0), x.size(1), x.size(2), x.size(3)}, sizes, with);
      }
    }
    if (!plan || plan->parts.empty())
      return finish(convolution(widened(x, formats_.in), weight_, bias_, stride_, padding_, dilation_, false, {0, 0}, groups_), operands);
    const Tensor y = execute(*plan, narrowed(x, formats_.in, MemoryFormat::ChannelsLast), with.whole ? operands : TensorList());
    return with.whole ? y : finish(y, operands);
  }

  /// The weight of 1 x 1 on the last dimension of x, (..., inputs) to (..., outputs).
  Tensor run_linear(const Tensor& x, TensorList operands) const {
    check_operands("linear_packed", operands);
    CRESSET_CHECK_VALUE(is_pointwise() && groups_ == 1,
                        "linear_packed: a packed weight of 1 x 1 without stride, padding and groups was required.");
    std::vector<int64_t> sizes = x.sizes().vec();
    if (!(x.dim() >= 1 && takes(x) && x.numel() > 0 && sizes.back() == weight_.size(1)))
      return finish(linear(widened(x, formats_.in), weight_.flatten(1), bias_), operands);
    const int64_t rows = x.numel() / sizes.back();
    sizes.back() = weight_.size(0);
    if (const LinearRows* own = rows_for(x, operands, sizes, rows)) return own->run(x, operands);
    With with = formats_with(operands, sizes);
    const auto plan = plan_for({1, weight_.size(1), rows, 1}, {1, weight_.size(0), rows, 1}, with);
    if (plan->parts.empty()) return finish(linear(widened(x, formats_.in), weight_.flatten(1), bias_), operands);
    const auto as_image = [&](const Tensor& t) { return t.contiguous().view({1, rows, 1, t.size(-1)}).permute({0, 3, 1, 2}); };
    std::vector<Tensor> images;
    if (with.whole)
      for (const Tensor& t : operands) images.push_back(as_image(t));
    const Tensor y = execute(*plan, as_image(narrowed(x, formats_.in, MemoryFormat::Contiguous)), images).permute({0, 2, 3, 1}).view(sizes);
    return with.whole ? y : finish(y, operands);
  }

 private:
  static bool is_floats(const Tensor& t, int64_t dim) {
    return t.defined() && t.dim() == dim && t.scalar_type() == kFloat && t.device().is_cpu();
  }
  void check_operands(const char* op, TensorList operands) const {
    CRESSET_CHECK_VALUE(operands.size() == epilogue_.num_operands(), op, ": ", epilogue_.num_operands(), " operands were required; ",
                        operands.size(), " were given.");
  }

  // Weights of 8 bits with a scale for each output. oneDNN adds the bias to the products before it applies theirs.
  void quantize() {
    QuantizedWeight q = quantized_by_output(weight_);
    stored_weight_ = std::move(q.stored);
    product_scales_ = std::move(q.scales);
    for (float& s : product_scales_) s *= formats_.in.scale;
    if (!bias_) return;
    stored_bias_ = empty({bias_->size(0)}, TensorOptions(kFloat));
    for (std::size_t i = 0; i < product_scales_.size(); ++i)
      stored_bias_.data_ptr<float>()[i] = bias_->data_ptr<float>()[i] / product_scales_[i];
  }
  // Does the packed form take it? Anything else is the operator's, with its words for what is wrong.
  bool takes(const Tensor& x) const { return x.device().is_cpu() && (x.scalar_type() == kFloat || x.scalar_type() == formats_.in.dtype); }
  With formats_with(TensorList operands, IntArrayRef sizes) const {
    if (!epilogue_.is_one_pass()) return {};
    With out{true, {}};
    for (std::size_t i = 0; i < operands.size(); ++i) {
      const Tensor& t = operands[i];
      out.operands.push_back({t.scalar_type(), i < formats_.operands.size() ? formats_.operands[i] : 0});
      Format& f = out.operands.back();
      const bool scaled = f.is_quantized() && f.scale > 0;
      if (!f.is_quantized()) f.scale = 1;
      const bool narrow = f.dtype == kBFloat16 && formats_.in.dtype != kFloat;
      if (!(f.dtype == kFloat || narrow || scaled) || !t.device().is_cpu() || t.sizes() != sizes) return {};
    }
    return out;
  }
  // What follows a result of float32, by operators.
  Tensor finish(Tensor y, TensorList operands) const {
    std::vector<Tensor> wide;
    for (std::size_t i = 0; i < operands.size(); ++i) {
      Format f{operands[i].scalar_type(), i < formats_.operands.size() ? formats_.operands[i] : 0};
      const bool stands_for_floats = f.is_quantized() ? f.scale > 0 : f.dtype == kBFloat16 && formats_.in.dtype != kFloat;
      wide.push_back(stands_for_floats ? widened(operands[i], f) : operands[i]);
    }
    y = epilogue_.apply(std::move(y), wide);
    const bool image = y.dim() == 4 && y.is_contiguous(MemoryFormat::ChannelsLast);
    return formats_.out.dtype == kFloat ? y : narrowed(y, formats_.out, image ? MemoryFormat::ChannelsLast : MemoryFormat::Contiguous);
  }

  // Zeros where the kernel is larger than what it goes over.
  std::array<int64_t, 4> result_sizes(const Tensor& x) const {
    std::array<int64_t, 4> y{x.size(0), weight_.size(0), 0, 0};
    for (int d = 0; d < 2; ++d) {
      const int64_t places = x.size(2 + d) + 2 * padding_[d] - dilation_[d] * (weight_.size(2 + d) - 1);
      if (places > 0) y[2 + d] = (places - 1) / stride_[d] + 1;
    }
    return y;
  }

  Tensor execute(const Plan& plan, const Tensor& x, TensorList operands) const {
    std::vector<Tensor> with;
    for (const Tensor& t : operands) with.push_back(t.contiguous(MemoryFormat::ChannelsLast));
    const Tensor y = empty(plan.y, TensorOptions(plan.out.dtype), MemoryFormat::ChannelsLast);
    const auto bytes = [](const Tensor& t, int64_t at) { return static_cast<char*>(t.data_ptr()) + at * t.element_size(); };
    const int64_t row_in = plan.x[3] * plan.x[1], row_out = plan.y[3] * plan.y[1];
    parallel_for(0, static_cast<int64_t>(plan.parts.size()), 1, [&](int64_t begin, int64_t end) {
      const SignalsBlocked blocked;
      use_one_onednn_thread();
      for (int64_t i = begin; i < end; ++i) {
        const Part& part = plan.parts[static_cast<std::size_t>(i)];
        const Primitive& p = plan.primitives[part.primitive];
        const int64_t at_x = (part.image * plan.x[2] + part.row_in) * row_in;
        const int64_t at_y = (part.image * plan.y[2] + part.row_out) * row_out + p.window.first_output;
        execute(p, bytes(x, at_x), with, at_y, bytes(y, at_y));
        // A part of the channels is one of a single place, so that its elements are neighbours, too.
        if (plan.with.whole && activation_) {
          const Window& v = p.window;
          onednn_stream().wait();
          activation_(static_cast<float*>(y.data_ptr()) + at_y, v.images * v.rows_out * plan.y[3] * v.outputs, 0, 0);
        }
      }
      onednn_stream().wait();
    });
    return y;
  }

  // Operands are read from element at_y on.
  void execute(const Primitive& p, void* x, const std::vector<Tensor>& operands, int64_t at_y, void* y) const {
    std::unique_ptr<Arguments> a = p.spare->take();
    if (!a) a = new_arguments(p);
    OnednnScratch scratch;
    std::size_t next = 0;
    const auto fill = [&](void* data) { a->memories[next++].set_data_handle(data); };
    fill(x);
    fill(y);
    for (const Tensor& t : operands) fill(static_cast<char*>(t.data_ptr()) + at_y * t.element_size());
    if (p.scratch.get_size() > 0) fill(scratch.make(p.scratch).get_data_handle());
    dnnl::error::wrap_c_api(dnnl_primitive_execute(p.run.get(), onednn_stream().get(), static_cast<int>(a->list.size()), a->list.data()),
                            "could not execute a convolution");
    p.spare->give(std::move(a));
  }
  // Those that change from call to call come first.
  std::unique_ptr<Arguments> new_arguments(const Primitive& p) const {
    auto a = std::make_unique<Arguments>();
    a->add(DNNL_ARG_SRC, p.x);
    a->add(DNNL_ARG_DST, p.y);
    for (std::size_t i = 0; i < p.operands.size(); ++i) a->add(p.places[i], p.operands[i]);
    if (p.scratch.get_size() > 0) a->add(DNNL_ARG_SCRATCHPAD, p.scratch);
    for (const auto& [place, factor] : p.factors) a->add(place, Epilogue::number(), const_cast<float*>(&factor));
    a->add(DNNL_ARG_WEIGHTS, p.weight, const_cast<void*>(p.packed));
    const Tensor& bias = stored_bias_.defined() || !bias_ ? stored_bias_ : *bias_;
    if (bias_) a->add(DNNL_ARG_BIAS, p.bias, bias.data_ptr<float>() + p.window.first_output);
    return a;
  }

  // ---- plans

  // Clears `with` where what follows cannot be part of it.
  std::shared_ptr<const Plan> plan_for(const std::array<int64_t, 4>& x, const std::array<int64_t, 4>& y, With& with) const {
    auto plan = kept_plan(x, y, with);
    if (!with.whole || !plan->parts.empty()) return plan;
    with = {};
    return kept_plan(x, y, with);
  }
  std::shared_ptr<const Plan> kept_plan(const std::array<int64_t, 4>& x, const std::array<int64_t, 4>& y, const With& with) const {
    constexpr std::size_t kMost = 64;  // sizes that are remembered
    const int64_t threads = in_parallel_region() ? 1 : get_num_threads();
    const std::array<int64_t, 6> key{x[0], x[1], x[2], x[3], threads, with.key()};
    const std::lock_guard lock(mutex_);
    for (auto it = plans_.begin(); it != plans_.end(); ++it)
      if (it->first == key) {
        if (it != plans_.begin()) std::rotate(plans_.begin(), it, it + 1);
        return plans_.front().second;
      }
    auto plan = std::make_shared<Plan>(Plan{x, y, with, with.whole ? formats_.out : Format(), {}, {}});
    if (!onednn_guarded("convolution", [&] { return make(*plan, threads); })) plan->parts.clear();
    if (plans_.size() == kMost) plans_.pop_back();
    plans_.insert(plans_.begin(), {key, plan});
    return plan;
  }

  // Threads take images where there are enough, otherwise rows of the result, or its channels where it is a single place.
  bool make(Plan& plan, int64_t threads) const {
    constexpr double kWorthThreads = 1.5e6, kLongPart = 6e7;  // multiply-adds, of some 20 us and 1 ms
    constexpr double kAlone = 4, kActivation = 25;  // as many take as long as one of a channel by itself, and as an activation of our own
    constexpr double kWorthReading = 2.5e5;         // weights, of a single place: reading them is the work then
    const auto &x = plan.x, &y = plan.y;
    const double work = static_cast<double>(y[0] * y[1] * y[2] * y[3]) *
                        (static_cast<double>(weight_.numel() / weight_.size(0)) * (groups_ > 1 ? kAlone : 1) +
                         (plan.with.whole && activation_ ? kActivation : 0));
    const Window all{x[0], x[2], y[2], padding_[0], padding_[0], 0, y[1]};
    // What an activation of our own goes over should be in the second cache still, unless reading the weights again would cost more.
    constexpr int64_t kCached = 1 << 16;  // elements
    const bool cuts = plan.with.whole && activation_ && weight_.numel() <= kCached;
    const int64_t pieces = cuts ? std::max<int64_t>(1, y[0] * y[1] * y[2] * y[3] / kCached) : 1;
    if (threads == 1 || work < kWorthThreads) {
      if (pieces > 1) return x[0] >= pieces ? split_images(plan, all, pieces) : split_rows(plan, (pieces + x[0] - 1) / x[0]);
      const bool single = threads > 1 && y[0] * y[2] * y[3] == 1 && groups_ == 1 && work >= kWorthReading;
      return single ? split_outputs(plan, all, threads) : add(plan, all, {0, 0, 0, 0});
    }
    const int64_t each = std::max<int64_t>(work / static_cast<double>(threads) > 4 * kLongPart ? 4 : 1, pieces / threads);
    if (x[0] % threads == 0 || x[0] >= 4 * threads) return split_images(plan, all, threads * each);
    return y[2] == 1 && y[3] == 1 && x[0] == 1 && groups_ == 1 ? split_outputs(plan, all, threads) : split_rows(plan, threads * each);
  }

  bool split_outputs(Plan& plan, Window v, int64_t parts) const {
    constexpr int64_t kBlock = 64;  // channels
    const int64_t all = v.outputs, each = (all + parts * kBlock - 1) / (parts * kBlock) * kBlock;
    for (v.first_output = 0; v.first_output < all; v.first_output += each) {
      v.outputs = std::min(each, all - v.first_output);
      if (!add(plan, v, {0, 0, 0, 0})) return false;
    }
    return true;
  }

  bool split_images(Plan& plan, Window v, int64_t parts) const {
    const int64_t all = v.images, each = std::max<int64_t>(1, all / parts);
    for (int64_t i = 0; i < all; i += each) {
      v.images = std::min(each, all - i);
      if (!add(plan, v, {0, i, 0, 0})) return false;
    }
    return true;
  }

  bool split_rows(Plan& plan, int64_t parts) const {
    const int64_t all = plan.y[2], each = (all + parts - 1) / parts, height = plan.x[2];
    const int64_t reach = dilation_[0] * (weight_.size(2) - 1) + 1;
    for (int64_t i = 0; i < plan.x[0]; ++i)
      for (int64_t row = 0; row < all; row += each) {
        const int64_t rows = std::min(each, all - row);
        const int64_t from = row * stride_[0] - padding_[0], to = (row + rows - 1) * stride_[0] - padding_[0] + reach;
        const int64_t first = std::clamp<int64_t>(from, 0, height), last = std::clamp<int64_t>(to, first, height);
        if (last == first) return false;  // padding alone
        if (!add(plan, {1, last - first, rows, first - from, to - last, 0, plan.y[1]}, {0, i, first, row})) return false;
      }
    return true;
  }

  bool add(Plan& plan, const Window& window, Part part) const {
    for (part.primitive = 0; part.primitive < plan.primitives.size(); ++part.primitive)
      if (plan.primitives[part.primitive].window == window) break;
    if (part.primitive == plan.primitives.size() && !add_primitive(plan, window)) return false;
    plan.parts.push_back(part);
    return true;
  }

  bool is_pointwise() const {
    const auto all = [](const std::vector<int64_t>& list, int64_t v) { return list[0] == v && list[1] == v; };
    return weight_.size(2) == 1 && weight_.size(3) == 1 && all(stride_, 1) && all(padding_, 0);
  }

  bool add_primitive(Plan& plan, const Window& v) const {
    use_one_onednn_thread();
    const int64_t inputs = weight_.size(1);
    memory::dims from{v.images, plan.x[1], v.rows_in, plan.x[3]}, to{v.images, v.outputs, v.rows_out, plan.y[3]};
    if (is_pointwise()) {  // places in one row
      from = {1, plan.x[1], 1, v.images * v.rows_in * plan.x[3]};
      to = {1, v.outputs, 1, from[3]};
    }
    const memory::desc x(from, onednn_type(formats_.in.dtype), kNHWC), y(to, onednn_type(plan.out.dtype), kNHWC);
    const memory::desc bias({v.outputs}, memory::data_type::f32, memory::format_tag::x);
    std::vector<memory::desc> operands;
    for (const Format& f : plan.with.operands) operands.emplace_back(to, onednn_type(f.dtype), kNHWC);
    memory::dims sizes{v.outputs, inputs, weight_.size(2), weight_.size(3)};
    if (groups_ > 1) {
      sizes[0] /= groups_;
      sizes.insert(sizes.begin(), groups_);
    }
    const bool quantized = formats_.in.is_quantized();
    const memory::desc weight(sizes, quantized ? memory::data_type::s8 : onednn_type(formats_.in.dtype), memory::format_tag::any);
    dnnl::primitive_attr attributes;
    attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
    Epilogue::Pass pass;
    if (plan.with.whole)
      pass = epilogue_.onednn(epilogue_.steps().size() - (activation_ ? 1 : 0), operands, plan.with.scales(), plan.out.scale);
    attributes.set_post_ops(pass.steps);
    if (quantized) {
      const auto first = product_scales_.begin() + v.first_output;
      attributes.set_output_scales(1 << 1, {first, first + v.outputs});
    }
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
    if (plan.with.whole && (!operands.empty() || !pass.factors.empty()) && name.find("gemm") != std::string_view::npos) return false;
    plan.primitives.push_back({v, Forward(pd), x, y, pd.weights_desc(), bias, pd.scratchpad_desc(), std::move(operands),
                               std::move(pass.operands), std::move(pass.factors), packed(sizes, v.first_output, pd.weights_desc())});
    return true;
  }

  // A convolution of 1 x 1 with more weights than places to use them at, which may have to come from memory, and without a panel at the
  // edge.
  bool reads_weights(int64_t places) const {
    constexpr int64_t kLarge = 1 << 16, kFew = 512;
    const PanelLoops& loops = find_panel_loops();
    return is_pointwise() && groups_ == 1 && weight_.numel() >= kLarge && places <= kFew &&
           (loops.is_few(places, weight_.size(1)) || (loops.panel > 0 && weight_.size(0) % loops.panel == 0));
  }
  // A convolution of 1 x 1 as a linear layer over the places of the image.
  static Tensor run_places(const LinearRows& own, const Tensor& x, TensorList operands, const std::array<int64_t, 4>& sizes) {
    const Tensor image = x.contiguous(MemoryFormat::ChannelsLast), y = empty(sizes, TensorOptions(kFloat), MemoryFormat::ChannelsLast);
    std::vector<Tensor> with;
    for (const Tensor& t : operands) with.push_back(t.contiguous(MemoryFormat::ChannelsLast));
    std::vector<const float*> places;
    for (const Tensor& t : with) places.push_back(t.const_data_ptr<float>());
    own.run(image.const_data_ptr<float>(), sizes[0] * sizes[2] * sizes[3], places, y.data_ptr<float>());
    return y;
  }
  // Where products of our own take all of the call.
  const LinearRows* rows_for(const Tensor& x, TensorList operands, IntArrayRef sizes, int64_t rows) const {
    const auto fits = [&](const Tensor& t) { return t.scalar_type() == kFloat && t.device().is_cpu() && t.sizes() == sizes; };
    if (x.scalar_type() != kFloat || formats_.in.dtype != kFloat || formats_.out.dtype != kFloat) return nullptr;
    if (!std::all_of(operands.begin(), operands.end(), fits) || !LinearRows::takes(rows, weight_.size(1))) return nullptr;
    std::call_once(rows_made_, [&] { rows_ = LinearRows::make(weight_.flatten(1), bias_, epilogue_); });
    return rows_.get();
  }

  // The last step's loop, where that is quicker than oneDNN's code for it.
  ActivationLoops::Loop own_activation() const {
    const bool any = !epilogue_.steps().empty() && formats_.out.dtype == kFloat;
    return any ? find_activation_loops().find(epilogue_.steps().back().name) : nullptr;
  }

  // The weight, or some of its outputs, in oneDNN's layout; there are few of them, since they do not depend on the sizes of images.
  const void* packed(const memory::dims& sizes, int64_t first_output, const memory::desc& wanted) const {
    for (const Packed& p : packed_)
      if (p.first_output == first_output && p.desc == wanted) return p.data.const_data_ptr();
    const Tensor source = stored_weight_.defined() ? stored_weight_ : weight_.contiguous();
    const memory::desc plain(sizes, onednn_type(source.scalar_type()), groups_ > 1 ? memory::format_tag::goihw : memory::format_tag::oihw);
    Tensor kept = detail::empty_cpu({static_cast<int64_t>(wanted.get_size())}, kByte);
    memory from(plain, onednn_engine(), static_cast<char*>(source.data_ptr()) + first_output * source.stride(0) * source.element_size());
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
  Formats formats_;
  ActivationLoops::Loop activation_;    // of the last step, for results that are whole; null: oneDNN's
  Tensor stored_weight_, stored_bias_;  // of 8 bits, and the bias in the unit of their products
  std::vector<float> product_scales_;
  mutable std::once_flag rows_made_;
  mutable std::unique_ptr<const LinearRows> rows_;
  mutable std::mutex mutex_;                                                                   // of what follows
  mutable std::vector<std::pair<std::array<int64_t, 6>, std::shared_ptr<const Plan>>> plans_;  // the last one used first
  mutable std::vector<Packed> packed_;
};

Formats formats_of(const std::string& input, const std::string& output, const std::vector<double>& scales, std::size_t operands) {
  CRESSET_CHECK_VALUE(scales.empty() || scales.size() == 2 + operands, "pack_convolution: ", 2 + operands,
                      " scales were required, of the input, the output and each operand; ", scales.size(), " were given.");
  const auto scale = [&](std::size_t i) { return i < scales.size() ? scales[i] : 0; };
  Formats out{format_of("pack_convolution", input, scale(0)), format_of("pack_convolution", output, scale(1)), {}};
  if (!out.in.is_quantized()) out.in.scale = 1;
  if (!out.out.is_quantized()) out.out.scale = 1;
  CRESSET_CHECK_VALUE(has_products_of(out.in.dtype), "pack_convolution: this processor has no instructions for products of ", input,
                      " (AVX-512 with VNNI for 8 bits, AVX512_BF16 for bfloat16).");
  for (std::size_t i = 2; i < scales.size(); ++i) out.operands.push_back(static_cast<float>(scales[i]));
  return out;
}

std::function<Tensor(const Tensor&)> packed_linear(const Tensor& weight, const std::optional<Tensor>& bias, ScalarType computes_in) {
  const auto pair = [](int64_t v) { return std::vector<int64_t>{v, v}; };
  const auto packed = make_intrusive<PackedConvolution>(weight.unsqueeze(2).unsqueeze(3), bias, pair(1), pair(0), pair(1), 1,
                                                        Epilogue({}, {}), Formats{{computes_in}, {}, {}});
  return [packed](const Tensor& x) { return packed->run_linear(x, {}); };
}

CRESSET_LIBRARY_FRAGMENT(cresset, m) {
  m.class_<PackedConvolution>("PackedConvolution");
  m.def("has_packed_products(str dtype) -> bool", [](const std::string& dtype) {
    const auto type = dtype_from_name(dtype);
    return type && has_products_of(*type);
  });
  m.def(
      "pack_convolution(Tensor weight, Tensor? bias, int[] stride, int[] padding, int[] dilation, int groups, str[] steps, "
      "float[] numbers, str input=\"float32\", str output=\"float32\", float[] scales=[]) -> "
      "__torch__.torch.classes.cresset.PackedConvolution",
      [](const Tensor& weight, const std::optional<Tensor>& bias, std::vector<int64_t> stride, std::vector<int64_t> padding,
         std::vector<int64_t> dilation, int64_t groups, const std::vector<std::string>& steps, const std::vector<double>& numbers,
         const std::string& input, const std::string& output, const std::vector<double>& scales) {
        Epilogue epilogue(steps, numbers);
        Formats formats = formats_of(input, output, scales, epilogue.num_operands());
        return make_intrusive<PackedConvolution>(weight, bias ? std::optional(bias->contiguous()) : std::nullopt, std::move(stride),
                                                 std::move(padding), std::move(dilation), groups, std::move(epilogue), std::move(formats));
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
