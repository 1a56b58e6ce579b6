// Graphs built by hand: order, sums of gradients, hooks, deep graphs, errors. No operator beyond creation and add.
#include <cresset/autograd/saved_values.h>

#include "autograd/support.h"

namespace cresset::autograd::test {
namespace {

/// Multiplies by a factor and writes its tag into a log.
struct Scale : Node {
  Scale(std::vector<std::string>* log, std::string tag, double by, edge_list&& edges)
      : Node(std::move(edges)), log_(log), tag_(std::move(tag)), by_(by) {}
  std::string name() const override { return tag_; }

 protected:
  variable_list apply(variable_list&& grads) override {
    if (log_) log_->push_back(tag_);
    variable_list out(num_outputs());
    for (Tensor& t : out)
      if (grads[0].defined()) t = vec({grads[0].data_ptr<double>()[0] * by_});
    return out;
  }

 private:
  std::vector<std::string>* log_;
  std::string tag_;
  double by_;
};

std::shared_ptr<Node> scale(std::vector<std::string>* log, const std::string& tag, double by, edge_list&& edges) {
  auto n = make_node<Scale>(log, tag, by, std::move(edges));
  n->add_input_metadata(vec({0}));
  return n;
}

void run(const std::shared_ptr<Node>& root, double seed = 1, bool keep = false) {
  Engine::get_default_engine().execute({Edge(root, 0)}, {vec({seed})}, {.keep_graph = keep});
}

TEST(Node, GradientsOfADiamondAreSummed) {
  const Tensor x = leaf({1});
  auto a = scale(nullptr, "a", 2, {impl::gradient_edge(x)});
  auto b = scale(nullptr, "b", 3, {Edge(a, 0)});
  auto c = scale(nullptr, "c", 5, {Edge(a, 0)});
  auto d = scale(nullptr, "d", 7, {Edge(b, 0), Edge(c, 0)});
  run(d);
  expect_values(x.grad(), {7 * (3 + 5) * 2});
}

TEST(Node, LaterNodesRunFirst) {
  std::vector<std::string> log;
  const Tensor x = leaf({1});
  auto a = scale(&log, "a", 1, {impl::gradient_edge(x)});
  auto b = scale(&log, "b", 1, {impl::gradient_edge(x)});
  auto c = scale(&log, "c", 1, {impl::gradient_edge(x)});
  auto root = scale(&log, "root", 1, {Edge(a, 0), Edge(c, 0), Edge(b, 0)});
  run(root);
  EXPECT_EQ(log, (std::vector<std::string>{"root", "c", "b", "a"}));
}

TEST(Node, TopologicalNumberIsTheLongestPath) {
  auto a = scale(nullptr, "a", 1, {});
  auto b = scale(nullptr, "b", 1, {Edge(a, 0)});
  auto c = scale(nullptr, "c", 1, {Edge(a, 0), Edge(b, 0)});
  EXPECT_EQ(a->topological_nr(), 0u);
  EXPECT_EQ(c->topological_nr(), 2u);
  EXPECT_LT(a->sequence_nr(), b->sequence_nr());
}

TEST(Node, MillionNodesRunAndAreFreedWithoutRecursion) {
  const Tensor x = leaf({1});
  std::shared_ptr<Node> last = scale(nullptr, "first", 1, {impl::gradient_edge(x)});
  std::weak_ptr<Node> first = last;
  for (int i = 0; i < 1'000'000; ++i) last = scale(nullptr, "n", 1, {Edge(std::move(last), 0)});
  run(last);
  expect_values(x.grad(), {1});
  last.reset();
  EXPECT_TRUE(first.expired());
}

TEST(Node, ManyPathsAreVisitedOnce) {
  // 60 diamonds in a row have 2^60 paths.
  std::vector<std::string> log;
  const Tensor x = leaf({1});
  std::shared_ptr<Node> last = scale(&log, "n", 1, {impl::gradient_edge(x)});
  for (int i = 0; i < 60; ++i) last = scale(&log, "n", 0.5, {Edge(last, 0), Edge(last, 0)});
  run(last);
  EXPECT_EQ(log.size(), 61u);
  expect_values(x.grad(), {1});
}

TEST(Node, WrongNumberOfGradientsRaises) {
  struct Bad : Node {
    using Node::Node;
    std::string name() const override { return "Bad"; }

   protected:
    variable_list apply(variable_list&&) override { return {vec({1})}; }
  };
  const Tensor x = leaf({1}), y = leaf({1});
  auto bad = make_node<Bad>(edge_list{impl::gradient_edge(x), impl::gradient_edge(y)});
  bad->add_input_metadata(vec({0}));
  expect_error([&] { run(bad); }, "Function Bad returned an invalid number of gradients - expected 2, but got 1");
  EXPECT_FALSE(x.grad().defined());
}

TEST(Node, ErrorsKeepTheirTypeAndTheGraphCanRunAgain) {
  struct Own : std::exception {};
  struct Throws : Node {
    Throws(bool* armed, edge_list&& e) : Node(std::move(e)), armed_(armed) {}
    std::string name() const override { return "Throws"; }

   protected:
    variable_list apply(variable_list&& g) override {
      if (*armed_) throw Own();
      return std::move(g);
    }

   private:
    bool* armed_;
  };
  bool armed = true;
  const Tensor x = leaf({1});
  auto t = make_node<Throws>(&armed, edge_list{impl::gradient_edge(x)});
  t->add_input_metadata(vec({0}));
  EXPECT_THROW(run(t, 1, true), Own);
  EXPECT_FALSE(x.grad().defined());
  armed = false;
  run(t, 1, true);
  expect_values(x.grad(), {1});
}

struct LogPre : FunctionPreHook {
  LogPre(std::vector<std::string>* l, std::string t) : log(l), tag(std::move(t)) {}
  variable_list operator()(const variable_list& grads) override {
    log->push_back(tag);
    return grads;
  }
  std::vector<std::string>* log;
  std::string tag;
};
struct LogPost : FunctionPostHook {
  explicit LogPost(std::vector<std::string>* l) : log(l) {}
  variable_list operator()(const variable_list& outputs, const variable_list& inputs) override {
    log->push_back("post " + std::to_string(values_of(inputs[0])[0]).substr(0, 1) + " -> " +
                   std::to_string(values_of(outputs[0])[0]).substr(0, 1));
    return {vec({100})};
  }
  std::vector<std::string>* log;
};

TEST(Node, HooksRunInOrder) {
  std::vector<std::string> log;
  const Tensor x = leaf({1});
  auto n = scale(&log, "node", 2, {impl::gradient_edge(x)});
  n->add_post_hook(std::make_shared<LogPost>(&log));
  n->add_pre_hook(std::make_shared<LogPre>(&log, "pre"));
  n->add_retains_grad_hook(0, std::make_shared<LogPre>(&log, "retain"));
  n->add_tensor_pre_hook(0, std::make_shared<LogPre>(&log, "tensor"));
  run(n, 3);
  EXPECT_EQ(log, (std::vector<std::string>{"tensor", "retain", "pre", "node", "post 3 -> 6"}));
  expect_values(x.grad(), {100});
}

TEST(Node, EdgeListsHoldMoreThanTheirInlineRoom) {
  std::vector<Tensor> leaves;
  edge_list edges;
  for (int i = 0; i < 9; ++i) {
    leaves.push_back(leaf({1}));
    edges.push_back(impl::gradient_edge(leaves.back()));
  }
  run(scale(nullptr, "n", 4, std::move(edges)));
  for (const Tensor& t : leaves) expect_values(t.grad(), {4});
}

TEST(Node, AccumulatorIsSharedAndGoesWithItsUsers) {
  const Tensor x = leaf({1});
  EXPECT_EQ(impl::try_get_grad_accumulator(x), nullptr);
  auto a = impl::grad_accumulator(x);
  EXPECT_EQ(impl::grad_accumulator(x), a);
  EXPECT_EQ(a->name(), "torch::autograd::AccumulateGrad");
  std::weak_ptr<Node> weak = a;
  a.reset();
  EXPECT_TRUE(weak.expired());
}

TEST(Node, CallbacksRunAtTheEnd) {
  std::vector<std::string> log;
  struct Queues : Node {
    Queues(std::vector<std::string>* l, edge_list&& e) : Node(std::move(e)), log(l) {}

    std::vector<std::string>* log;

   protected:
    variable_list apply(variable_list&& g) override {
      log->push_back("node");
      Engine::get_default_engine().queue_callback([l = log] {
        l->push_back("first");
        Engine::get_default_engine().queue_callback([l] { l->push_back("second"); });
      });
      return std::move(g);
    }
  };
  const Tensor x = leaf({1});
  auto n = make_node<Queues>(&log, edge_list{impl::gradient_edge(x)});
  n->add_input_metadata(vec({0}));
  run(n);
  EXPECT_EQ(log, (std::vector<std::string>{"node", "first", "second"}));
  expect_error([] { Engine::get_default_engine().queue_callback([] {}); }, "Final callbacks can only be installed during backward pass.");
}

/// Lists what a node saves.
struct SavedNames final : SavedValueVisitor {
  void tensor(const char* name, SavedVariable& saved) override { found[name] = saved.was_undefined() ? IValue() : IValue("tensor"); }
  void tensors(const char* name, std::vector<SavedVariable>&, bool) override { found[name] = "tensors"; }
  void value(const char* name, IValue v) override { found[name] = std::move(v); }

  std::map<std::string, IValue> found;
};

TEST(Node, ShowsWhatItSaves) {
  const Tensor y = cresset::sum(leaf_of({2, 3}), {1}, true);
  SavedNames names;
  y.grad_fn()->visit_saved(names);
  EXPECT_EQ(names.found.at("dim").toIntVector(), (std::vector<int64_t>{1}));
  EXPECT_TRUE(names.found.at("keepdim").toBool());
  EXPECT_EQ(names.found.at("self_sym_sizes").toIntVector(), (std::vector<int64_t>{2, 3}));
}

TEST(Node, BackwardFromAndToEdges) {
  const Tensor x = leaf({1});
  auto a = scale(nullptr, "a", 2, {impl::gradient_edge(x)});
  auto b = scale(nullptr, "b", 3, {Edge(a, 0)});
  const variable_list at_a = run_backward(edge_list{Edge(b, 0)}, {vec({1})}, true, false, edge_list{Edge(a, 0)}, false, false);
  expect_values(at_a[0], {3});
  EXPECT_FALSE(x.grad().defined());
  run_backward(edge_list{Edge(b, 0)}, {vec({1})}, false, false, edge_list{impl::gradient_edge(x)}, true, true);
  expect_values(x.grad(), {6});
}

}  // namespace
}  // namespace cresset::autograd::test
