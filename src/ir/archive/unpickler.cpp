#include "ir/archive/unpickler.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <optional>
#include <unordered_map>

#include <cresset/base/interrupt.h>
#include <cresset/core/backend_meta.h>
#include <cresset/ir/class_type.h>
#include <cresset/ir/interpreter.h>
#include <cresset/ops/functions_creation.h>

#include "ir/archive/pickler.h"
#include "ir/archive/zip_archive.h"

namespace cresset::jit {
namespace {

// More values than this, counting shared ones each time, are no data of a program but a bomb.
constexpr uint64_t kMostValues = 1u << 30;

struct StorageName {
  const char* name;
  ScalarType type;
};
constexpr StorageName kStorages[] = {
    {"BFloat16Storage", kBFloat16},
    {"BoolStorage", kBool},
    {"ByteStorage", kByte},
    {"CharStorage", kChar},
    {"ComplexDoubleStorage", kComplexDouble},
    {"ComplexFloatStorage", kComplexFloat},
    {"DoubleStorage", kDouble},
    {"FloatStorage", kFloat},
    {"HalfStorage", kHalf},
    {"IntStorage", kInt},
    {"LongStorage", kLong},
    {"ShortStorage", kShort},
};
constexpr StorageName kQuantized[] = {{"QInt8Storage", kChar}, {"QUInt8Storage", kByte}, {"QInt32Storage", kInt}};
constexpr const char* kNarrow[] = {"QUInt4x2Storage", "QUInt2x4Storage"};

// Things on the stack that are no values of scripts. They travel as capsules.
struct ClassName final : intrusive_ptr_target {
  explicit ClassName(TypePtr type) : type(std::move(type)) {}
  const TypePtr type;
};
struct StorageType final : intrusive_ptr_target {
  StorageType(ScalarType type, bool quantized) : type(type), quantized(quantized) {}
  const ScalarType type;
  const bool quantized;
};
struct StorageValue final : intrusive_ptr_target {
  StorageValue(Tensor all, bool quantized) : all(std::move(all)), quantized(quantized) {}
  const Tensor all;
  const bool quantized;
};
struct Scheme final : intrusive_ptr_target {
  explicit Scheme(std::size_t place) : place(place) {}
  const std::size_t place;  // in quantization_schemes()
};
struct EmptyObject final : intrusive_ptr_target {
  explicit EmptyObject(TypePtr type) : type(std::move(type)) {}
  const TypePtr type;
};
class Machine;
struct GlobalFunction final : intrusive_ptr_target {
  using Call = IValue (Machine::*)(const IValue& arguments);
  explicit GlobalFunction(Call call) : call(call) {}
  const Call call;
};
template <class T>
T* capsule_of(const IValue& v) {
  return v.isCapsule() ? dynamic_cast<T*>(v.toCapsule().get()) : nullptr;
}
template <class T, class... A>
IValue capsule(A&&... a) {
  return IValue::make_capsule(make_intrusive<T>(std::forward<A>(a)...));
}

enum class Op : uint8_t {
  Mark = '(',
  Stop = '.',
  Pop = '0',
  PopMark = '1',
  BinInt = 'J',
  BinInt1 = 'K',
  BinInt2 = 'M',
  None = 'N',
  BinPersId = 'Q',
  Reduce = 'R',
  BinUnicode = 'X',
  Append = 'a',
  Build = 'b',
  Global = 'c',
  Appends = 'e',
  BinGet = 'h',
  LongBinGet = 'j',
  BinPut = 'q',
  LongBinPut = 'r',
  SetItem = 's',
  Tuple = 't',
  SetItems = 'u',
  EmptyTuple = ')',
  EmptyList = ']',
  EmptyDict = '}',
  BinFloat = 'G',
  Proto = 0x80,
  NewObj = 0x81,
  Tuple1 = 0x85,
  Tuple2 = 0x86,
  Tuple3 = 0x87,
  NewTrue = 0x88,
  NewFalse = 0x89,
  Long1 = 0x8a,
  ShortBinUnicode = 0x8c,
  BinUnicode8 = 0x8d,
  StackGlobal = 0x93,
  Memoize = 0x94,
  Frame = 0x95,
};

class Machine {
 public:
  Machine(std::string_view bytes, const std::string& name, const UnpicklerHooks& hooks)
      : bytes_(bytes), name_(name), hooks_(hooks), budget_(hooks.budget ? hooks.budget : load_budget(bytes.size())) {}
  IValue run();

 private:
  // What is known of a container. A container that lies in another one does not change any more, so depth and weight are final and
  // there are no cycles.
  struct Container {
    uint32_t depth = 0;
    uint64_t weight = 1;
    bool inside_another = false;
    bool holds_capsules = false;
  };

  [[noreturn]] void bad(const std::string& why) const {
    CRESSET_THROW(Error, "archive: ", name_, " is no pickle of a script's values: ", why, " (byte ", at_, ").");
  }

  // What values take beside the bytes that describe them, about.
  static constexpr uint64_t kContainer = 320, kElement = 32, kItem = 128, kObject = 512;
  void spend(uint64_t bytes) {
    spent_ += bytes;
    if (spent_ > budget_ && !memory_is_limited())
      bad("its values take more than " + std::to_string(budget_) +
          " bytes. If it is to be trusted, load it with a limit of its own, limits=cresset.jit.Limits(memory=...)");
  }

  // Input.
  template <class T>
  T number() {
    T v;
    std::memcpy(&v, take(sizeof v).data(), sizeof v);
    return v;
  }
  std::string_view take(uint64_t n) {
    if (n > bytes_.size() - at_) bad("it ends too early");
    const std::string_view piece = bytes_.substr(at_, n);
    at_ += n;
    return piece;
  }
  std::string line() {
    const std::size_t end = bytes_.find('\n', at_);
    if (end == std::string_view::npos) bad("it ends too early");
    std::string text(bytes_.substr(at_, end - at_));
    at_ = end + 1;
    return text;
  }
  int64_t long_integer() {
    const auto n = number<uint8_t>();
    if (n > 8) bad("an integer has more than 64 bits");
    const std::string_view digits = take(n);
    uint64_t v = n && (digits.back() & 0x80) ? ~uint64_t{0} : 0;
    for (std::size_t i = n; i-- > 0;) v = v << 8 | static_cast<uint8_t>(digits[i]);
    return static_cast<int64_t>(v);
  }

  // The stack.
  IValue pop() {
    if (stack_.empty() || (!marks_.empty() && marks_.back() == stack_.size())) bad("the stack is empty");
    IValue v = std::move(stack_.back());
    stack_.pop_back();
    return v;
  }
  IValue& top() {
    if (stack_.empty() || (!marks_.empty() && marks_.back() == stack_.size())) bad("the stack is empty");
    return stack_.back();
  }
  std::vector<IValue> pop_to_mark() {
    if (marks_.empty()) bad("a mark is missing");
    const auto first = stack_.begin() + static_cast<std::ptrdiff_t>(marks_.back());
    std::vector<IValue> values(std::make_move_iterator(first), std::make_move_iterator(stack_.end()));
    stack_.erase(first, stack_.end());
    marks_.pop_back();
    return values;
  }

  // Containers.
  static const void* identity(const IValue& v) {
    if (v.isList()) return &v.toListImpl();
    if (v.isGenericDict()) return &v.toDictImpl();
    if (v.isTuple()) return &v.toTupleRef();
    if (v.isScriptObject()) return &v.toObjectRef();
    return nullptr;
  }
  Container& open(const IValue& v) {
    Container& c = containers_[identity(v)];
    if (c.inside_another) bad("a container is changed after it was put into another one");
    return c;
  }
  void put_into(Container& c, const IValue& child) {
    uint32_t depth = 1;
    uint64_t weight = 1;
    spend(kElement);
    if (const void* id = identity(child)) {
      Container& inner = containers_[id];
      inner.inside_another = true;
      c.holds_capsules |= inner.holds_capsules;
      depth = inner.depth + 1;
      weight = inner.weight;
    }
    c.holds_capsules |= child.isCapsule();
    c.depth = std::max(c.depth, depth);
    c.weight += weight;
    if (c.depth > kDeepestPickle) bad("its values nest more than " + std::to_string(kDeepestPickle) + " deep");
    if (c.weight > kMostValues) bad("it stands for too many values");
  }
  IValue fresh(IValue container) {
    spend(kContainer);
    containers_[identity(container)] = Container();
    return container;
  }
  IValue tuple(std::vector<IValue> members) {
    IValue t = fresh(IValue(make_intrusive<ivalue::TupleImpl>(std::move(members))));
    Container& c = containers_[identity(t)];
    for (const IValue& m : t.toTupleElements()) put_into(c, m);
    return t;
  }
  void require_values(const IValue& v) const {
    const auto known = containers_.find(identity(v));
    if (v.isCapsule() || (known != containers_.end() && known->second.holds_capsules)) bad("a name stands where a value should");
  }
  void append(const IValue& list, const std::vector<IValue>& values);
  void set_items(const IValue& dict, const std::vector<IValue>& items);

  // Names.
  IValue global(const std::string& module, const std::string& name);
  IValue reduce(const IValue& callee, const IValue& arguments);
  IValue build(const IValue& object, const IValue& state);
  IValue persistent(const IValue& id);
  const std::vector<IValue>& arguments_of(const IValue& tuple, std::size_t least, const char* what) const {
    if (!tuple.isTuple() || tuple.toTupleElements().size() < least) bad(std::string(what) + " has too few arguments");
    return tuple.toTupleElements();
  }
  std::vector<int64_t> integers(const IValue& v) const {
    std::vector<int64_t> out;
    if (!v.isTuple() && !v.isList()) bad("a tensor's shape is no tuple");
    for (const IValue& e : v.isTuple() ? v.toTupleElements() : v.toListRef()) {
      if (!e.isInt()) bad("a tensor's shape has a part that is no integer");
      out.push_back(e.toInt());
    }
    return out;
  }

  IValue rebuild_tensor(const IValue& arguments);
  Tensor in_storage(const std::vector<IValue>& a, bool quantized);
  IValue rebuild_quantized_tensor(const IValue& arguments);
  IValue rebuild_sparse_tensor(const IValue& arguments);
  IValue rebuild_parameter(const IValue& arguments);
  IValue ordered_dict(const IValue& arguments);
  IValue typed_list(const IValue& arguments, TypeKind element);
  IValue int_list(const IValue& a) { return typed_list(a, TypeKind::Int); }
  IValue double_list(const IValue& a) { return typed_list(a, TypeKind::Float); }
  IValue bool_list(const IValue& a) { return typed_list(a, TypeKind::Bool); }
  IValue tensor_list(const IValue& a) { return typed_list(a, TypeKind::Tensor); }
  IValue restore_type_tag(const IValue& arguments);
  IValue device(const IValue& arguments);
  IValue complex(const IValue& arguments);
  IValue size(const IValue& arguments) { return arguments_of(arguments, 1, "Size")[0]; }

  struct Callable {
    const char *module, *name;
    GlobalFunction::Call call;
  };
  // All that a pickle can call.
  static constexpr std::size_t kCallables = 14;
  static const std::array<Callable, kCallables>& callables() {
    static constexpr std::array<Callable, kCallables> all = {{
        {"torch._utils", "_rebuild_tensor_v2", &Machine::rebuild_tensor},
        {"torch._utils", "_rebuild_qtensor", &Machine::rebuild_quantized_tensor},
        {"torch._utils", "_rebuild_sparse_tensor", &Machine::rebuild_sparse_tensor},
        {"torch._utils", "_rebuild_parameter", &Machine::rebuild_parameter},
        {"collections", "OrderedDict", &Machine::ordered_dict},
        {"torch.jit._pickle", "build_intlist", &Machine::int_list},
        {"torch.jit._pickle", "build_doublelist", &Machine::double_list},
        {"torch.jit._pickle", "build_boollist", &Machine::bool_list},
        {"torch.jit._pickle", "build_tensorlist", &Machine::tensor_list},
        {"torch.jit._pickle", "restore_type_tag", &Machine::restore_type_tag},
        {"torch", "device", &Machine::device},
        {"torch", "Size", &Machine::size},
        {"builtins", "complex", &Machine::complex},
        {"__builtin__", "complex", &Machine::complex},
    }};
    return all;
  }

  std::string_view bytes_;
  const std::string& name_;
  const UnpicklerHooks& hooks_;
  const uint64_t budget_;
  uint64_t spent_ = 0;
  std::size_t at_ = 0;
  std::vector<IValue> stack_;
  std::vector<std::size_t> marks_;
  std::unordered_map<uint32_t, IValue> memo_;
  std::unordered_map<const void*, Container> containers_;
};

void Machine::append(const IValue& list, const std::vector<IValue>& values) {
  if (!list.isList()) bad("a list was required to append to");
  Container& c = open(list);
  for (const IValue& v : values) {
    require_values(v);
    if (identity(v) == identity(list)) bad("a list contains itself");
    put_into(c, v);
    list.toListImpl().elements.push_back(v);
  }
}

void Machine::set_items(const IValue& dict, const std::vector<IValue>& items) {
  if (!dict.isGenericDict()) bad("a dict was required to put items into");
  if (items.size() % 2) bad("a key of a dict has no value");
  Container& c = open(dict);
  for (std::size_t i = 0; i < items.size(); i += 2) {
    const IValue &key = items[i], &value = items[i + 1];
    require_values(key);
    require_values(value);
    if (!key.isScalar() && !key.isString() && !key.isTensor()) bad("a key of a dict is neither a number, a string nor a tensor");
    if (identity(value) == identity(dict)) bad("a dict contains itself");
    put_into(c, value);
    spend(kItem);
    if (!dict.toDictImpl().items.try_emplace(key, value).second && !key.isTensor()) bad("a key is in a dict twice");
  }
}

IValue Machine::global(const std::string& module, const std::string& name) {
  for (const Callable& c : callables())
    if (module == c.module && name == c.name) return capsule<GlobalFunction>(c.call);
  if (module == "torch") {
    for (const StorageName& s : kStorages)
      if (name == s.name) return capsule<StorageType>(s.type, false);
    for (const StorageName& s : kQuantized)
      if (name == s.name) return capsule<StorageType>(s.type, true);
    for (std::size_t i = 0; i < quantization_schemes().size(); ++i)
      if (name == quantization_schemes()[i]) return capsule<Scheme>(i);
    for (const char* q : kNarrow)
      CRESSET_CHECK_NOT_IMPLEMENTED(name != q, "archive: ", name_,
                                    " has quantized tensors of less than eight bits an element, which are not supported.");
  }
  if (module.rfind("__torch__", 0) == 0 && hooks_.type)
    if (TypePtr type = hooks_.type(module + "." + name)) return capsule<ClassName>(std::move(type));
  CRESSET_THROW(Error, "archive: ", name_, " asks for '", module, ".", name,
                "', which is not allowed. Archives may name what rebuilds tensors and containers, and their own classes.");
}

IValue Machine::reduce(const IValue& callee, const IValue& arguments) {
  spend(kObject);
  if (const auto* f = capsule_of<GlobalFunction>(callee)) return (this->*f->call)(arguments);
  const auto* c = capsule_of<ClassName>(callee);
  const auto enumeration = c ? c->type->cast<EnumType>() : nullptr;
  if (!enumeration) bad("something is called that is no function");
  // Written without a tuple around the value; Python's own pickles have one.
  const IValue& value = arguments.isTuple() && arguments.toTupleElements().size() == 1 ? arguments.toTupleElements()[0] : arguments;
  for (const auto& e : enumeration->enumerators())
    if (e->value == value) return IValue(e);
  CRESSET_THROW(Error, "archive: ", name_, ": the enum '", enumeration->name, "' has no value ", value, ".");
}

IValue Machine::build(const IValue& object, const IValue& state) {
  if (object.isGenericDict() && state.isGenericDict()) return object;  // what Python hung on an OrderedDict, such as state_dict's _metadata
  const auto* empty = capsule_of<EmptyObject>(object);
  if (!empty) bad("a state is given to something that takes none");
  require_values(state);
  Container c;
  put_into(c, state);
  IValue made = hooks_.object(empty->type, state);
  if (identity(made)) containers_[identity(made)] = std::move(c);
  return made;
}

IValue Machine::persistent(const IValue& id) {
  const auto& parts = arguments_of(id, 5, "a storage");
  const auto* type = capsule_of<StorageType>(parts[1]);
  if (!parts[0].isString() || parts[0].toStringRef() != "storage" || !type || !parts[2].isString() || !parts[3].isString() ||
      !parts[4].isInt() || parts[4].toInt() < 0)
    bad("a storage is not described as one");
  return capsule<StorageValue>(hooks_.storage(parts[2].toStringRef(), type->type, parts[3].toStringRef(), parts[4].toInt()),
                               type->quantized);
}

// (storage, offset, sizes, strides, requires_grad, hooks[, facts]): facts are "conj" and "neg", which say how the elements are
// to be read, and those that a backend keeps beside the tensor.
IValue Machine::rebuild_tensor(const IValue& arguments) {
  const auto& a = arguments_of(arguments, 5, "a tensor");
  if (!a[4].isBool()) bad("a tensor is not described as one");
  Tensor t = in_storage(a, false);
  if (a.size() > 6 && !a[6].isNone()) {
    if (!a[6].isGenericDict()) bad("the facts about a tensor are no dict");
    BackendMetaFacts facts;
    for (const auto& [name, fact] : a[6].toDictImpl().items) {
      if (!name.isString() || !fact.isBool()) bad("a fact about a tensor is no name with a bool");
      facts[name.toStringRef()] = fact.toBool();
    }
    const auto take = [&](const char* name) {
      const auto at = facts.find(name);
      return at != facts.end() && facts.extract(at).mapped();
    };
    if (take("conj")) t = t.conj();
    if (take("neg")) t = t.neg();
    if (!facts.empty()) restore_backend_meta(t, std::move(facts));
  }
  if (a[4].toBool()) {
    if (!isFloatingType(t.scalar_type()) && !isComplexType(t.scalar_type())) bad("a tensor of integers requires a gradient");
    t.requires_grad_(true);
  }
  return IValue(std::move(t));
}

// What the first four arguments say: storage, offset, sizes, strides.
Tensor Machine::in_storage(const std::vector<IValue>& a, bool quantized) {
  const auto* storage = capsule_of<StorageValue>(a[0]);
  if (!storage || storage->quantized != quantized || !a[1].isInt()) bad("a tensor is not described as one");
  const int64_t offset = a[1].toInt();
  const std::vector<int64_t> sizes = integers(a[2]), strides = integers(a[3]);
  if (sizes.size() != strides.size() || offset < 0) bad("a tensor has an impossible shape");
  // The last element's place, counted so that nothing can overflow unseen.
  int64_t last = offset, elements = 1;
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    int64_t reach = 0;
    if (sizes[i] < 0 || strides[i] < 0 || __builtin_mul_overflow(elements, sizes[i], &elements) ||
        (sizes[i] > 0 && (__builtin_mul_overflow(sizes[i] - 1, strides[i], &reach) || __builtin_add_overflow(last, reach, &last))))
      bad("a tensor has an impossible shape");
  }
  const Tensor& all = storage->all;
  if (elements > 0 && last >= all.numel()) bad("a tensor of " + std::to_string(elements) + " elements does not fit its storage");
  return Tensor(make_intrusive<TensorImpl>(all.storage(), all.key_set(), all.scalar_type(), sizes, strides, offset));
}

// (storage, offset, sizes, strides, (scheme, scale, zero point[, axis]), requires_grad, hooks)
IValue Machine::rebuild_quantized_tensor(const IValue& arguments) {
  const auto& a = arguments_of(arguments, 6, "a quantized tensor");
  const Tensor numbers = in_storage(a, true);
  const auto& facts = arguments_of(a[4], 3, "how a tensor is quantized");
  const auto* scheme = capsule_of<Scheme>(facts[0]);
  if (!scheme) bad("a tensor is quantized by an unknown scheme");
  const bool single = scheme->place == 0;
  if (facts.size() != (single ? 3 : 4) ||
      (single ? !facts[1].isDouble() || !facts[2].isInt() : !facts[1].isTensor() || !facts[2].isTensor() || !facts[3].isInt()))
    bad("how a tensor is quantized is not described as that");
  const Tensor scales = single ? scalar_tensor(facts[1].toDouble(), kDouble, {}, {}, {}) : facts[1].toTensor();
  const Tensor zero_points = single ? scalar_tensor(facts[2].toInt(), kLong, {}, {}, {}) : facts[2].toTensor();
  Stack made = call_python_operator(kQuantizedOfParts, "",
                                    {IValue(numbers), IValue(scales), IValue(zero_points), IValue(single ? -1 : facts[3].toInt())},
                                    "quantized tensors");
  return made.at(0);
}

// (layout, sizes, requires_grad, parts…, hooks): two parts of coordinates, three of compressed rows.
IValue Machine::rebuild_sparse_tensor(const IValue& arguments) {
  const auto& a = arguments_of(arguments, 6, "a sparse tensor");
  if (!a[0].isInt() || !a[2].isBool()) bad("a sparse tensor is not described as one");
  const auto layout = static_cast<Layout>(a[0].toInt());
  CRESSET_CHECK_NOT_IMPLEMENTED(is_sparse_layout(layout), "archive: ", name_, " has a tensor of layout number ", a[0].toInt(),
                                ", which archives do not hold.");
  const std::size_t count = layout == Layout::Sparse ? 2 : 3;
  if (a.size() != count + 4) bad("a sparse tensor is not described as one");
  std::vector<Tensor> parts;
  for (std::size_t i = 0; i < count; ++i) {
    if (!a[3 + i].isTensor()) bad("a part of a sparse tensor is no tensor");
    parts.push_back(a[3 + i].toTensor());
  }
  Stack operands(parts.begin(), parts.end());
  operands.emplace_back(integers(a[1]));
  const bool rows = layout == Layout::SparseCsr;
  Stack checked = operands;
  if (!rows) checked.emplace_back();  // not known to be coalesced
  // Indices outside of the sizes raise.
  call_python_operator(rows ? "aten::_validate_sparse_csr_tensor_args" : "aten::_validate_sparse_coo_tensor_args", "", std::move(checked),
                       "sparse tensors");
  // dtype, layout, device, pin_memory and for coordinates is_coalesced: as the values are.
  operands.resize(operands.size() + (rows ? 4 : 5));
  const Stack made = rows ? call_python_operator("aten::sparse_csr_tensor", "crow_col_value_size", std::move(operands), "sparse tensors")
                          : call_python_operator("aten::sparse_coo_tensor", "indices_size", std::move(operands), "sparse tensors");
  Tensor t = made.at(0).toTensor();
  if (a[2].toBool()) t.requires_grad_(true);
  return IValue(std::move(t));
}

// (tensor, requires_grad, hooks)
IValue Machine::rebuild_parameter(const IValue& arguments) {
  const auto& a = arguments_of(arguments, 2, "a parameter");
  if (!a[0].isTensor() || !a[1].isBool()) bad("a parameter is not described as one");
  return IValue(a[0].toTensor().detach().requires_grad_(a[1].toBool()));
}

IValue Machine::ordered_dict(const IValue& arguments) {
  if (!arguments_of(arguments, 0, "OrderedDict").empty()) bad("an OrderedDict was required to begin empty");
  return fresh(IValue(make_intrusive<ivalue::DictImpl>()));
}

IValue Machine::typed_list(const IValue& arguments, TypeKind element) {
  const IValue list = arguments_of(arguments, 1, "a list")[0];
  if (!list.isList() || !jit::restore_type(list, list_of(basic_type(element)))) bad("a list has elements of other types than it says");
  return list;
}

IValue Machine::restore_type_tag(const IValue& arguments) {
  const auto& a = arguments_of(arguments, 2, "a type");
  if (!a[1].isString()) bad("a type is not given as text");
  spend(a[1].toStringRef().size());
  require_values(a[0]);
  const TypePtr type = parse_type_expression(a[1].toStringRef(), hooks_.type);
  if (!jit::restore_type(a[0], type)) bad("a value is not of its type '" + a[1].toStringRef() + "'");
  return a[0];
}

IValue Machine::device(const IValue& arguments) {
  const auto& a = arguments_of(arguments, 1, "a device");
  if (!a[0].isString()) bad("a device is not given as text");
  if (a.size() > 1 && !a[1].isInt()) bad("a device's number is no integer");
  return IValue(Device(a[0].toStringRef() + (a.size() > 1 ? ":" + std::to_string(a[1].toInt()) : "")));
}

IValue Machine::complex(const IValue& arguments) {
  const auto& a = arguments_of(arguments, 2, "a complex number");
  if (!a[0].isDouble() || !a[1].isDouble()) bad("a complex number has parts that are no floats");
  return IValue(std::complex<double>(a[0].toDouble(), a[1].toDouble()));
}

IValue Machine::run() {
  constexpr uint32_t kSteps = 1024;  // between two looks for signals
  for (uint32_t steps = 0;; ++steps) {
    if (steps % kSteps == 0) check_signals();
    const auto op = static_cast<Op>(number<uint8_t>());
    switch (op) {
      case Op::Proto:
        if (const auto version = number<uint8_t>(); version < 2 || version > 5) bad("protocol " + std::to_string(version) + " is unknown");
        break;
      case Op::Frame: number<uint64_t>(); break;
      case Op::Mark: marks_.push_back(stack_.size()); break;
      case Op::Pop: pop(); break;
      case Op::PopMark: pop_to_mark(); break;
      case Op::None: stack_.emplace_back(); break;
      case Op::NewTrue: stack_.emplace_back(true); break;
      case Op::NewFalse: stack_.emplace_back(false); break;
      case Op::BinInt: stack_.emplace_back(int64_t{number<int32_t>()}); break;
      case Op::BinInt1: stack_.emplace_back(int64_t{number<uint8_t>()}); break;
      case Op::BinInt2: stack_.emplace_back(int64_t{number<uint16_t>()}); break;
      case Op::Long1: stack_.emplace_back(long_integer()); break;
      case Op::BinFloat: stack_.emplace_back(std::bit_cast<double>(__builtin_bswap64(number<uint64_t>()))); break;
      case Op::BinUnicode: stack_.emplace_back(std::string(take(number<uint32_t>()))); break;
      case Op::ShortBinUnicode: stack_.emplace_back(std::string(take(number<uint8_t>()))); break;
      case Op::BinUnicode8: stack_.emplace_back(std::string(take(number<uint64_t>()))); break;
      case Op::EmptyTuple: stack_.push_back(tuple({})); break;
      case Op::Tuple: stack_.push_back(tuple(pop_to_mark())); break;
      case Op::Tuple1:
      case Op::Tuple2:
      case Op::Tuple3: {
        std::vector<IValue> members(static_cast<std::size_t>(op) - static_cast<std::size_t>(Op::Tuple1) + 1);
        for (std::size_t i = members.size(); i-- > 0;) members[i] = pop();
        stack_.push_back(tuple(std::move(members)));
        break;
      }
      case Op::EmptyList: stack_.push_back(fresh(IValue(make_intrusive<ivalue::ListImpl>()))); break;
      case Op::Append: {
        const IValue v = pop();
        append(top(), {v});
        break;
      }
      case Op::Appends: {
        const std::vector<IValue> values = pop_to_mark();
        append(top(), values);
        break;
      }
      case Op::EmptyDict: stack_.push_back(fresh(IValue(make_intrusive<ivalue::DictImpl>()))); break;
      case Op::SetItem: {
        const IValue value = pop(), key = pop();
        set_items(top(), {key, value});
        break;
      }
      case Op::SetItems: {
        const std::vector<IValue> items = pop_to_mark();
        set_items(top(), items);
        break;
      }
      case Op::Global: {
        const std::string module = line(), name = line();
        spend(kElement);
        stack_.push_back(global(module, name));
        break;
      }
      case Op::StackGlobal: {
        const IValue name = pop(), module = pop();
        if (!name.isString() || !module.isString()) bad("a name is no string");
        stack_.push_back(global(module.toStringRef(), name.toStringRef()));
        break;
      }
      case Op::NewObj: {
        const IValue arguments = pop(), cls = pop();
        const auto* c = capsule_of<ClassName>(cls);
        if (!c || !arguments.isTuple() || !arguments.toTupleElements().empty()) bad("an object is made of something that is no class");
        spend(kObject);
        stack_.push_back(capsule<EmptyObject>(c->type));
        break;
      }
      case Op::Reduce: {
        const IValue arguments = pop(), callee = pop();
        stack_.push_back(reduce(callee, arguments));
        break;
      }
      case Op::Build: {
        const IValue state = pop(), object = pop();
        stack_.push_back(build(object, state));
        break;
      }
      case Op::BinPersId: stack_.push_back(persistent(pop())); break;
      case Op::BinPut: memo_[number<uint8_t>()] = top(); break;
      case Op::LongBinPut: memo_[number<uint32_t>()] = top(); break;
      case Op::Memoize: memo_[static_cast<uint32_t>(memo_.size())] = top(); break;
      case Op::BinGet:
      case Op::LongBinGet: {
        const auto found = memo_.find(op == Op::BinGet ? number<uint8_t>() : number<uint32_t>());
        if (found == memo_.end()) bad("it refers to something that it has not made");
        stack_.push_back(found->second);
        break;
      }
      case Op::Stop: {
        IValue result = pop();
        if (!stack_.empty() || !marks_.empty()) bad("values are left over");
        require_values(result);
        return result;
      }
      default: bad("the instruction " + std::to_string(static_cast<int>(op)) + " is not allowed");
    }
  }
}

}  // namespace

IValue unpickle(std::string_view bytes, const std::string& name, const UnpicklerHooks& hooks) { return Machine(bytes, name, hooks).run(); }

// Static types nest less deep than the type reader's bound, and so does the recursion.
bool restore_type(const IValue& v, const TypePtr& type) {
  switch (type->kind) {
    case TypeKind::Optional: return v.isNone() || restore_type(v, type->contained[0]);
    case TypeKind::List: {
      if (!v.isList()) return false;
      ivalue::ListImpl& list = v.toListImpl();
      // A list that has its type was seen before; shared lists are not walked twice.
      if (list.element_type && *list.element_type == *type->contained[0]) return true;
      if (!std::all_of(list.elements.begin(), list.elements.end(), [&](const IValue& e) { return restore_type(e, type->contained[0]); }))
        return false;
      list.element_type = type->contained[0];
      return true;
    }
    case TypeKind::Dict: {
      if (!v.isGenericDict()) return false;
      ivalue::DictImpl& dict = v.toDictImpl();
      if (dict.value_type && *dict.value_type == *type->contained[1] && dict.key_type && *dict.key_type == *type->contained[0]) return true;
      for (const auto& [key, value] : dict.items)
        if (!restore_type(key, type->contained[0]) || !restore_type(value, type->contained[1])) return false;
      dict.key_type = type->contained[0];
      dict.value_type = type->contained[1];
      return true;
    }
    case TypeKind::Tuple: {
      if (!v.isTuple() || v.toTupleRef().elements.size() != type->contained.size()) return false;
      const auto& members = v.toTupleElements();
      for (std::size_t i = 0; i < members.size(); ++i)
        if (!restore_type(members[i], type->contained[i])) return false;
      if (!type->name.empty()) const_cast<ivalue::TupleImpl&>(v.toTupleRef()).type = type;
      return true;
    }
    default: return value_is_of_type(v, *type);
  }
}

const char* quantized_storage_name(ScalarType t) {
  for (const StorageName& s : kQuantized)
    if (s.type == t) return s.name;
  return nullptr;
}

const char* storage_name(ScalarType t) {
  for (const StorageName& s : kStorages)
    if (s.type == t) return s.name;
  return nullptr;
}

}  // namespace cresset::jit
