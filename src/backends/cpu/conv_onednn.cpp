// float32 convolutions through oneDNN. oneDNN picks its own blocked layouts; tensors are reordered on the way in and out.
// Primitives are kept by problem in a small per-thread cache.
#include "backends/cpu/conv_problem.h"
#include "backends/cpu/onednn.h"

#include <cstring>
#include <list>
#include <string>
#include <unordered_map>

namespace cresset::cpu {
namespace {

using dnnl::memory;

double work_of(const ConvProblem& p) {
  double work = 1;  // multiply-adds
  for (int64_t v : p.y) work *= static_cast<double>(v);
  for (std::size_t i = 1; i < p.w.size(); ++i) work *= static_cast<double>(p.w[i]);
  return work;
}

enum class Kind : int64_t { Forward, BackwardData, BackwardWeight };

// Sizes without the spatial ones that the caller does not have (at least two stay: oneDNN is happiest with those).
int first_spatial(const ConvProblem& p) { return p.spatial == 3 ? 0 : 1; }

memory::dims spatial_dims(const ConvProblem& p, const std::array<int64_t, 3>& v) {
  return memory::dims(v.begin() + first_spatial(p), v.end());
}
memory::dims tensor_dims(const ConvProblem& p, const std::array<int64_t, 5>& v) {
  memory::dims d{v[0], v[1]};
  d.insert(d.end(), v.begin() + 2 + first_spatial(p), v.end());
  return d;
}
memory::dims weight_dims(const ConvProblem& p) {
  memory::dims d = tensor_dims(p, p.w);
  if (p.groups > 1) {
    d[0] /= p.groups;
    d.insert(d.begin(), p.groups);
  }
  return d;
}

// A tensor where it lies, seen with the given oneDNN sizes (which may have a one inserted for 1-D convolutions).
memory::desc described(const ConvProblem& p, const Tensor& t, const memory::dims& dims, bool weight) {
  memory::dims strides;
  const bool grouped = weight && p.groups > 1;
  if (grouped) strides.push_back(t.stride(0) * (t.size(0) / p.groups));
  strides.push_back(t.stride(0));
  strides.push_back(t.stride(1));
  if (p.spatial == 1) strides.push_back(t.stride(2) * t.size(2));
  for (int64_t d = 2; d < t.dim(); ++d) strides.push_back(t.stride(d));
  // Extents of one may carry any stride; oneDNN wants sane ones.
  for (std::size_t i = 0; i < strides.size(); ++i)
    if (strides[i] <= 0) strides[i] = 1;
  return memory::desc(dims, memory::data_type::f32, strides);
}

struct Primitive {
  dnnl::primitive run;
  memory::desc x, w, y;
};

std::string key_of(Kind kind, const ConvProblem& p, bool bias) {
  std::array<int64_t, 28> words{};
  std::size_t n = 0;
  words[n++] = static_cast<int64_t>(kind) | (bias ? 8 : 0) | (int64_t{p.spatial} << 4);
  for (const auto& a : {p.x, p.w, p.y})
    for (int64_t v : a) words[n++] = v;
  for (const auto& a : {p.stride, p.padding, p.dilation})
    for (int64_t v : a) words[n++] = v;
  words[n++] = p.groups;
  return std::string(reinterpret_cast<const char*>(words.data()), n * sizeof(int64_t));
}

class Cache {
 public:
  template <class Make>
  const Primitive* get(const std::string& key, const Make& make) {
    if (const auto it = index_.find(key); it != index_.end()) {
      order_.splice(order_.begin(), order_, it->second);
      return &order_.front().second;
    }
    order_.emplace_front(key, make());
    index_[key] = order_.begin();
    if (order_.size() > kCapacity) {
      index_.erase(order_.back().first);
      order_.pop_back();
    }
    return &order_.front().second;
  }

 private:
  static constexpr std::size_t kCapacity = 128;
  std::list<std::pair<std::string, Primitive>> order_;
  std::unordered_map<std::string, std::list<std::pair<std::string, Primitive>>::iterator> index_;
};

Primitive make(Kind kind, const ConvProblem& p, bool bias) {
  const auto f32 = memory::data_type::f32;
  const auto any = memory::format_tag::any;
  const memory::desc x(tensor_dims(p, p.x), f32, any), y(tensor_dims(p, p.y), f32, any), w(weight_dims(p), f32, any);
  const memory::desc b = bias ? memory::desc({p.w[0]}, f32, memory::format_tag::x) : memory::desc();
  const memory::dims stride = spatial_dims(p, p.stride), pad = spatial_dims(p, p.padding);
  memory::dims dilation = spatial_dims(p, p.dilation);
  for (auto& d : dilation) d -= 1;
  const auto algorithm = dnnl::algorithm::convolution_direct;
  const dnnl::convolution_forward::desc fd =
      bias ? dnnl::convolution_forward::desc(dnnl::prop_kind::forward_training, algorithm, x, w, b, y, stride, dilation, pad, pad)
           : dnnl::convolution_forward::desc(dnnl::prop_kind::forward_training, algorithm, x, w, y, stride, dilation, pad, pad);
  const dnnl::convolution_forward::primitive_desc forward(fd, onednn_engine());
  if (kind == Kind::Forward) return {dnnl::convolution_forward(forward), forward.src_desc(), forward.weights_desc(), forward.dst_desc()};
  if (kind == Kind::BackwardData) {
    const dnnl::convolution_backward_data::desc d(algorithm, x, w, y, stride, dilation, pad, pad);
    const dnnl::convolution_backward_data::primitive_desc pd(d, onednn_engine(), forward);
    return {dnnl::convolution_backward_data(pd), pd.diff_src_desc(), pd.weights_desc(), pd.diff_dst_desc()};
  }
  const dnnl::convolution_backward_weights::desc d(algorithm, x, w, y, stride, dilation, pad, pad);
  const dnnl::convolution_backward_weights::primitive_desc pd(d, onednn_engine(), forward);
  return {dnnl::convolution_backward_weights(pd), pd.src_desc(), pd.diff_weights_desc(), pd.diff_dst_desc()};
}

// The tensor's memory in the wanted layout: itself, or a scratch copy.
memory input_in(OnednnScratch& scratch, const memory::desc& have, const Tensor& t, const memory::desc& want) {
  memory m(have, onednn_engine(), t.data_ptr());
  if (have == want) return m;
  memory reordered = scratch.make(want);
  dnnl::reorder(m, reordered).execute(onednn_stream(), m, reordered);
  return reordered;
}

bool usable(const Tensor& t) { return t.is_non_overlapping_and_dense(); }

const Primitive* cached(Kind kind, const ConvProblem& p, bool bias) {
  static thread_local const auto cache = std::make_unique<Cache>();  // on the heap: the library's thread-local memory is small
  return cache->get(key_of(kind, p, bias), [&] { return make(kind, p, bias); });
}

// Runs with `out` (an argument of the primitive) written in its own layout or through scratch memory.
void run_into(OnednnScratch& scratch, const Primitive& prim, std::unordered_map<int, memory> arguments, int out_argument,
              const memory::desc& have, const Tensor& out, const memory::desc& want) {
  memory target(have, onednn_engine(), out.data_ptr());
  memory result = have == want ? target : scratch.make(want);
  arguments.emplace(out_argument, result);
  prim.run.execute(onednn_stream(), arguments);
  if (have != want) dnnl::reorder(result, target).execute(onednn_stream(), result, target);
  onednn_stream().wait();
}

}  // namespace

bool onednn_conv_forward(const ConvProblem& p, const Tensor& x, const Tensor& w, const std::optional<Tensor>& bias, const Tensor& y) {
  return onednn_guarded("convolution", [&] {
    OnednnScratch scratch;
    set_onednn_threads(work_of(p));
    const Tensor xd = usable(x) ? x : x.contiguous(), wd = usable(w) ? w : w.contiguous();
    const Tensor bd = bias ? bias->contiguous() : Tensor();
    const Primitive& prim = *cached(Kind::Forward, p, bias.has_value());
    std::unordered_map<int, memory> arguments{{DNNL_ARG_SRC, input_in(scratch, described(p, xd, tensor_dims(p, p.x), false), xd, prim.x)},
                                              {DNNL_ARG_WEIGHTS, input_in(scratch, described(p, wd, weight_dims(p), true), wd, prim.w)}};
    if (bias)
      arguments.emplace(DNNL_ARG_BIAS,
                        memory(memory::desc({p.w[0]}, memory::data_type::f32, memory::format_tag::x), onednn_engine(), bd.data_ptr()));
    run_into(scratch, prim, std::move(arguments), DNNL_ARG_DST, described(p, y, tensor_dims(p, p.y), false), y, prim.y);
    return true;
  });
}

bool onednn_conv_backward_data(const ConvProblem& p, const Tensor& gy, const Tensor& w, const Tensor& gx) {
  return onednn_guarded("convolution", [&] {
    OnednnScratch scratch;
    set_onednn_threads(work_of(p));
    const Tensor gd = usable(gy) ? gy : gy.contiguous(), wd = usable(w) ? w : w.contiguous();
    const Primitive& prim = *cached(Kind::BackwardData, p, false);
    run_into(scratch, prim,
             {{DNNL_ARG_DIFF_DST, input_in(scratch, described(p, gd, tensor_dims(p, p.y), false), gd, prim.y)},
              {DNNL_ARG_WEIGHTS, input_in(scratch, described(p, wd, weight_dims(p), true), wd, prim.w)}},
             DNNL_ARG_DIFF_SRC, described(p, gx, tensor_dims(p, p.x), false), gx, prim.x);
    return true;
  });
}

bool onednn_conv_backward_weight(const ConvProblem& p, const Tensor& gy, const Tensor& x, const Tensor& gw) {
  return onednn_guarded("convolution", [&] {
    OnednnScratch scratch;
    set_onednn_threads(work_of(p));
    const Tensor gd = usable(gy) ? gy : gy.contiguous(), xd = usable(x) ? x : x.contiguous();
    const Primitive& prim = *cached(Kind::BackwardWeight, p, false);
    run_into(scratch, prim,
             {{DNNL_ARG_DIFF_DST, input_in(scratch, described(p, gd, tensor_dims(p, p.y), false), gd, prim.y)},
              {DNNL_ARG_SRC, input_in(scratch, described(p, xd, tensor_dims(p, p.x), false), xd, prim.x)}},
             DNNL_ARG_DIFF_WEIGHTS, described(p, gw, weight_dims(p), true), gw, prim.w);
    return true;
  });
}

}  // namespace cresset::cpu
