// Script modules made in C++ without Python.
#include <cresset/ir/module.h>
#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include <cresset/cresset.h>

using namespace cresset;
using jit::Module;

namespace {
Module scale() {
  Module m("__torch__.Scale");
  m.register_parameter("weight", tensor({2.0, 3.0}));
  m.register_buffer("calls", zeros({}));
  m.register_attribute("bias", basic_type(TypeKind::Float), IValue(0.5));
  m.define(R"(
    def helper(self, x, times: int = 1):
        return x * self.weight * times

    def forward(self, x):
        self.calls.add_(1)
        return self.helper(x) + self.bias
  )");
  return m;
}
}  // namespace

TEST(Module, MethodsFromSourceText) {
  const Module m = scale();
  EXPECT_TRUE(m.forward({IValue(ones({2}))}).toTensor().equal(tensor({2.5, 3.5})));
  EXPECT_EQ(m.attr("calls").toTensor().item().toLong(), 1);
  EXPECT_TRUE(m.get_method("helper")({IValue(ones({2}))}, {{"times", IValue(2)}}).toTensor().equal(tensor({4.0, 6.0})));
}

TEST(Module, ForkedCallsFromSeveralThreads) {
  const Module m("__torch__.Forks");
  m.register_parameter("weight", tensor({2.0, 3.0}));
  m.define(R"(
    def power(self, x, n: int):
        for i in range(n):
            x = x * self.weight
        return x

    def forward(self, x):
        first = torch.jit.fork(self.power, x, 3)
        second = torch.jit.fork(self.power, x, 2)
        return torch.jit.wait(first) + torch.jit.wait(second) + self.power(x, 1)
  )");
  const Tensor x = ones({2}), expected = tensor({14.0, 39.0});
  std::atomic<bool> right{true};
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i)
    threads.emplace_back([&] {
      for (int k = 0; k < 20; ++k) right = right && m.forward({IValue(x)}).toTensor().equal(expected);
    });
  for (auto& t : threads) t.join();
  EXPECT_TRUE(right);
}

TEST(Module, FailedDefinitionsLeaveTheClassAsItWas) {
  const Module m = scale();
  for (const char* source :
       {"def a(self):\n    return self.nothing\n", "def a(self):\n    return 1\ndef forward(self):\n    return 2\n", "x = 1\n"}) {
    EXPECT_THROW(m.define(source), Error) << source;
    EXPECT_FALSE(m.find_method("a")) << source;
  }
  try {
    m.define("x = 1");
    FAIL();
  } catch (const Error& e) {
    EXPECT_NE(std::string(e.what()).find("define: methods ('def name(self, ...):') were required"), std::string::npos) << e.what();
  }
}

TEST(Module, ParametersChildrenAndCopies) {
  const Module child = scale(), root("__torch__.Root");
  root.register_module("first", child);
  root.register_module("again", child);
  ASSERT_EQ(root.named_parameters().size(), 1u);
  EXPECT_EQ(root.named_parameters()[0].name, "first.weight");
  EXPECT_EQ(root.named_buffers()[0].name, "first.calls");
  EXPECT_EQ(root.modules().size(), 2u);

  const Module copied = root.deepcopy();
  copied.named_parameters()[0].value.detach().zero_();
  EXPECT_TRUE(child.attr("weight").toTensor().equal(tensor({2.0, 3.0})));
  EXPECT_EQ(copied.attr("first").toObject(), copied.attr("again").toObject());

  child.to(kDouble);
  EXPECT_EQ(child.attr("weight").toTensor().scalar_type(), kDouble);
  EXPECT_EQ(child.attr("calls").toTensor().scalar_type(), kDouble);
}

TEST(Module, ClassesGoWithTheirLastObject) {
  std::vector<std::weak_ptr<jit::ClassType>> types;
  std::vector<std::weak_ptr<jit::CompilationUnit>> units;
  const auto watch = [&](const Module& m) {
    m.forward({IValue(ones({2}))});
    types.push_back(m.type());
    units.push_back(m.type()->unit());
  };
  {
    const Module m = scale();
    watch(m);
    watch(m.clone());
    EXPECT_NE(units[0].lock(), units[1].lock());
    EXPECT_TRUE(types[1].expired());
  }
  for (const auto& type : types) EXPECT_TRUE(type.expired());
  for (const auto& unit : units) EXPECT_TRUE(unit.expired());
}

TEST(Module, ClassesThatReferToThemselvesGoToo) {
  std::vector<std::weak_ptr<const Type>> types;
  intrusive_ptr<ivalue::Object> last;
  {
    const auto unit = std::make_shared<jit::CompilationUnit>();
    unit->define(R"(
class Node:
    def __init__(self, value: int, next: Optional[Node]):
        self.value = value
        self.next = next
    def sum(self) -> int:
        next = self.next
        return self.value + (next.value if next is not None else 0)

class Color(Enum):
    RED = 1

@interface
class Summed(Interface):
    def sum(self) -> int:
        pass

def chain(n: int) -> Node:
    return Node(n, Node(2 * n, None))
)");
    for (const char* name : {"__torch__.Node", "__torch__.Color", "__torch__.Summed"}) {
      ASSERT_TRUE(unit->find_type(name)) << name;
      types.push_back(unit->find_type(name));
    }
    last = unit->get_function("chain")({IValue(2)}).toObject();
  }
  // An object keeps all that its class needs.
  EXPECT_EQ(jit::call_method(last, "sum", {}).toInt(), 6);
  for (const auto& type : types) EXPECT_FALSE(type.expired());
  last = {};
  for (const auto& type : types) EXPECT_TRUE(type.expired());
}

TEST(Module, ClassWithoutItsUnitHasNoMethods) {
  const jit::ClassTypePtr type = [] { return scale().type(); }();
  EXPECT_FALSE(type->findMethod("forward"));
  EXPECT_TRUE(type->hasAttribute("weight"));
  try {
    jit::new_object(type);
    FAIL();
  } catch (const Error& e) {
    EXPECT_EQ(e.msg(), "the compilation unit of class '__torch__.Scale' is gone; no object of it can be made.");
  }
}
