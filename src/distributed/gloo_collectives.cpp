// The collectives of the backend "gloo": what is checked, which memory Gloo sees, and where results go.
//
// Gloo sees contiguous memory: a contiguous tensor's own, else a copy that is copied back.
#include <gloo/allgather.h>
#include <gloo/allreduce.h>
#include <gloo/alltoallv.h>
#include <gloo/broadcast.h>
#include <gloo/gather.h>
#include <gloo/reduce.h>
#include <gloo/scatter.h>
#include <gloo/types.h>

#include <cstring>

#include <cresset/ops/functions_creation.h>

#include "distributed/gloo_group.h"
#include "distributed/reduce.h"

namespace cresset::distributed {

namespace {

using Tensors = std::vector<Tensor>;

// --- what is checked

void check_one(const char* op, const Tensor& t) {
  CRESSET_CHECK(t.defined(), "ProcessGroupGloo::", op, ": a tensor was required; an undefined one was given.");
  CRESSET_CHECK(t.layout() == Layout::Strided, "ProcessGroupGloo::", op, ": unsupported layout");
  CRESSET_CHECK(t.is_cpu(), "ProcessGroupGloo::", op, ": unsupported device type ", DeviceTypeName(t.device().type()));
}
void check_type(const char* op, const Tensor& tensor, const Tensor& like, std::size_t i) {
  check_one(op, tensor);
  CRESSET_CHECK(tensor.scalar_type() == like.scalar_type(), "ProcessGroupGloo::", op, ": invalid tensor type at index ", i, " (expected ",
                toString(like.scalar_type()), ", got ", toString(tensor.scalar_type()), ")");
}
/// All of one type and shape.
void check_alike(const char* op, const Tensors& tensors, const Tensor& like) {
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    check_type(op, tensors[i], like, i);
    CRESSET_CHECK(tensors[i].sizes() == like.sizes(), "ProcessGroupGloo::", op, ": invalid tensor size at index ", i, " (expected ",
                  like.sizes(), ", got ", tensors[i].sizes(), ")");
  }
}
void check_some(const char* op, const Tensors& tensors) {
  CRESSET_CHECK(!tensors.empty(), "ProcessGroupGloo::", op, ": requires non-empty tensor list");
}
void check_root(const char* op, int64_t root, int size) {
  CRESSET_CHECK(root >= 0 && root < size, "ProcessGroupGloo::", op, ": invalid root rank: ", root);
}
void check_single(const char* op, const char* what, std::size_t n) {
  CRESSET_CHECK(n == 1, "ProcessGroupGloo::", op, ": requires a single-element ", what);
}
/// Rows of dimension 0 for each rank; equal ones where no splits were given.
std::vector<int64_t> checked_splits(std::vector<int64_t> splits, const Tensor& t, int size, const char* what) {
  const int64_t rows = t.dim() ? t.size(0) : 1;
  if (splits.empty()) {
    CRESSET_CHECK(rows % size == 0, "Tensor's dim 0 does not divide equally across group size");
    return std::vector<int64_t>(static_cast<std::size_t>(size), rows / size);
  }
  CRESSET_CHECK(splits.size() == static_cast<std::size_t>(size), "Number of tensor splits not equal to group size");
  int64_t sum = 0;
  for (const int64_t n : splits) {
    CRESSET_CHECK(n >= 0, "alltoall_base: splits from 0 up were required; ", n, " was given as one of the ", what, " splits.");
    sum += n;
  }
  CRESSET_CHECK(sum == rows, "Split sizes doesn't match total dim 0 size");
  return splits;
}

// --- memory

uint8_t* bytes_of(const Tensor& t) { return static_cast<uint8_t*>(t.data_ptr()); }
/// Contiguous; the same tensor where it is already.
Tensor flat(const Tensor& t) { return t.is_contiguous() ? t : t.contiguous(); }
/// What was received in `from`, which may be `to` itself, is in `to`.
void give_back(const Tensor& to, const Tensor& from) {
  if (to.is_same(from))
    to.unsafeGetTensorImpl()->bump_version();
  else
    to.copy_(from.view(to.sizes()));
}
std::size_t total_bytes(const Tensors& tensors) {
  std::size_t n = 0;
  for (const Tensor& t : tensors) n += t.nbytes();
  return n;
}
/// Tensors one behind the other, as bytes.
void pack(const Tensors& tensors, uint8_t* to) {
  for (const Tensor& t : tensors) {
    const Tensor source = flat(t);
    if (t.nbytes()) std::memcpy(to, source.data_ptr(), t.nbytes());
    to += t.nbytes();
  }
}
const uint8_t* unpack(const uint8_t* from, const Tensors& tensors) {
  for (const Tensor& t : tensors) {
    const Tensor target = t.is_contiguous() ? t : cresset::empty(t.sizes(), t.options());
    if (t.nbytes()) std::memcpy(target.data_ptr(), from, t.nbytes());
    give_back(t, target);
    from += t.nbytes();
  }
  return from;
}
// The value of a future: one list is itself.
IValue lists_of(const std::vector<Tensors>& lists) { return lists.size() == 1 ? IValue(lists[0]) : IValue(lists); }

// --- reductions

/// The values that a rank brings: multiplied by its factor, for PREMUL_SUM, in memory of their own. Their dtype stays.
Tensor premultiplied(const Tensor& t, const ReduceOp& op) {
  CRESSET_CHECK(op.number || op.tensor.defined(),
                "ReduceOp.PREMUL_SUM: a factor was required; none was given. _make_nccl_premul_sum(factor) makes one.");
  CRESSET_CHECK(!op.tensor.defined() || op.tensor.numel() == 1, "ReduceOp.PREMUL_SUM: a factor of one element was required; it has ",
                op.tensor.defined() ? op.tensor.numel() : 1, ".");
  return (op.tensor.defined() ? t * op.tensor.to(t.device()) : t * Scalar(*op.number)).to(t.scalar_type());
}
void finish_average(const Tensor& t, const ReduceOp& op, int size) {
  if (op == ReduceOp::AVG)
    isIntegralType(t.scalar_type(), true) ? void(t.div_(Scalar(int64_t{size}), "trunc")) : void(t.div_(Scalar(int64_t{size})));
}

template <class Options>
void set_memory(Options& o, std::size_t element, uint8_t* in, uint8_t* out, std::size_t n) {
  const auto set = [&]<class T>(T*) {
    if (in) o.setInput(reinterpret_cast<T*>(in), n);
    o.setOutput(reinterpret_cast<T*>(out), n);
  };
  switch (element) {
    case 1: return set(static_cast<uint8_t*>(nullptr));
    case 2: return set(static_cast<uint16_t*>(nullptr));
    case 4: return set(static_cast<uint32_t*>(nullptr));
    case 8: return set(static_cast<uint64_t*>(nullptr));
    default: {
      struct Sixteen {
        uint64_t parts[2];
      };
      return set(static_cast<Sixteen*>(nullptr));
    }
  }
}

/// Few bytes: everybody sends all to everybody, one step in place of the ring's 2(n-1). Summed in the order of ranks, so that all agree.
void allreduce_few(const GlooCall& call, uint8_t* data, std::size_t bytes, std::size_t n, ReduceFunction f) {
  const int size = call.context->size, rank = call.context->rank;
  const std::size_t room = bytes * static_cast<std::size_t>(size);
  const auto all = std::make_unique_for_overwrite<uint8_t[]>(room);
  const auto at = [&](int r) { return all.get() + bytes * static_cast<std::size_t>(r); };
  std::memcpy(at(rank), data, bytes);
  constexpr uint8_t kPrefix = 0x40;
  const auto slot = static_cast<uint64_t>(gloo::Slot::build(kPrefix, call.tag));
  auto buffer = call.context->createUnboundBuffer(all.get(), room);
  for (int r = 0; r < size; ++r)
    if (r != rank) buffer->recv(r, slot, bytes * static_cast<std::size_t>(r), bytes);
  for (int r = 0; r < size; ++r)
    if (r != rank) buffer->send(r, slot, bytes * static_cast<std::size_t>(rank), bytes);
  for (int i = 1; i < size; ++i) buffer->waitRecv(call.timeout);
  std::memcpy(data, at(0), bytes);
  for (int r = 1; r < size; ++r) f(data, data, at(r), n);
  for (int i = 1; i < size; ++i) buffer->waitSend(call.timeout);
}

/// Reduces contiguous memory in place.
void allreduce_memory(const GlooCall& call, const Tensor& t, ReduceFunction f) {
  constexpr std::size_t kFewBytes = 128 * 1024;  // that a rank sends
  constexpr int kFewRanks = 8;
  const int others = call.context->size - 1;
  if (others == 0 || t.numel() == 0) return;
  if (others < kFewRanks && t.nbytes() * static_cast<std::size_t>(others) <= kFewBytes)
    return allreduce_few(call, bytes_of(t), t.nbytes(), static_cast<std::size_t>(t.numel()), f);
  gloo::AllreduceOptions o(call.context);
  set_memory(o, t.itemsize(), nullptr, bytes_of(t), static_cast<std::size_t>(t.numel()));
  o.setReduceFunction([f](void* out, const void* a, const void* b, std::size_t n) { f(out, a, b, n); });
  o.setTag(call.tag);
  o.setTimeout(call.timeout);
  gloo::allreduce(o);
}

void exchange(const GlooCall& call, uint8_t* in, std::vector<int64_t> in_bytes, uint8_t* out, std::vector<int64_t> out_bytes) {
  if (call.context->size == 1) {
    if (in_bytes[0]) std::memcpy(out, in, static_cast<std::size_t>(in_bytes[0]));
    return;
  }
  uint8_t none = 0;  // Gloo wants an address where there are no bytes
  gloo::AlltoallvOptions o(call.context);
  o.setInput(in ? in : &none, std::move(in_bytes));
  o.setOutput(out ? out : &none, std::move(out_bytes));
  o.setTag(call.tag);
  o.setTimeout(call.timeout);
  gloo::alltoallv(o);
}

/// Each rank's part of all ranks' values, reduced in the order of ranks.
void reduce_scatter_memory(const GlooCall& call, const Tensors& parts, const Tensor& output, const ReduceOp& op) {
  const auto size = static_cast<std::size_t>(call.context->size);
  const std::size_t mine = output.nbytes();
  std::vector<uint8_t> sent(total_bytes(parts)), received(mine * size);
  std::vector<int64_t> in_bytes;
  Tensors brought = parts;
  if (op == ReduceOp::PREMUL_SUM)
    for (Tensor& t : brought) t = premultiplied(t, op);
  for (const Tensor& t : brought) in_bytes.push_back(static_cast<int64_t>(t.nbytes()));
  pack(brought, sent.data());
  exchange(call, sent.data(), in_bytes, received.data(), std::vector<int64_t>(size, static_cast<int64_t>(mine)));
  const ReduceFunction f = reduce_function(op, output.scalar_type());
  for (std::size_t r = 1; r < size; ++r)
    f(received.data(), received.data(), received.data() + r * mine, static_cast<std::size_t>(output.numel()));
  unpack(received.data(), {output});
  finish_average(output, op, call.context->size);
}

void allgather_memory(const GlooCall& call, uint8_t* in, std::size_t bytes, uint8_t* out) {
  if (bytes == 0) return;
  if (call.context->size == 1) {  // not connected: it makes no buffers
    std::memcpy(out, in, bytes);
    return;
  }
  gloo::AllgatherOptions o(call.context);
  o.setInput(in, bytes);
  o.setOutput(out, bytes * static_cast<std::size_t>(call.context->size));
  o.setTag(call.tag);
  o.setTimeout(call.timeout);
  gloo::allgather(o);
}

/// Parts of dimension 0, one a rank.
Tensors equal_parts(const Tensor& t, int size) {
  const Tensor whole = t.is_contiguous() ? t.view({size, -1}) : t.contiguous().view({size, -1});
  Tensors out;
  for (int64_t r = 0; r < size; ++r) out.push_back(whole.select(0, r));
  return out;
}

}  // namespace

// --- one to all

intrusive_ptr<Work> GlooGroup::broadcast(Tensors& tensors, const BroadcastOptions& opts) {
  const char* op = "broadcast";
  check_root(op, opts.rootRank, size_);
  CRESSET_CHECK(opts.rootTensor >= 0 && opts.rootTensor < static_cast<int64_t>(tensors.size()),
                "ProcessGroupGloo::broadcast: invalid root tensor: ", opts.rootTensor);
  check_alike(op, tensors, tensors[0]);
  return start(OpType::BROADCAST, opts, tensors, [tensors, opts](const GlooCall& call) {
    const Tensor& root = tensors[static_cast<std::size_t>(opts.rootTensor)];
    const Tensor memory = flat(root);
    if (call.context->size > 1 && memory.nbytes()) {
      gloo::BroadcastOptions o(call.context);
      o.setOutput(bytes_of(memory), memory.nbytes());
      o.setRoot(static_cast<int>(opts.rootRank));
      o.setTag(call.tag);
      o.setTimeout(call.timeout);
      gloo::broadcast(o);
    }
    if (call.context->rank != opts.rootRank) give_back(root, memory);
    for (const Tensor& t : tensors)
      if (!t.is_same(root)) t.copy_(root);
  });
}

intrusive_ptr<Work> GlooGroup::scatter(Tensors& outputs, std::vector<Tensors>& inputs, const ScatterOptions& opts) {
  const char* op = "scatter";
  check_root(op, opts.rootRank, size_);
  check_single(op, "output tensor list", outputs.size());
  check_one(op, outputs[0]);
  const bool is_root = opts.rootRank == rank_;
  if (is_root) {
    CRESSET_CHECK(inputs.size() == 1, "ProcessGroupGloo::scatter: requires a single-element input list containing a list with ", size_,
                  " tensors");
    CRESSET_CHECK(inputs[0].size() == static_cast<std::size_t>(size_), "ProcessGroupGloo::scatter: Incorrect input list size ",
                  inputs[0].size(), ". Input list size should be ", size_, ", same as size of the process group.");
    check_alike(op, inputs[0], outputs[0]);
  } else {
    CRESSET_CHECK(inputs.empty(), "ProcessGroupGloo::scatter: requires empty input on non-root");
  }
  const Tensors parts = is_root ? inputs[0] : Tensors();
  return start(OpType::SCATTER, opts, outputs, [parts, output = outputs[0], opts](const GlooCall& call) {
    const Tensor memory = output.is_contiguous() ? output : cresset::empty(output.sizes(), output.options());
    Tensors sent;
    std::vector<uint8_t*> pointers;
    for (const Tensor& t : parts) sent.push_back(flat(t));
    for (const Tensor& t : sent) pointers.push_back(bytes_of(t));
    if (call.context->size == 1) {
      memory.copy_(sent[0]);
    } else if (memory.nbytes()) {
      gloo::ScatterOptions o(call.context);
      if (!sent.empty()) o.setInputs(pointers, memory.nbytes());
      o.setOutput(bytes_of(memory), memory.nbytes());
      o.setRoot(static_cast<int>(opts.rootRank));
      o.setTag(call.tag);
      o.setTimeout(call.timeout);
      gloo::scatter(o);
    }
    give_back(output, memory);
  });
}

// --- reductions

intrusive_ptr<Work> GlooGroup::allreduce(Tensors& tensors, const AllreduceOptions& opts) {
  const char* op = "allreduce";
  check_some(op, tensors);
  check_alike(op, tensors, tensors[0]);
  const ReduceFunction f = reduce_function(opts.reduceOp, tensors[0].scalar_type());
  return start(OpType::ALLREDUCE, opts, tensors, [tensors, opts, f](const GlooCall& call) {
    const Tensor& first = tensors[0];
    const bool own = opts.reduceOp == ReduceOp::PREMUL_SUM || !first.is_contiguous();
    const Tensor memory = opts.reduceOp == ReduceOp::PREMUL_SUM ? premultiplied(first, opts.reduceOp).contiguous() : flat(first);
    for (std::size_t i = 1; i < tensors.size(); ++i) {
      const Tensor more = flat(tensors[i]);
      f(memory.data_ptr(), memory.data_ptr(), more.data_ptr(), static_cast<std::size_t>(memory.numel()));
    }
    allreduce_memory(call, memory, f);
    finish_average(memory, opts.reduceOp, call.context->size * static_cast<int>(tensors.size()));
    give_back(first, own ? memory : first);
    for (std::size_t i = 1; i < tensors.size(); ++i) tensors[i].copy_(first);
  });
}

intrusive_ptr<Work> GlooGroup::allreduce_coalesced(Tensors& tensors, const AllreduceCoalescedOptions& opts) {
  const char* op = "allreduce_coalesced";
  check_some(op, tensors);
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    CRESSET_CHECK(tensors[i].layout() == tensors[0].layout(), "ProcessGroupGloo::allreduce_coalesced: invalid tensor layout at index ", i);
    CRESSET_CHECK(tensors[i].scalar_type() == tensors[0].scalar_type(),
                  "ProcessGroupGloo::allreduce_coalesced: tensors must all have the same type");
    check_one(op, tensors[i]);
  }
  const ReduceFunction f = reduce_function(opts.reduceOp, tensors[0].scalar_type());
  return start(OpType::ALLREDUCE_COALESCED, opts, tensors, [tensors, opts, f](const GlooCall& call) {
    int64_t n = 0;
    for (const Tensor& t : tensors) n += t.numel();
    Tensor memory = cresset::empty({n}, tensors[0].options());
    pack(tensors, bytes_of(memory));
    if (opts.reduceOp == ReduceOp::PREMUL_SUM) memory = premultiplied(memory, opts.reduceOp);
    allreduce_memory(call, memory, f);
    finish_average(memory, opts.reduceOp, call.context->size);
    unpack(bytes_of(memory), tensors);
  });
}

intrusive_ptr<Work> GlooGroup::reduce(Tensors& tensors, const ReduceOptions& opts) {
  const char* op = "reduce";
  check_root(op, opts.rootRank, size_);
  CRESSET_CHECK(opts.rootTensor >= 0 && opts.rootTensor < static_cast<int64_t>(tensors.size()),
                "ProcessGroupGloo::reduce: invalid root tensor: ", opts.rootTensor);
  check_single(op, "tensor list", tensors.size());
  check_one(op, tensors[0]);
  const ReduceFunction f = reduce_function(opts.reduceOp, tensors[0].scalar_type());
  return start(OpType::REDUCE, opts, tensors, [t = tensors[0], opts, f](const GlooCall& call) {
    const Tensor memory = opts.reduceOp == ReduceOp::PREMUL_SUM ? premultiplied(t, opts.reduceOp).contiguous() : flat(t);
    const Tensor result = cresset::empty(t.sizes(), t.options());
    if (call.context->size == 1) {
      result.copy_(memory);
    } else if (t.numel()) {
      gloo::ReduceOptions o(call.context);
      set_memory(o, t.itemsize(), bytes_of(memory), bytes_of(result), static_cast<std::size_t>(t.numel()));
      o.setReduceFunction([f](void* out, const void* a, const void* b, std::size_t n) { f(out, a, b, n); });
      o.setRoot(static_cast<int>(opts.rootRank));
      o.setTag(call.tag);
      o.setTimeout(call.timeout);
      gloo::reduce(o);
    }
    if (call.context->rank != opts.rootRank) return;
    finish_average(result, opts.reduceOp, call.context->size);
    t.copy_(result);
  });
}

intrusive_ptr<Work> GlooGroup::reduce_scatter(Tensors& outputs, std::vector<Tensors>& inputs, const ReduceScatterOptions& opts) {
  const char* op = "reduce_scatter";
  check_single(op, "output tensor list", outputs.size());
  CRESSET_CHECK(inputs.size() == 1 && inputs[0].size() == static_cast<std::size_t>(size_),
                "ProcessGroupGloo::reduce_scatter: ", "requires a single-element input list containing a list with ", size_, " tensors");
  check_one(op, outputs[0]);
  for (std::size_t i = 0; i < inputs[0].size(); ++i) {
    const Tensor& t = inputs[0][i];
    check_one(op, t);
    CRESSET_CHECK(t.scalar_type() == outputs[0].scalar_type(), "ProcessGroupGloo::reduce_scatter: invalid tensor type at index ", i);
    CRESSET_CHECK(i != static_cast<std::size_t>(rank_) || t.numel() == outputs[0].numel(),
                  "ProcessGroupGloo::reduce_scatter: invalid tensor size at index ", i, " (expected ", outputs[0].sizes(), ", got ",
                  t.sizes(), ")");
  }
  reduce_function(opts.reduceOp, outputs[0].scalar_type());
  return start(OpType::REDUCE_SCATTER, opts, outputs, [parts = inputs[0], output = outputs[0], opts](const GlooCall& call) {
    reduce_scatter_memory(call, parts, output, opts.reduceOp);
  });
}

intrusive_ptr<Work> GlooGroup::_reduce_scatter_base(Tensor& output, Tensor& input, const ReduceScatterOptions& opts) {
  Tensors outputs{output}, inputs{input};
  return reduce_scatter_tensor_coalesced(outputs, inputs, opts);
}

intrusive_ptr<Work> GlooGroup::reduce_scatter_tensor_coalesced(Tensors& outputs, Tensors& inputs, const ReduceScatterOptions& opts) {
  CRESSET_CHECK(outputs.size() == inputs.size(), "reduce_scatter_tensor_coalesced: as many outputs as inputs were required; ",
                outputs.size(), " and ", inputs.size(), " were given.");
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    check_one("reduce_scatter", outputs[i]);
    check_one("reduce_scatter", inputs[i]);
    CRESSET_CHECK_TYPE(outputs[i].scalar_type() == inputs[i].scalar_type(), "input tensor must have the same type as the output tensor.");
    CRESSET_CHECK_VALUE(inputs[i].numel() == outputs[i].numel() * size_,
                        "input tensor must be the same size as output size times world size");
    reduce_function(opts.reduceOp, outputs[i].scalar_type());
  }
  return start(OpType::_REDUCE_SCATTER_BASE, opts, outputs, [outputs, inputs, opts](const GlooCall& call) {
    for (std::size_t i = 0; i < outputs.size(); ++i)
      if (outputs[i].numel()) reduce_scatter_memory(call, equal_parts(inputs[i], call.context->size), outputs[i], opts.reduceOp);
  });
}

// --- all to one, and to all

intrusive_ptr<Work> GlooGroup::gather(std::vector<Tensors>& outputs, Tensors& inputs, const GatherOptions& opts) {
  const char* op = "gather";
  check_root(op, opts.rootRank, size_);
  check_single(op, "input tensor list", inputs.size());
  check_one(op, inputs[0]);
  const bool is_root = opts.rootRank == rank_;
  if (is_root) {
    CRESSET_CHECK(outputs.size() == 1, "ProcessGroupGloo::gather: requires a single-element output list containing a list with ", size_,
                  " tensors.");
    CRESSET_CHECK(outputs[0].size() == static_cast<std::size_t>(size_), "ProcessGroupGloo::gather: Incorrect output list size ",
                  outputs[0].size(), ". Output list size should be ", size_, ", same as size of the process group.");
    check_alike(op, outputs[0], inputs[0]);
  } else {
    CRESSET_CHECK(outputs.empty(), "ProcessGroupGloo::gather: requires empty output on non-root");
  }
  const Tensors parts = is_root ? outputs[0] : Tensors();
  return start(OpType::GATHER, opts, parts, [parts, input = inputs[0], opts](const GlooCall& call) {
    const Tensor memory = flat(input);
    std::vector<uint8_t> all(parts.empty() ? 0 : total_bytes(parts));
    if (call.context->size == 1) {
      parts[0].copy_(memory);
      return;
    }
    if (!memory.nbytes()) return;
    gloo::GatherOptions o(call.context);
    o.setInput(bytes_of(memory), memory.nbytes());
    if (!parts.empty()) o.setOutput(all.data(), all.size());
    o.setRoot(static_cast<int>(opts.rootRank));
    o.setTag(call.tag);
    o.setTimeout(call.timeout);
    gloo::gather(o);
    unpack(all.data(), parts);
  });
}

intrusive_ptr<Work> GlooGroup::allgather(std::vector<Tensors>& outputs, Tensors& inputs, const AllgatherOptions& opts) {
  const char* op = "allgather";
  CRESSET_CHECK(!inputs.empty(), "ProcessGroupGloo::allgather: requires non-empty input tensor list");
  CRESSET_CHECK(inputs.size() == outputs.size(), "ProcessGroupGloo::allgather: requires input/output tensor lists to have the same length");
  for (std::size_t i = 0; i < outputs.size(); ++i)
    CRESSET_CHECK(outputs[i].size() == inputs.size() * static_cast<std::size_t>(size_),
                  "ProcessGroupGloo::allgather: invalid output tensor list at index ", i, " (expected length ",
                  inputs.size() * static_cast<std::size_t>(size_), ", got ", outputs[i].size(), ")");
  check_alike(op, inputs, inputs[0]);
  for (const Tensors& list : outputs) check_alike(op, list, inputs[0]);
  return start(OpType::ALLGATHER, opts, lists_of(outputs), [outputs, inputs](const GlooCall& call) {
    const std::size_t bytes = total_bytes(inputs);
    std::vector<uint8_t> sent(bytes), all(bytes * static_cast<std::size_t>(call.context->size));
    pack(inputs, sent.data());
    allgather_memory(call, sent.data(), bytes, all.data());
    for (const Tensors& list : outputs) unpack(all.data(), list);
  });
}

intrusive_ptr<Work> GlooGroup::_allgather_base(Tensor& output, Tensor& input, const AllgatherOptions& opts) {
  Tensors outputs{output}, inputs{input};
  return allgather_into_tensor_coalesced(outputs, inputs, opts);
}

intrusive_ptr<Work> GlooGroup::allgather_into_tensor_coalesced(Tensors& outputs, Tensors& inputs, const AllgatherOptions& opts) {
  CRESSET_CHECK(outputs.size() == inputs.size(), "allgather_into_tensor_coalesced: as many outputs as inputs were required; ",
                outputs.size(), " and ", inputs.size(), " were given.");
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    check_one("allgather", outputs[i]);
    check_one("allgather", inputs[i]);
    CRESSET_CHECK_TYPE(outputs[i].scalar_type() == inputs[i].scalar_type(), "output tensor must have the same type as input tensor");
    CRESSET_CHECK_VALUE(outputs[i].numel() == inputs[i].numel() * size_,
                        "output tensor size must be equal to world_size times input tensor size");
  }
  return start(OpType::_ALLGATHER_BASE, opts, outputs, [outputs, inputs](const GlooCall& call) {
    for (std::size_t i = 0; i < outputs.size(); ++i) {
      const Tensor in = flat(inputs[i]);
      const Tensor out = outputs[i].is_contiguous() ? outputs[i] : cresset::empty(outputs[i].sizes(), outputs[i].options());
      allgather_memory(call, bytes_of(in), in.nbytes(), bytes_of(out));
      give_back(outputs[i], out);
    }
  });
}

intrusive_ptr<Work> GlooGroup::allgather_coalesced(std::vector<Tensors>& outputs, Tensors& inputs, const AllgatherOptions& opts) {
  CRESSET_CHECK(!inputs.empty(), "ProcessGroupGloo::allgather_coalesced: requires non-empty input tensor list");
  CRESSET_CHECK(outputs.size() == static_cast<std::size_t>(size_),
                "ProcessGroupGloo::allgather_coalesced: output lists should be equal to world size");
  for (const Tensors& list : outputs) {
    CRESSET_CHECK(list.size() == inputs.size(), "ProcessGroupGloo::allgather_coalesced: invalid output size: (expected length ",
                  inputs.size(), ", got ", list.size(), ")");
    for (std::size_t i = 0; i < list.size(); ++i) {
      CRESSET_CHECK(list[i].sizes() == inputs[i].sizes(), "ProcessGroupGloo::allgather_coalesced: invalid size of output tensor at index ",
                    i, " (expected length ", inputs[i].sizes(), ", got ", list[i].sizes(), ")");
      check_type("allgather_coalesced", list[i], inputs[i], i);
    }
  }
  return start(OpType::ALLGATHER_COALESCED, opts, lists_of(outputs), [outputs, inputs](const GlooCall& call) {
    const std::size_t bytes = total_bytes(inputs);
    std::vector<uint8_t> sent(bytes), all(bytes * static_cast<std::size_t>(call.context->size));
    pack(inputs, sent.data());
    allgather_memory(call, sent.data(), bytes, all.data());
    const uint8_t* at = all.data();
    for (const Tensors& list : outputs) at = unpack(at, list);
  });
}

intrusive_ptr<Work> GlooGroup::alltoall_base(Tensor& output, Tensor& input, std::vector<int64_t>& output_split,
                                             std::vector<int64_t>& input_split, const AllToAllOptions& opts) {
  check_one("alltoall_base", output);
  check_one("alltoall_base", input);
  CRESSET_CHECK_TYPE(output.scalar_type() == input.scalar_type(), "alltoall_base: tensors of one dtype were required; ",
                     toString(output.scalar_type()), " and ", toString(input.scalar_type()), " were given.");
  auto in_rows = checked_splits(input_split, input, size_, "input"), out_rows = checked_splits(output_split, output, size_, "output");
  const auto to_bytes = [](std::vector<int64_t>& rows, const Tensor& t) {
    const int64_t n = t.dim() ? t.size(0) : 1;
    for (int64_t& r : rows) r = n ? r * static_cast<int64_t>(t.nbytes()) / n : 0;
  };
  to_bytes(in_rows, input);
  to_bytes(out_rows, output);
  return start(OpType::ALLTOALL_BASE, opts, Tensors{output}, [output, input, in_rows, out_rows](const GlooCall& call) {
    const Tensor in = flat(input);
    const Tensor out = output.is_contiguous() ? output : cresset::empty(output.sizes(), output.options());
    exchange(call, bytes_of(in), in_rows, bytes_of(out), out_rows);
    give_back(output, out);
  });
}

intrusive_ptr<Work> GlooGroup::alltoall(Tensors& outputs, Tensors& inputs, const AllToAllOptions& opts) {
  for (const Tensors* list : {&outputs, &inputs}) {
    CRESSET_CHECK(list->size() == static_cast<std::size_t>(size_), "ProcessGroupGloo::alltoall: a list of ", size_,
                  " tensors was required; ", list->size(), " were given.");
    for (const Tensor& t : *list) check_one("alltoall", t);
  }
  return start(OpType::ALLTOALL, opts, outputs, [outputs, inputs](const GlooCall& call) {
    std::vector<uint8_t> sent(total_bytes(inputs)), received(total_bytes(outputs));
    std::vector<int64_t> in_bytes, out_bytes;
    for (const Tensor& t : inputs) in_bytes.push_back(static_cast<int64_t>(t.nbytes()));
    for (const Tensor& t : outputs) out_bytes.push_back(static_cast<int64_t>(t.nbytes()));
    pack(inputs, sent.data());
    exchange(call, sent.data(), in_bytes, received.data(), out_bytes);
    unpack(received.data(), outputs);
  });
}

}  // namespace cresset::distributed
