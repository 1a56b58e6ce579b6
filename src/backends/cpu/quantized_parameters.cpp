// The weights that quantized operators take: torch.classes.quantized.LinearPackedParamsBase and the like.
//
// An object holds the tensors and whole numbers that it was made of; the operators, which are in Python beside the quantized tensors
// themselves (python/cresset/_quantized), know their order.
#include <algorithm>
#include <type_traits>

#include <cresset/dispatch/custom_class.h>
#include <cresset/ops/functions_creation.h>

namespace cresset {
namespace {

template <int>
struct Packed final : CustomClassHolder {
  using Tensors = List<std::optional<Tensor>>;
  Packed(Tensors tensors, std::vector<int64_t> numbers) : tensors(std::move(tensors)), numbers(std::move(numbers)) {}
  Tensors tensors;
  std::vector<int64_t> numbers;
};

// What pickles and archives hold of each class, as PyTorch's: files cross.
//
// Of a linear operator the weight and the bias. A weight that is not quantized was rounded to float16, which the number 1 says.
std::tuple<Tensor, std::optional<Tensor>> state_of(const Packed<0>& p) { return {p.tensors.get(0).value(), p.tensors.get(1)}; }
intrusive_ptr<Packed<0>> made_of(std::type_identity<Packed<0>>, const std::tuple<Tensor, std::optional<Tensor>>& state) {
  const auto& [weight, bias] = state;
  return make_intrusive<Packed<0>>(Packed<0>::Tensors({weight, bias}),
                                   weight.has_storage() ? std::vector<int64_t>{1} : std::vector<int64_t>());
}

// Of a convolution ("2", [numbers, weight], [bias]); the numbers are int16: dims; stride, padding, dilation and output padding of each
// dimension; groups; transposed. (In the object they are: dims, transposed, groups, the others.) Two other forms are read:
//   (weight, bias or None, stride, padding, dilation, groups): tensors of one number, the first three in lists
//   (3, [numbers], [None, weight, bias or None])
using ConvolutionState = std::tuple<std::string, std::vector<Tensor>, List<std::optional<Tensor>>>;
template <int N>
  requires(N == 1 || N == 2)
ConvolutionState state_of(const Packed<N>& p) {
  std::vector<int64_t> order(p.numbers);
  std::rotate(order.begin() + 1, order.begin() + 3, order.end());
  std::swap(order[order.size() - 2], order[order.size() - 1]);
  const Tensor numbers = empty({static_cast<int64_t>(order.size())}, TensorOptions().dtype(kShort));
  std::transform(order.begin(), order.end(), numbers.data_ptr<int16_t>(), [](int64_t n) { return static_cast<int16_t>(n); });
  return {"2", {numbers, p.tensors.get(0).value()}, typename Packed<N>::Tensors({p.tensors.get(1)})};
}
// What one of the forms says: the numbers in their order there.
struct SavedConvolution {
  std::vector<int64_t> numbers;
  std::optional<Tensor> weight, bias;
};
std::optional<Tensor> tensor_or_none(const IValue& v) { return v.isNone() ? std::nullopt : std::optional(v.toTensor()); }
SavedConvolution saved_convolution(const std::vector<IValue>& parts, int64_t dims) {
  SavedConvolution out;
  if (parts.size() == 3 && parts[0].isString()) {
    CRESSET_CHECK(parts[0].toStringRef() == "2", "packed weights of a convolution: the version \"2\" of their form was required; got \"",
                  parts[0].toStringRef(), "\".");
    const auto tensors = parts[1].to<std::vector<Tensor>>();
    const std::vector<IValue>& optional = parts[2].toListRef();
    CRESSET_CHECK(
        tensors.size() == 2 && optional.size() == 1 && tensors[0].defined() && tensors[0].scalar_type() == kShort && tensors[0].dim() == 1,
        "packed weights of a convolution: ", 4 * dims + 3, " numbers of type int16, a weight and a bias were required.");
    const Tensor numbers = tensors[0].contiguous();
    const auto* first = numbers.const_data_ptr<int16_t>();
    out = {std::vector<int64_t>(first, first + numbers.numel()), tensors[1], tensor_or_none(optional[0])};
  } else if (parts.size() == 3 && parts[0].isInt()) {
    const std::vector<IValue>& optional = parts[2].toListRef();
    CRESSET_CHECK(parts[0].toInt() == 3 && optional.size() == 3,
                  "packed weights of a convolution: a weight and a bias in version 3 of their form were required; got version ",
                  parts[0].toInt(), ".");
    out = {parts[1].to<std::vector<int64_t>>(), tensor_or_none(optional[1]), tensor_or_none(optional[2])};
  } else {
    CRESSET_CHECK(parts.size() == 6, "packed weights of a convolution: 3 or 6 parts were required; got ", parts.size(), ".");
    out = {{dims}, tensor_or_none(parts[0]), tensor_or_none(parts[1])};
    const auto add = [&](const IValue& given) {
      for (const Tensor& t : given.isTensor() ? std::vector<Tensor>{given.toTensor()} : given.to<std::vector<Tensor>>())
        out.numbers.push_back(t.item<int64_t>());
    };
    for (std::size_t i = 2; i < 5; ++i) add(parts[i]);
    out.numbers.insert(out.numbers.end(), static_cast<std::size_t>(dims), 0);  // no output padding
    add(parts[5]);
    out.numbers.push_back(0);  // not transposed
  }
  CRESSET_CHECK(out.weight && std::ssize(out.numbers) == 4 * dims + 3, "packed weights of a convolution: a weight and ", 4 * dims + 3,
                " numbers were required; got ", out.numbers.size(), ".");
  CRESSET_CHECK(out.numbers[0] == dims, "packed weights of a convolution over ", dims, " dimensions were required; got ", out.numbers[0],
                ".");
  return out;
}
template <int N>
  requires(N == 1 || N == 2)
intrusive_ptr<Packed<N>> made_of(std::type_identity<Packed<N>>, const IValue& state) {
  CRESSET_CHECK_TYPE(state.isTuple(), "packed weights of a convolution: a tuple was required; got ", state.type()->annotation_str(), ".");
  SavedConvolution saved = saved_convolution(state.toTupleElements(), N + 1);
  std::vector<int64_t>& order = saved.numbers;
  std::swap(order[order.size() - 2], order[order.size() - 1]);
  std::rotate(order.begin() + 1, order.end() - 2, order.end());
  return make_intrusive<Packed<N>>(typename Packed<N>::Tensors({*saved.weight, saved.bias}), std::move(order));
}

// Of an embedding (1, [rows], [], [bits of an element]).
using EmbeddingState = std::tuple<int64_t, std::vector<Tensor>, std::vector<double>, std::vector<int64_t>>;
EmbeddingState state_of(const Packed<3>& p) { return {1, {p.tensors.get(0).value()}, {}, p.numbers}; }
intrusive_ptr<Packed<3>> made_of(std::type_identity<Packed<3>>, const EmbeddingState& state) {
  const auto& [version, tensors, doubles, numbers] = state;
  CRESSET_CHECK(version == 1 && tensors.size() == 1 && numbers.size() == 1,
                "packed rows of an embedding: one tensor and one number of version 1 of their form were required; got ", tensors.size(),
                " and ", numbers.size(), " of version ", version, ".");
  return make_intrusive<Packed<3>>(Packed<3>::Tensors({tensors[0], std::nullopt}), numbers);
}

// Of a recurrent cell (kind, [bias for the input, bias for the state], [], [reduce_range], [weights for the input, for the state]), or
// without biases and numbers where the weights were rounded to float16. (In the object: the weights with their biases; float16?,
// reduce_range.)
using CellState =
    std::tuple<std::string, std::vector<Tensor>, std::vector<double>, std::vector<int64_t>, std::vector<intrusive_ptr<Packed<0>>>>;
constexpr const char *kDynamicCell = "quantized_dynamic", *kHalfCell = "quantized_fp16";
CellState state_of(const Packed<4>& p) {
  const bool half = p.numbers.at(0) != 0;
  std::vector<intrusive_ptr<Packed<0>>> weights;
  std::vector<Tensor> biases;
  for (std::size_t i = 0; i < 4; i += 2) {
    weights.push_back(made_of(std::type_identity<Packed<0>>(), {p.tensors.get(i).value(), p.tensors.get(i + 1)}));
    if (const auto bias = p.tensors.get(i + 1); bias && !half) biases.push_back(*bias);
  }
  return {half ? kHalfCell : kDynamicCell,
          std::move(biases),
          {},
          half ? std::vector<int64_t>() : std::vector<int64_t>{p.numbers.at(1)},
          std::move(weights)};
}
intrusive_ptr<Packed<4>> made_of(std::type_identity<Packed<4>>, const CellState& state) {
  const auto& [kind, biases, doubles, numbers, weights] = state;
  const bool half = kind == kHalfCell;
  CRESSET_CHECK(half || kind == kDynamicCell, "weights of a quantized cell: \"", kDynamicCell, "\" or \"", kHalfCell,
                "\" was required; got \"", kind, "\".");
  CRESSET_CHECK(weights.size() == 2 && weights[0] && weights[1], "weights of a quantized cell: two packed weights were required; got ",
                weights.size(), ".");
  Packed<4>::Tensors tensors;
  for (std::size_t i = 0; i < 2; ++i) {
    tensors.push_back(weights[i]->tensors.get(0));
    tensors.push_back(weights[i]->tensors.get(1));
  }
  // Releases before reduce_range had no number.
  return make_intrusive<Packed<4>>(std::move(tensors), std::vector<int64_t>{half ? 1 : 0, numbers.empty() ? 0 : numbers[0]});
}

// What def_pickle's second function takes.
template <int N>
using StateOf = std::conditional_t<N == 1 || N == 2, IValue, decltype(state_of(std::declval<const Packed<N>&>()))>;

// Of a convolution: which of the groups of numbers behind the first three, one number a dimension.
enum Geometry : std::ptrdiff_t { kStride, kPadding, kDilation, kOutputPadding };
template <int N, Geometry which>
std::vector<int64_t> geometry(const intrusive_ptr<Packed<N>>& p) {
  const auto first = p->numbers.begin() + 3 + which * (N + 1);
  return {first, first + N + 1};
}

template <int N>
void register_packed(Library& m, const char* name, const std::string& doc) {
  using P = Packed<N>;
  auto made = m.class_<P>(name, doc);
  if constexpr (N < 3) made.def("bias", [](const intrusive_ptr<P>& p) { return p->tensors.get(1); });
  if constexpr (N == 1 || N == 2) {
    made.def("weight", [](const intrusive_ptr<P>& p) { return p->tensors.get(0).value(); })
        .def("stride", &geometry<N, kStride>)
        .def("padding", &geometry<N, kPadding>)
        .def("dilation", &geometry<N, kDilation>)
        .def("output_padding", &geometry<N, kOutputPadding>)
        .def("groups", [](const intrusive_ptr<P>& p) { return p->numbers.at(2); })
        .def("transpose", [](const intrusive_ptr<P>& p) { return p->numbers.at(1) != 0; });
  }
  made.def(init<typename P::Tensors, std::vector<int64_t>>())
      .def("tensors", [](const intrusive_ptr<P>& p) { return p->tensors; })
      .def("numbers", [](const intrusive_ptr<P>& p) { return p->numbers; })
      .def(
          "unpack",
          [](const intrusive_ptr<P>& p) { return std::tuple<Tensor, std::optional<Tensor>>(p->tensors.get(0).value(), p->tensors.get(1)); })
      .def_pickle([](const intrusive_ptr<P>& p) { return state_of(*p); },
                  [](StateOf<N> state) { return made_of(std::type_identity<P>(), state); });
}

CRESSET_LIBRARY_FRAGMENT(quantized, m) {
  register_packed<0>(m, "LinearPackedParamsBase", "The weight and bias of a quantized linear operator.");
  register_packed<1>(m, "Conv2dPackedParamsBase", "The weight, bias and geometry of a quantized convolution over one or two dimensions.");
  register_packed<2>(m, "Conv3dPackedParamsBase", "The weight, bias and geometry of a quantized convolution over three dimensions.");
  register_packed<3>(m, "EmbeddingPackedParamsBase", "The rows of a quantized embedding.");
}

CRESSET_LIBRARY_FRAGMENT(rnn, m) {
  register_packed<4>(m, "CellParamsBase", "The weights of one direction of one layer of a quantized recurrent module.");
}

}  // namespace
}  // namespace cresset
