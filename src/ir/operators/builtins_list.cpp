// Lists: methods, slices, sorting, reductions.
#include <algorithm>
#include <cmath>
#include <functional>

#include <cresset/base/interrupt.h>
#include <cresset/dispatch/script_values.h>
#include <cresset/ir/function.h>

#include "ir/operators/builtin_call.h"

namespace cresset::jit {
namespace builtin {

using List = ivalue::ListImpl&;

bool equal_values(const IValue& a, const IValue& b) {
  if (a.isTensor() && b.isTensor()) {
    if (a.toTensor().is_same(b.toTensor())) return true;
    const Tensor equal = a.toTensor().eq(b.toTensor());
    CRESSET_CHECK(equal.numel() <= 1, "Boolean value of Tensor with more than one value is ambiguous");
    return equal.item().toBool();
  }
  if (a.isScalar() && b.isScalar()) return a.toScalar().toComplexDouble() == b.toScalar().toComplexDouble() && a.isBool() == b.isBool();
  if ((a.isList() && b.isList()) || (a.isTuple() && b.isTuple())) {
    const auto &x = a.toListRef(), &y = b.toListRef();
    return std::equal(x.begin(), x.end(), y.begin(), y.end(), equal_values);
  }
  return a == b;
}

bool less_than(const IValue& a, const IValue& b) {
  if (a.isInt() && b.isInt()) return a.toInt() < b.toInt();
  if (a.isBool() && b.isBool()) return !a.toBool() && b.toBool();
  if (a.isString() && b.isString()) return a.toStringRef() < b.toStringRef();
  if (a.isTensor() && b.isTensor()) {
    const Tensor less = a.toTensor().lt(b.toTensor());
    CRESSET_CHECK(less.numel() <= 1, "Boolean value of Tensor with more than one value is ambiguous");
    return less.item().toBool();
  }
  if (a.isTuple() && b.isTuple()) {
    const auto &x = a.toTupleElements(), &y = b.toTupleElements();
    for (std::size_t i = 0; i < std::min(x.size(), y.size()); ++i)
      if (!equal_values(x[i], y[i])) return less_than(x[i], y[i]);
    return x.size() < y.size();
  }
  if (a.isScriptObject()) {
    const auto cls = a.type()->cast<ClassType>();
    const Function* method = cls ? cls->findMethod("__lt__") : nullptr;
    CRESSET_CHECK(method && method->getSchema().arguments().size() == 2 && *method->getSchema().arguments()[1].type == *cls &&
                      method->getSchema().returns().size() == 1 && method->getSchema().returns()[0].type->kind == TypeKind::Bool,
                  "To sort a list of ", a.type()->str(), " it must define a __lt__ method with two inputs of type ", a.type()->str(),
                  " that returns a bool");
  }
  if (a.isScriptObject()) return call_method(a.toObject(), "__lt__", {b}).toBool();
  if (a.isScalar() && b.isScalar() && !a.isComplexDouble() && !b.isComplexDouble())
    return a.toScalar().toDouble() < b.toScalar().toDouble();
  CRESSET_THROW(TypeError, "values of types '", a.type()->str(), "' and '", b.type()->str(), "' have no order.");
}

int64_t normal_index(int64_t i, std::size_t n) {
  const int64_t at = i < 0 ? i + static_cast<int64_t>(n) : i;
  CRESSET_CHECK_INDEX(at >= 0 && at < static_cast<int64_t>(n), "list index out of range");
  return at;
}

namespace {

std::size_t place(List l, int64_t i) { return static_cast<std::size_t>(normal_index(i, l.elements.size())); }

IValue like(List l, std::vector<IValue> elements) { return make_list(std::move(elements), l.element_type); }

IValue sliced(List l, IValue& start, IValue& end, int64_t step) {
  CRESSET_CHECK_VALUE(step != 0, "slice step cannot be zero");
  const auto n = static_cast<int64_t>(l.elements.size());
  const auto bound = [&](const IValue& v, int64_t none) {
    if (v.isNone()) return none;
    const int64_t i = v.toInt() < 0 ? v.toInt() + n : v.toInt();
    return step > 0 ? std::clamp<int64_t>(i, 0, n) : std::clamp<int64_t>(i, -1, n - 1);
  };
  const int64_t from = bound(start, step > 0 ? 0 : n - 1), to = bound(end, step > 0 ? n : -1);
  std::vector<IValue> out;
  for (int64_t i = from; step > 0 ? i < to : i > to; i += step) {
    out.push_back(l.elements[static_cast<std::size_t>(i)]);
    if (step > n || step < -n) break;
  }
  return like(l, std::move(out));
}

// Fresh values own nothing and numbers neither: written over without a look at what was there.
template <class T>
std::vector<IValue> filled(std::size_t n, T number) {
  std::vector<IValue> out(n);
  for (IValue& e : out) std::construct_at(&e, number);
  return out;
}
std::vector<IValue> filled_with(const IValue& v, std::size_t n) {
  if (v.isInt()) return filled(n, v.toInt());
  if (v.isDouble()) return filled(n, v.toDouble());
  if (v.isBool()) return filled(n, v.toBool());
  return std::vector<IValue>(n, v);
}

IValue repeated(List l, int64_t n) {
  CRESSET_CHECK(n <= 0 || l.elements.empty() || n < (int64_t{1} << 32) / static_cast<int64_t>(l.elements.size()),
                "the repeated list is too long.");
  const auto times = static_cast<std::size_t>(std::max<int64_t>(n, 0));
  check_memory_limit(static_cast<int64_t>(l.elements.size() * times * sizeof(IValue)));
  if (l.elements.size() == 1) return like(l, filled_with(l.elements[0], times));
  std::vector<IValue> out;
  out.reserve(l.elements.size() * times);
  for (int64_t i = 0; i < n; ++i) out.insert(out.end(), l.elements.begin(), l.elements.end());
  return like(l, std::move(out));
}

bool has_order(const Type& type) {
  switch (type.kind) {
    case TypeKind::Int:
    case TypeKind::Float:
    case TypeKind::Bool:
    case TypeKind::String:
    case TypeKind::Tensor: return true;
    case TypeKind::Tuple: return std::ranges::all_of(type.contained, [](const TypePtr& t) { return has_order(*t); });
    default: return type.kind == TypeKind::Object;  // less_than looks for the method
  }
}

// Lists whose type does not say that there is an order: all elements have the first one's type, and that has one.
void check_sortable(List l) {
  if (l.elements.empty() || (l.element_type && has_order(*l.element_type))) return;
  const TypePtr first = l.elements[0].type();
  for (const IValue& v : l.elements)
    CRESSET_CHECK(*v.type() == *first, "Only values of same type can be compared. Found ", first->annotation_str(), " and ",
                  v.type()->annotation_str());
  CRESSET_CHECK(first->kind != TypeKind::Tuple || has_order(*first), "Contained elements in ", *first,
                " are not sortable. Only Int, Bool, Float, String, Tensor, a User Defined Class with __lt__ method defined or Tuples of "
                "aforementioned types can be sorted.");
  CRESSET_CHECK(first->kind == TypeKind::Tuple || first->kind == TypeKind::Object,
                "Only list of Tensors, ints, floats, bools, strs, a User Defined Class that defines the __lt__ compare method or Tuples of "
                "aforementioned types can be sorted, got list of ",
                first->annotation_str());
}

void sort(List l, bool reverse) {
  check_sortable(l);
  std::stable_sort(l.elements.begin(), l.elements.end(),
                   [&](const IValue& a, const IValue& b) { return reverse ? less_than(b, a) : less_than(a, b); });
}
IValue sorted(List l) {
  IValue out = like(l, l.elements);
  sort(out.toListImpl(), false);
  return out;
}

int64_t index_of(List l, IValue& wanted) {
  for (std::size_t i = 0; i < l.elements.size(); ++i)
    if (equal_values(l.elements[i], wanted)) return static_cast<int64_t>(i);
  CRESSET_THROW(ValueError, "'", script_text(wanted), "' is not in list");
}
void remove(List l, IValue& wanted) {
  for (std::size_t i = 0; i < l.elements.size(); ++i)
    if (equal_values(l.elements[i], wanted)) {
      l.elements.erase(l.elements.begin() + static_cast<std::ptrdiff_t>(i));
      return;
    }
  CRESSET_THROW(ValueError, "list.remove(x): x not in list");
}
int64_t count(List l, IValue& wanted) {
  return std::count_if(l.elements.begin(), l.elements.end(), [&](const IValue& v) { return equal_values(v, wanted); });
}
bool contains(List l, IValue& wanted) {
  return std::any_of(l.elements.begin(), l.elements.end(), [&](const IValue& v) { return equal_values(v, wanted); });
}

IValue smallest(List l, bool largest) {
  CRESSET_CHECK_VALUE(!l.elements.empty(), largest ? "max" : "min", "() arg is an empty sequence");
  const auto better = [&](const IValue& a, const IValue& b) { return largest ? less_than(b, a) : less_than(a, b); };
  std::size_t best = 0;
  for (std::size_t i = 1; i < l.elements.size(); ++i)
    if (better(l.elements[i], l.elements[best])) best = i;
  return l.elements[best];
}
// The smaller of two lists in the order of tuples.
bool list_less(List a, List b) {
  for (std::size_t i = 0; i < std::min(a.elements.size(), b.elements.size()); ++i)
    if (!equal_values(a.elements[i], b.elements[i])) return less_than(a.elements[i], b.elements[i]);
  return a.elements.size() < b.elements.size();
}

bool truth(const IValue& v) {
  if (v.isString()) return !v.toStringRef().empty();
  return v.toScalar().toComplexDouble() != 0.0;
}

#define CRESSET_OF_TYPE(T, name)                                                                                                          \
  {"aten::remove." #name "(" #T "[](a!) self, " #T " el) -> ()", CRESSET_BUILTIN((List l, IValue & v)->void { remove(l, v); })},          \
      {"aten::index.list_" #name "(" #T "[] self, " #T " el) -> int",                                                                     \
       CRESSET_BUILTIN((List l, IValue & v)->int64_t { return index_of(l, v); })},                                                        \
      {"aten::count." #name "(" #T "[] self, " #T " el) -> int", CRESSET_BUILTIN((List l, IValue & v)->int64_t { return count(l, v); })}, \
      {"aten::sort." #name "(" #T "[](a!) self, bool reverse=False) -> ()", CRESSET_BUILTIN((List l, bool r)->void { sort(l, r); })},     \
      {"aten::sorted." #name "(" #T "[](a) input) -> " #T "[]", CRESSET_BUILTIN((List l)->IValue { return sorted(l); })},                 \
      {"aten::__contains__." #name "_list(" #T "[] l, " #T " item) -> bool",                                                              \
       CRESSET_BUILTIN((List l, IValue & v)->bool { return contains(l, v); })},                                                           \
      {"aten::eq." #name "_list(" #T "[] a, " #T "[] b) -> bool",                                                                         \
       CRESSET_BUILTIN((IValue & a, IValue & b)->bool { return equal_values(a, b); })},                                                   \
  {                                                                                                                                       \
    "aten::ne." #name "_list(" #T "[] a, " #T "[] b) -> bool",                                                                            \
        CRESSET_BUILTIN((IValue & a, IValue & b)->bool { return !equal_values(a, b); })                                                   \
  }

#define CRESSET_EXTREMES(T, name)                                                                                           \
  {"prim::min." #name "_list(" #T "[] l, " #T "[] r) -> " #T "[]",                                                          \
   CRESSET_BUILTIN((IValue & a, IValue & b)->IValue { return list_less(b.toListImpl(), a.toListImpl()) ? b : a; })},        \
      {"prim::max." #name "_list(" #T "[] l, " #T "[] r) -> " #T "[]",                                                      \
       CRESSET_BUILTIN((IValue & a, IValue & b)->IValue { return list_less(a.toListImpl(), b.toListImpl()) ? b : a; })},    \
      {"prim::min.self_" #name "(" #T "[] self) -> " #T, CRESSET_BUILTIN((List l)->IValue { return smallest(l, false); })}, \
      {"prim::max.self_" #name "(" #T "[] self) -> " #T, CRESSET_BUILTIN((List l)->IValue { return smallest(l, true); })},  \
      {"aten::all." #name "(" #T "[] self) -> bool",                                                                        \
       CRESSET_BUILTIN((List l)->bool { return std::all_of(l.elements.begin(), l.elements.end(), truth); })},               \
  {                                                                                                                         \
    "aten::any." #name "(" #T "[] self) -> bool",                                                                           \
        CRESSET_BUILTIN((List l)->bool { return std::any_of(l.elements.begin(), l.elements.end(), truth); })                \
  }

const BuiltinRow kListRows[] = {
    {"aten::len.t(t[] a) -> int", CRESSET_BUILTIN((List l)->int64_t { return static_cast<int64_t>(l.elements.size()); })},
    {"aten::len.any(Any[] a) -> int", CRESSET_BUILTIN((List l)->int64_t { return static_cast<int64_t>(l.elements.size()); })},
    {"aten::append.t(t[](a!) self, t(c -> *) el) -> t[](a!)", CRESSET_BUILTIN((IValue & l, IValue& v)->IValue {
       l.toListImpl().elements.push_back(v);
       return l;
     })},
    {"aten::extend.t(t[](a!) self, t[] other) -> ()", CRESSET_BUILTIN((List l, List other)->void {
       const std::vector<IValue> added = other.elements;  // the list may be extended by itself
       l.elements.insert(l.elements.end(), added.begin(), added.end());
     })},
    {"aten::insert.t(t[](a!) self, int idx, t(b -> *) el) -> ()", CRESSET_BUILTIN((List l, int64_t i, IValue& v)->void {
       const auto n = static_cast<int64_t>(l.elements.size());
       l.elements.insert(l.elements.begin() + std::clamp<int64_t>(i < 0 ? i + n : i, 0, n), v);
     })},
    {"aten::pop.t(t[](a!) self, int idx=-1) -> t(*)", CRESSET_BUILTIN((List l, int64_t i)->IValue {
       CRESSET_CHECK_INDEX(!l.elements.empty(), "pop from empty list");
       const std::size_t at = place(l, i);
       IValue v = std::move(l.elements[at]);
       l.elements.erase(l.elements.begin() + static_cast<std::ptrdiff_t>(at));
       return v;
     })},
    {"aten::clear.t(t[](a!) self) -> ()", CRESSET_BUILTIN((List l)->void { l.elements.clear(); })},
    {"aten::reverse.t(t[](a!) self) -> ()", CRESSET_BUILTIN((List l)->void { std::reverse(l.elements.begin(), l.elements.end()); })},
    {"aten::copy.t(t[](a) self) -> t[]", CRESSET_BUILTIN((List l)->IValue { return like(l, l.elements); })},
    {"aten::list.t(t[] l) -> t[]", CRESSET_BUILTIN((List l)->IValue { return like(l, l.elements); })},
    {"aten::__getitem__.t(t[](a) list, int idx) -> t(*)", CRESSET_BUILTIN((List l, int64_t i)->IValue { return l.elements[place(l, i)]; })},
    {"aten::_set_item.t(t[](a!) l, int idx, t(b -> *) el) -> t[](a!)", CRESSET_BUILTIN((IValue & l, int64_t i, IValue& v)->IValue {
       l.toListImpl().elements[place(l.toListImpl(), i)] = v;
       return l;
     })},
    {"aten::Delete.t(t[](a!) self, int idx) -> ()",
     CRESSET_BUILTIN((List l, int64_t i)->void { l.elements.erase(l.elements.begin() + static_cast<std::ptrdiff_t>(place(l, i))); })},
    {"aten::slice.t(t[] l, int? start=None, int? end=None, int step=1) -> t[]",
     CRESSET_BUILTIN((List l, IValue& a, IValue& b, int64_t step)->IValue { return sliced(l, a, b, step); })},
    {"aten::add.t(t[] a, t[] b) -> t[]", CRESSET_BUILTIN((List a, List b)->IValue {
       std::vector<IValue> out = a.elements;
       out.insert(out.end(), b.elements.begin(), b.elements.end());
       return like(a.element_type ? a : b, std::move(out));
     })},
    {"aten::add_.t(t[](a!) self, t[] b) -> t[]", CRESSET_BUILTIN((IValue & a, List b)->IValue {
       const std::vector<IValue> added = b.elements;
       auto& elements = a.toListImpl().elements;
       elements.insert(elements.end(), added.begin(), added.end());
       return a;
     })},
    {"aten::mul.left_t(t[] l, int n) -> t[]", CRESSET_BUILTIN((List l, int64_t n)->IValue { return repeated(l, n); })},
    {"aten::mul_.t(t[](a!) self, int n) -> t[](a!)", CRESSET_BUILTIN((IValue & l, int64_t n)->IValue {
       std::vector<IValue>& elements = l.toListImpl().elements;
       elements = repeated(l.toListImpl(), n).toListImpl().elements;
       return l;
     })},
    {"aten::mul.right_(int n, t[] l) -> t[]", CRESSET_BUILTIN((int64_t n, List l)->IValue { return repeated(l, n); })},
    CRESSET_OF_TYPE(int, int),
    CRESSET_OF_TYPE(float, float),
    CRESSET_OF_TYPE(bool, bool),
    CRESSET_OF_TYPE(str, str),
    CRESSET_OF_TYPE(Tensor, Tensor),
    {"aten::__contains__.enum_list(AnyEnumType[] l, AnyEnumType item) -> bool",
     CRESSET_BUILTIN((List l, IValue& v)->bool { return contains(l, v); })},
    {"aten::sort.any(t[](a!) self, bool reverse=False) -> ()", CRESSET_BUILTIN((List l, bool r)->void { sort(l, r); })},
    {"aten::sorted.any(t[](a) self) -> t[]", CRESSET_BUILTIN((List l)->IValue { return sorted(l); })},
    CRESSET_EXTREMES(int, int),
    CRESSET_EXTREMES(float, float),
    CRESSET_EXTREMES(bool, bool),
    {"aten::any.str(str[] self) -> bool",
     CRESSET_BUILTIN((List l)->bool { return std::any_of(l.elements.begin(), l.elements.end(), truth); })},
    {"aten::all.str(str[] self) -> bool",
     CRESSET_BUILTIN((List l)->bool { return std::all_of(l.elements.begin(), l.elements.end(), truth); })},
    {"aten::sum.int(int[] self) -> int", CRESSET_BUILTIN((List l)->int64_t {
       int64_t s = 0;
       for (const IValue& v : l.elements) s = wrap_add(s, v.toInt());
       return s;
     })},
    {"aten::sum.float(float[] self) -> float", CRESSET_BUILTIN((List l)->double {
       double s = 0;
       for (const IValue& v : l.elements) s += v.toDouble();
       return s;
     })},
    {"aten::sum.complex(complex[] self) -> complex", CRESSET_BUILTIN((List l)->Complex {
       Complex s = 0;
       for (const IValue& v : l.elements) s += v.toComplexDouble();
       return s;
     })},
    {"aten::sum.bool(bool[] self) -> int",
     CRESSET_BUILTIN((List l)->int64_t { return std::count_if(l.elements.begin(), l.elements.end(), truth); })},
    {"prim::rangelist(int n) -> int[]", CRESSET_BUILTIN((int64_t n)->IValue {
       CRESSET_CHECK(n < (int64_t{1} << 32), "a list of ", n, " elements is too long.");
       std::vector<IValue> out;
       out.reserve(static_cast<std::size_t>(std::max<int64_t>(n, 0)));
       for (int64_t i = 0; i < n; ++i) out.emplace_back(i);
       return make_list(std::move(out), basic_type(TypeKind::Int));
     })},
};

}  // namespace
}  // namespace builtin

void register_list_builtins(const AddRows& add) { add(builtin::kListRows, std::size(builtin::kListRows)); }

}  // namespace cresset::jit
