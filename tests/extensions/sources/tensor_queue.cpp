// A class whose objects change: what Python has a fake of.

#include <torch/extension.h>
#include <torch/script.h>

#include <deque>
#include <string>
#include <tuple>
#include <vector>

namespace {

struct Queue : torch::CustomClassHolder {
  explicit Queue(std::vector<at::Tensor> held) : items(held.begin(), held.end()) {}
  void push(at::Tensor x) { items.push_back(std::move(x)); }
  at::Tensor pop() {
    TORCH_CHECK(!items.empty(), "pop: the queue is empty");
    at::Tensor first = items.front();
    items.pop_front();
    return first;
  }
  int64_t size() const { return static_cast<int64_t>(items.size()); }
  std::tuple<std::tuple<std::string, std::vector<at::Tensor>>> flattened() const {
    return {{"queue", std::vector<at::Tensor>(items.begin(), items.end())}};
  }
  std::deque<at::Tensor> items;
};

struct Bare : torch::CustomClassHolder {};

using Object = c10::intrusive_ptr<Queue>;

at::Tensor pop(const Object& queue) { return queue->pop(); }
void push(const Object& queue, at::Tensor x) { queue->push(std::move(x)); }

}  // namespace

TORCH_LIBRARY(fakes, m) {
  m.class_<Queue>("Queue")
      .def(torch::init<std::vector<at::Tensor>>())
      .def("push", &Queue::push)
      .def("pop", &Queue::pop)
      .def("size", &Queue::size)
      .def("turned",
           [](const Object& self) { return c10::make_intrusive<Queue>(std::vector<at::Tensor>(self->items.rbegin(), self->items.rend())); })
      .def("__obj_flatten__", &Queue::flattened);
  m.class_<Bare>("Bare").def(torch::init<>());
  m.def("pop(__torch__.torch.classes.fakes.Queue queue) -> Tensor");
  m.def("push(__torch__.torch.classes.fakes.Queue queue, Tensor x) -> ()");
}
TORCH_LIBRARY_IMPL(fakes, CompositeExplicitAutograd, m) {
  m.impl("pop", &pop);
  m.impl("push", &push);
}
