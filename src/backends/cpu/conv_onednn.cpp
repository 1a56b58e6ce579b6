// Convolutions of float32 and bfloat16 through oneDNN. oneDNN picks its own blocked layouts; tensors are reordered on the way in and out.
// Primitives are kept by problem in a small per-thread cache. The pool's threads take parts of a
// convolution.
#include "backends/cpu/conv_problem.h"
#include "backends/cpu/onednn.h"
#include "backends/cpu/packed_types.h"

#include <algorithm>
#include <cstring>
#include <list>
#include <string>
#include <string_view>
#include <unordered_map>

#include <cresset/base/parallel.h>
#include <cresset/ops/functions_copy.h>
#include <cresset/ops/functions_creation.h>
#include <cresset/ops/functions_reduce.h>
#include <cresset/ops/functions_view.h>

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
  if (grouped) strides.push_back(t.stride(0) * (p.w[0] / p.groups));
  strides.push_back(t.stride(0));
  strides.push_back(t.stride(1));
  if (p.spatial == 1) strides.push_back(t.stride(2) * t.size(2));
  for (int64_t d = 2; d < t.dim(); ++d) strides.push_back(t.stride(d));
  // Extents of one may carry any stride; oneDNN wants sane ones.
  for (std::size_t i = 0; i < strides.size(); ++i)
    if (strides[i] <= 0) strides[i] = 1;
  return memory::desc(dims, onednn_type(t.scalar_type()), strides);
}

struct Primitive {
  dnnl::primitive run;  // null where oneDNN has plain loops only, which are slower than columns and a product (AArch64)
  memory::desc x, w, y;
};

std::string key_of(Kind kind, const ConvProblem& p, bool bias) {
  std::array<int64_t, 32> words{};
  std::size_t n = 0;
  words[n++] = static_cast<int64_t>(kind) | (bias ? 8 : 0) | (int64_t{p.spatial} << 4) | (static_cast<int64_t>(p.type) << 8);
  for (const auto& a : {p.x, p.w, p.y})
    for (int64_t v : a) words[n++] = v;
  for (const auto& a : {p.stride, p.padding, p.padding_behind, p.dilation})
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

template <class Run, class Description>
dnnl::primitive unless_plain(const Description& d) {
  if (std::string_view(d.impl_info_str()).find("ref") != std::string_view::npos) return {};
  return Run(d);
}

Primitive make(Kind kind, const ConvProblem& p, bool bias) {
  const auto f32 = memory::data_type::f32, type = onednn_type(p.type);
  const auto any = memory::format_tag::any;
  const memory::desc x(tensor_dims(p, p.x), type, any), y(tensor_dims(p, p.y), type, any), w(weight_dims(p), type, any);
  const memory::desc b = bias ? memory::desc({p.w[0]}, f32, memory::format_tag::x) : memory::desc();
  const memory::dims stride = spatial_dims(p, p.stride), pad = spatial_dims(p, p.padding), behind = spatial_dims(p, p.padding_behind);
  memory::dims dilation = spatial_dims(p, p.dilation);
  for (auto& d : dilation) d -= 1;
  const auto algorithm = dnnl::algorithm::convolution_direct;
  const dnnl::convolution_forward::desc fd =
      bias ? dnnl::convolution_forward::desc(dnnl::prop_kind::forward_training, algorithm, x, w, b, y, stride, dilation, pad, behind)
           : dnnl::convolution_forward::desc(dnnl::prop_kind::forward_training, algorithm, x, w, y, stride, dilation, pad, behind);
  const dnnl::convolution_forward::primitive_desc forward(fd, onednn_engine());
  if (kind == Kind::Forward)
    return {unless_plain<dnnl::convolution_forward>(forward), forward.src_desc(), forward.weights_desc(), forward.dst_desc()};
  if (kind == Kind::BackwardData) {
    const dnnl::convolution_backward_data::desc d(algorithm, x, w, y, stride, dilation, pad, behind);
    const dnnl::convolution_backward_data::primitive_desc pd(d, onednn_engine(), forward);
    return {unless_plain<dnnl::convolution_backward_data>(pd), pd.diff_src_desc(), pd.weights_desc(), pd.diff_dst_desc()};
  }
  const dnnl::convolution_backward_weights::desc d(algorithm, x, memory::desc(weight_dims(p), f32, any), y, stride, dilation, pad, behind);
  const dnnl::convolution_backward_weights::primitive_desc pd(d, onednn_engine(), forward);
  return {unless_plain<dnnl::convolution_backward_weights>(pd), pd.src_desc(), pd.diff_weights_desc(), pd.diff_dst_desc()};
}

// The memory in the wanted layout: itself, or a scratch copy.
memory input_in(OnednnScratch& scratch, const memory::desc& have, void* data, const memory::desc& want) {
  memory m(have, onednn_engine(), data);
  if (have == want) return m;
  memory reordered = scratch.make(want);
  dnnl::reorder(m, reordered).execute(onednn_stream(), m, reordered);
  return reordered;
}

bool usable(const Tensor& t) { return t.is_non_overlapping_and_dense(); }

const Primitive* cached(Kind kind, const ConvProblem& p, bool bias) {
  static thread_local const auto cache = std::make_unique<Cache>();  // on the heap: the library's thread-local memory is small
  const Primitive* found = cache->get(key_of(kind, p, bias), [&] { return make(kind, p, bias); });
  if (!found->run) throw dnnl::error(dnnl_unimplemented, "plain loops only");
  return found;
}

// Runs with `out` (an argument of the primitive) written in its own layout or through scratch memory.
void run_into(OnednnScratch& scratch, const Primitive& prim, std::unordered_map<int, memory> arguments, int out_argument,
              const memory::desc& have, void* out, const memory::desc& want) {
  memory target(have, onednn_engine(), out);
  memory result = have == want ? target : scratch.make(want);
  arguments.emplace(out_argument, result);
  prim.run.execute(onednn_stream(), arguments);
  if (have != want) dnnl::reorder(result, target).execute(onednn_stream(), result, target);
  onednn_stream().wait();
}

// What a convolution is split along: images, rows of the input, channels of the result, channels of the input, groups. Parts of a weight's
// gradient that go over some images each are added.
enum class Side { Images, Rows, Outputs, Inputs, Groups };

struct Split {
  Side side = Side::Images;
  int64_t units = 1, height = 1;  // of images, groups or channels; a part has `height` of them
  int64_t parts() const { return (units + height - 1) / height; }
};

template <std::size_t N>
double elements(const std::array<int64_t, N>& sizes) {
  double n = 1;
  for (int64_t v : sizes) n *= static_cast<double>(v);
  return n;
}

// The axis of rows, in sizes of five dimensions and in those of a tensor.
std::size_t row_axis(const ConvProblem& p) { return p.spatial == 1 ? 4 : 3; }
int64_t row_dim(const ConvProblem& p) { return p.spatial == 3 ? 3 : 2; }

// The rows of the result that those of the input from `first` on go into, and the padding before and behind them; nothing where those
// would be none, or less than none.
struct RowWindow {
  int64_t from, rows, before, behind;
};
std::optional<RowWindow> row_window(const ConvProblem& p, int64_t first, int64_t rows) {
  const std::size_t axis = row_axis(p), s = axis - 2;
  const int64_t stride = p.stride[s], pad = p.padding[s], reach = p.dilation[s] * (p.w[axis] - 1) + 1, end = first + rows;
  const int64_t from = std::max<int64_t>(0, first + pad - reach + stride) / stride, to = std::min(p.y[axis], (end - 1 + pad) / stride + 1);
  const int64_t before = first + pad - from * stride, behind = std::max<int64_t>(0, (to - 1) * stride - pad + reach - end);
  if (reach < stride || to <= from || before < 0) return std::nullopt;
  if ((rows + before + behind - reach) / stride + 1 != to - from) return std::nullopt;
  return RowWindow{from, to - from, before, behind};
}

// The split whose longest part ends first: its multiply-adds, and the operand that every part brings into its own layout. Of big problems
// each thread gets several parts, so that one that is held up leaves some to the others.
Split split_of(Kind kind, const ConvProblem& p) {
  constexpr double kWorthThreads = 4e6, kLongPart = 6e7, kReorder = 24;  // multiply-adds, of some 1 ms, that take as long as an element
  constexpr int64_t kChannels = 16;                                      // of oneDNN's blocks
  const double work = work_of(p);
  const int64_t threads = get_num_threads();
  Split best;
  if (threads == 1 || in_parallel_region() || work < kWorthThreads) return best;
  double least = work;
  const auto consider = [&](Side side, int64_t units, int64_t step, double shared) {
    for (int64_t each : {4, 2, 1}) {
      if (each > 1 && work / static_cast<double>(threads) < kLongPart * static_cast<double>(each)) continue;
      const int64_t blocks = (units + step - 1) / step, height = (blocks + threads * each - 1) / (threads * each);
      const int64_t parts = (blocks + height - 1) / height, rounds = (parts + threads - 1) / threads;
      const double time =
          static_cast<double>(rounds) * (work * static_cast<double>(height) / static_cast<double>(blocks) + kReorder * shared);
      if (parts > 1 && time < least) {
        least = time;
        best = {side, units, height * step};
      }
    }
  };
  if (p.groups > 1) {
    consider(Side::Groups, p.groups, p.w[0] / p.groups >= kChannels ? 1 : kChannels, 0);
    if (kind != Kind::BackwardWeight) consider(Side::Images, p.x[0], 1, elements(p.w));
    return best;
  }
  consider(Side::Images, p.x[0], 1, elements(p.w));
  if (kind == Kind::BackwardData) {
    const Split whole = best;
    consider(Side::Rows, p.x[row_axis(p)], 1, elements(p.w));
    for (int64_t i = 0; best.side == Side::Rows && i < best.units; i += best.height)
      if (!row_window(p, i, std::min(best.height, best.units - i))) best = whole;
  }
  if (kind != Kind::BackwardData) consider(Side::Outputs, p.w[0], kChannels, elements(p.x));
  if (kind != Kind::Forward) consider(Side::Inputs, p.w[1], kChannels, elements(p.y));
  return best;
}

// A part of a problem and where its tensors begin, in steps of the first two strides of each.
struct Part {
  ConvProblem p;
  int64_t image = 0, input = 0, output = 0, weight_input = 0, row_in = 0, row_out = 0;

  void* x(const Tensor& t) const { return at(t, image, input, row_in * t.stride(row_dim(p))); }
  void* w(const Tensor& t) const { return at(t, output, weight_input, 0); }
  void* y(const Tensor& t) const { return at(t, image, output, row_out * t.stride(row_dim(p))); }

 private:
  static void* at(const Tensor& t, int64_t first, int64_t second, int64_t further) {
    return static_cast<char*>(t.data_ptr()) + (first * t.stride(0) + second * t.stride(1) + further) * t.element_size();
  }
};

Part part_of(const ConvProblem& p, const Split& split, int64_t number) {
  Part part{p};
  const int64_t from = number * split.height, n = std::min(split.height, split.units - from);
  if (split.parts() == 1) return part;
  switch (split.side) {
    case Side::Images:
      part.image = from;
      part.p.x[0] = part.p.y[0] = n;
      break;
    case Side::Rows: {
      const RowWindow rows = *row_window(p, from, n);
      const std::size_t axis = row_axis(p);
      part.row_in = from;
      part.row_out = rows.from;
      part.p.x[axis] = n;
      part.p.y[axis] = rows.rows;
      part.p.padding[axis - 2] = rows.before;
      part.p.padding_behind[axis - 2] = rows.behind;
      break;
    }
    case Side::Outputs:
      part.output = from;
      part.p.w[0] = part.p.y[1] = n;
      break;
    case Side::Inputs:
      part.input = part.weight_input = from;
      part.p.w[1] = part.p.x[1] = n;
      break;
    case Side::Groups:
      part.input = from * p.w[1];
      part.output = from * (p.w[0] / p.groups);
      part.p.groups = n;
      part.p.x[1] = n * p.w[1];
      part.p.w[0] = part.p.y[1] = n * (p.w[0] / p.groups);
      break;
  }
  return part;
}

// run(part, its number, scratch memory) for all parts.
template <class Run>
bool in_parts(const ConvProblem& p, const Split& split, const Run& run) {
  return onednn_guarded("convolution", [&] {
    parallel_for(0, split.parts(), 1, [&](int64_t begin, int64_t end) {
      const SignalsBlocked blocked;
      use_one_onednn_thread();
      for (int64_t i = begin; i < end; ++i) {
        OnednnScratch scratch;
        run(part_of(p, split, i), i, scratch);
      }
    });
    return true;
  });
}

}  // namespace

bool onednn_conv_forward(const ConvProblem& p, const Tensor& x, const Tensor& w, const std::optional<Tensor>& bias, const Tensor& y) {
  const Tensor xd = usable(x) ? x : x.contiguous(), wd = usable(w) ? w : w.contiguous();
  const Tensor bd = bias ? bias->to(kFloat).contiguous() : Tensor();
  return in_parts(p, split_of(Kind::Forward, p), [&](const Part& part, int64_t, OnednnScratch& scratch) {
    const ConvProblem& q = part.p;
    const Primitive& prim = *cached(Kind::Forward, q, bias.has_value());
    std::unordered_map<int, memory> arguments{
        {DNNL_ARG_SRC, input_in(scratch, described(q, xd, tensor_dims(q, q.x), false), part.x(xd), prim.x)},
        {DNNL_ARG_WEIGHTS, input_in(scratch, described(q, wd, weight_dims(q), true), part.w(wd), prim.w)}};
    if (bias)
      arguments.emplace(DNNL_ARG_BIAS, memory(memory::desc({q.w[0]}, memory::data_type::f32, memory::format_tag::x), onednn_engine(),
                                              bd.data_ptr<float>() + part.output));
    run_into(scratch, prim, std::move(arguments), DNNL_ARG_DST, described(q, y, tensor_dims(q, q.y), false), part.y(y), prim.y);
  });
}

bool onednn_conv_backward_data(const ConvProblem& p, const Tensor& gy, const Tensor& w, const Tensor& gx) {
  const Tensor gd = usable(gy) ? gy : gy.contiguous(), wd = usable(w) ? w : w.contiguous();
  return in_parts(p, split_of(Kind::BackwardData, p), [&](const Part& part, int64_t, OnednnScratch& scratch) {
    const ConvProblem& q = part.p;
    const Primitive& prim = *cached(Kind::BackwardData, q, false);
    run_into(scratch, prim,
             {{DNNL_ARG_DIFF_DST, input_in(scratch, described(q, gd, tensor_dims(q, q.y), false), part.y(gd), prim.y)},
              {DNNL_ARG_WEIGHTS, input_in(scratch, described(q, wd, weight_dims(q), true), part.w(wd), prim.w)}},
             DNNL_ARG_DIFF_SRC, described(q, gx, tensor_dims(q, q.x), false), part.x(gx), prim.x);
  });
}

bool onednn_conv_backward_weight(const ConvProblem& p, const Tensor& gy, const Tensor& x, const Tensor& gw) {
  const Tensor gd = usable(gy) ? gy : gy.contiguous(), xd = usable(x) ? x : x.contiguous();
  const Split split = split_of(Kind::BackwardWeight, p);
  const bool added = split.side == Side::Images && split.parts() > 1;
  DimVector sizes(gw.sizes());
  sizes.insert(sizes.begin(), split.parts());
  const Tensor terms = added ? cresset::empty(sizes, gw.options()) : Tensor();
  const auto run = [&](const Part& part, int64_t number, OnednnScratch& scratch) {
    const ConvProblem& q = part.p;
    const Tensor to = added ? terms.select(0, number) : gw;
    const Primitive& prim = *cached(Kind::BackwardWeight, q, false);
    run_into(scratch, prim,
             {{DNNL_ARG_DIFF_DST, input_in(scratch, described(q, gd, tensor_dims(q, q.y), false), part.y(gd), prim.y)},
              {DNNL_ARG_SRC, input_in(scratch, described(q, xd, tensor_dims(q, q.x), false), part.x(xd), prim.x)}},
             DNNL_ARG_DIFF_WEIGHTS, described(q, to, weight_dims(q), true), part.w(to), prim.w);
  };
  if (!in_parts(p, split, run)) return false;
  if (added) Tensor(gw).copy_(cresset::sum(terms, IntArrayRef(0)));
  return true;
}

}  // namespace cresset::cpu
