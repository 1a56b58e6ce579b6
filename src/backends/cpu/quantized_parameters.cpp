// The weights that quantized operators take: torch.classes.quantized.LinearPackedParamsBase and the like.
//
// An object holds the tensors and whole numbers that it was made of; the operators, which are in Python beside the quantized tensors
// themselves (python/cresset/_quantized), know their order.
#include <cresset/dispatch/custom_class.h>

namespace cresset {
namespace {

template <int>
struct Packed final : CustomClassHolder {
  using Tensors = List<std::optional<Tensor>>;
  Packed(Tensors tensors, std::vector<int64_t> numbers) : tensors(std::move(tensors)), numbers(std::move(numbers)) {}
  Tensors tensors;
  std::vector<int64_t> numbers;
};

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
      .def_pickle([](const intrusive_ptr<P>& p) { return std::tuple<typename P::Tensors, std::vector<int64_t>>(p->tensors, p->numbers); },
                  [](std::tuple<typename P::Tensors, std::vector<int64_t>> state) {
                    return make_intrusive<P>(std::get<0>(state), std::get<1>(state));
                  });
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
