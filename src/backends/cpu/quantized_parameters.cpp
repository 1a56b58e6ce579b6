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
// dimension; groups; transposed. (In the object they are: dims, transposed, groups, the others.)
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
template <int N>
  requires(N == 1 || N == 2)
intrusive_ptr<Packed<N>> made_of(std::type_identity<Packed<N>>, const ConvolutionState& state) {
  const auto& [version, tensors, optional] = state;
  CRESSET_CHECK(version == "2", "packed weights of a convolution: the version \"2\" of their form was required; got \"", version, "\".");
  CRESSET_CHECK(tensors.size() == 2 && optional.size() == 1 && tensors[0].defined() && tensors[0].scalar_type() == kShort &&
                    tensors[0].dim() == 1 && tensors[0].numel() == 4 * (N + 1) + 3,
                "packed weights of a convolution: ", 4 * (N + 1) + 3, " numbers of type int16, a weight and a bias were required.");
  const Tensor numbers = tensors[0].contiguous();
  const auto* first = numbers.const_data_ptr<int16_t>();
  std::vector<int64_t> order(first, first + numbers.numel());
  CRESSET_CHECK(order[0] == N + 1, "packed weights of a convolution over ", N + 1, " dimensions were required; got ", order[0], ".");
  std::swap(order[order.size() - 2], order[order.size() - 1]);
  std::rotate(order.begin() + 1, order.end() - 2, order.end());
  return make_intrusive<Packed<N>>(typename Packed<N>::Tensors({tensors[1], optional.get(0)}), std::move(order));
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

using CellState = std::tuple<Packed<4>::Tensors, std::vector<int64_t>>;
CellState state_of(const Packed<4>& p) { return {p.tensors, p.numbers}; }
intrusive_ptr<Packed<4>> made_of(std::type_identity<Packed<4>>, const CellState& state) {
  return make_intrusive<Packed<4>>(std::get<0>(state), std::get<1>(state));
}

template <int N>
void register_packed(Library& m, const char* name, const std::string& doc) {
  using P = Packed<N>;
  m.class_<P>(name, doc)
      .def(init<typename P::Tensors, std::vector<int64_t>>())
      .def("tensors", [](const intrusive_ptr<P>& p) { return p->tensors; })
      .def("numbers", [](const intrusive_ptr<P>& p) { return p->numbers; })
      .def("unpack",
           [](const intrusive_ptr<P>& p) {
             return std::tuple<std::optional<Tensor>, std::optional<Tensor>>(p->tensors.get(0), p->tensors.get(1));
           })
      .def_pickle([](const intrusive_ptr<P>& p) { return state_of(*p); },
                  [](decltype(state_of(std::declval<const P&>())) state) { return made_of(std::type_identity<P>(), state); });
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
