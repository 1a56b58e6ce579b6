// IValue: conversions, comparison, printing.
#include <algorithm>
#include <unordered_set>

#include <cresset/dispatch/boxing.h>
#include <cresset/dispatch/custom_class.h>
#include <cresset/dispatch/dispatcher.h>
#include <cresset/dispatch/ivalue.h>
#include <cresset/dispatch/script_values.h>

template class std::vector<cresset::IValue>;

namespace cresset {

bool IValue::isModule() const { return isScriptObject() && toObjectRef().type->is_module(); }
template IValue::IValue(ArrayRef<int64_t> values);
template IValue::IValue(ArrayRef<Tensor> values);
template IValue::IValue(const std::vector<int64_t>& values);
template IValue::IValue(const std::vector<Tensor>& values);
ivalue::ListImpl::~ListImpl() = default;
ivalue::TupleImpl::~TupleImpl() = default;
template void impl::push_argument(Stack& stack, const Tensor& v);
template void impl::push_argument(Stack& stack, const Scalar& v);
template void impl::push_argument(Stack& stack, const int64_t& v);
template void impl::push_argument(Stack& stack, const double& v);
template void impl::push_argument(Stack& stack, const bool& v);
template void impl::push_argument(Stack& stack, const IntArrayRef& v);
template void impl::push_argument(Stack& stack, const TensorList& v);
template void impl::push_argument(Stack& stack, const std::optional<Tensor>& v);
template void impl::push_argument(Stack& stack, const std::optional<int64_t>& v);
template void impl::push_argument(Stack& stack, const std::optional<bool>& v);
template void impl::push_argument(Stack& stack, const std::optional<ScalarType>& v);
template void impl::push_argument(Stack& stack, const std::optional<Layout>& v);
template void impl::push_argument(Stack& stack, const std::optional<Device>& v);
template void impl::push_argument(Stack& stack, const std::optional<MemoryFormat>& v);
Tensor impl::Ret<Tensor>::pop_from(IValue& v) { return v.isNone() ? Tensor() : std::move(v).toTensor(); }
void impl::Ret<Tensor>::push(Stack& s, Tensor&& v) { s.emplace_back(std::move(v)); }
void drop(Stack& stack, std::size_t n) { stack.erase(stack.end() - static_cast<std::ptrdiff_t>(n), stack.end()); }

namespace {
// Tensor::clone belongs to a layer above; it is reached through the dispatcher.
Tensor deep_copy_of_tensor(const Tensor& t, std::optional<Device> device) {
  if (device && *device != t.device()) {
    static const auto to = Dispatcher::singleton()
                               .findSchemaOrThrow("aten::to", "device")
                               .typed<Tensor(const Tensor&, Device, ScalarType, bool, bool, std::optional<MemoryFormat>)>();
    return to.call(t, *device, t.scalar_type(), false, true, std::nullopt);
  }
  static const auto clone =
      Dispatcher::singleton().findSchemaOrThrow("aten::clone", "").typed<Tensor(const Tensor&, std::optional<MemoryFormat>)>();
  return clone.call(t, std::nullopt);
}
}  // namespace

IValue::IValue(const Scalar& s) : IValue() {
  if (s.isBoolean())
    *this = IValue(s.toBool());
  else if (s.isUnsigned())
    tag_ = Tag::UInt, payload_.p = make_intrusive<ivalue::UnsignedHolder>(s.toUInt64()).release();
  else if (s.isIntegral(false))
    *this = IValue(s.toLong());
  else if (s.isFloatingPoint())
    *this = IValue(s.toDouble());
  else
    *this = IValue(s.toComplexDouble());
}
IValue::IValue(const Generator& g) : tag_(Tag::Generator) {
  if (g.defined()) {
    payload_.p = intrusive_ptr<GeneratorImpl>(g.getIntrusivePtr()).release();
  } else {
    tag_ = Tag::None;
    payload_.i = 0;
  }
}
IValue::IValue(intrusive_ptr<ivalue::ListImpl> p) noexcept : tag_(Tag::List) { payload_.p = p.release(); }
IValue::IValue(intrusive_ptr<ivalue::TupleImpl> p) noexcept : tag_(Tag::Tuple) { payload_.p = p.release(); }
IValue::IValue(intrusive_ptr<ivalue::DictImpl> p) noexcept : tag_(Tag::Dict) { payload_.p = p.release(); }

IValue::IValue(intrusive_ptr<ivalue::Object> p) noexcept : tag_(Tag::ScriptObject) { payload_.p = p.release(); }
IValue::IValue(intrusive_ptr<ivalue::EnumHolder> p) noexcept : tag_(Tag::Enum) { payload_.p = p.release(); }
IValue::IValue(intrusive_ptr<ivalue::Future> p) noexcept : tag_(Tag::Future) { payload_.p = p.release(); }
IValue::IValue(intrusive_ptr<ivalue::FunctionBase> p) noexcept : tag_(Tag::Function) { payload_.p = p.release(); }

std::string IValue::tagKind() const {
  constexpr const char* names[] = {"None",        "Tensor", "Double",      "ComplexDouble", "Int",       "Bool",    "String",
                                   "GenericList", "Tuple",  "GenericDict", "Device",        "Generator", "Storage", "Object",
                                   "Capsule",     "Object", "Enum",        "Future",        "Function",  "UInt"};
  return names[static_cast<std::size_t>(tag_)];
}

void IValue::raise_tag(const char* what) const {
  CRESSET_THROW(Error, "Expected a value of type '", what, "' but got a value of type '", tagKind(), "' (", to_string(*this), ").");
}

bool IValue::isOptionalTensorList() const {
  return isList() && std::ranges::all_of(toListRef(), [](const IValue& v) { return v.isTensor() || v.isNone(); });
}

bool IValue::is_list_of(Tag t) const {
  if (!isList()) return false;
  for (const IValue& v : toListRef())
    if (v.tag() != t) return false;
  return true;
}

std::complex<double> IValue::toComplexDouble() const {
  if (isDouble() || isInt()) return toDouble();
  require(Tag::Complex, "complex");
  return static_cast<ivalue::ComplexHolder*>(payload_.p)->value;
}

Scalar IValue::toScalar() const {
  switch (tag_) {
    case Tag::Int: return Scalar(payload_.i);
    case Tag::Double: return Scalar(payload_.d);
    case Tag::Bool: return Scalar(payload_.i != 0);
    case Tag::Complex: return Scalar(toComplexDouble());
    case Tag::UInt: return Scalar(static_cast<ivalue::UnsignedHolder*>(payload_.p)->value);
    default: raise_tag("number");
  }
}

Device IValue::toDevice() const {
  require(Tag::Device, "Device");
  return {static_cast<DeviceType>(payload_.i >> 8), static_cast<DeviceIndex>(payload_.i & 0xff)};
}
Generator IValue::toGenerator() const {
  require(Tag::Generator, "Generator");
  return Generator(intrusive_ptr<GeneratorImpl>::reclaim_copy(static_cast<GeneratorImpl*>(payload_.p)));
}
Storage IValue::toStorage() const {
  require(Tag::Storage, "Storage");
  return Storage(intrusive_ptr<StorageImpl>::reclaim_copy(static_cast<StorageImpl*>(payload_.p)));
}
const intrusive_ptr<ivalue::TupleImpl> IValue::toTuple() const {
  require(Tag::Tuple, "Tuple");
  return intrusive_ptr<ivalue::TupleImpl>::reclaim_copy(static_cast<ivalue::TupleImpl*>(payload_.p));
}
intrusive_ptr<ivalue::Object> IValue::toObject() const {
  require(Tag::ScriptObject, "Object");
  return intrusive_ptr<ivalue::Object>::reclaim_copy(static_cast<ivalue::Object*>(payload_.p));
}
ivalue::Object& IValue::toObjectRef() const {
  require(Tag::ScriptObject, "Object");
  return *static_cast<ivalue::Object*>(payload_.p);
}
intrusive_ptr<ivalue::EnumHolder> IValue::toEnumHolder() const {
  require(Tag::Enum, "Enum");
  return intrusive_ptr<ivalue::EnumHolder>::reclaim_copy(static_cast<ivalue::EnumHolder*>(payload_.p));
}
intrusive_ptr<ivalue::Future> IValue::toFuture() const {
  require(Tag::Future, "Future");
  return intrusive_ptr<ivalue::Future>::reclaim_copy(static_cast<ivalue::Future*>(payload_.p));
}
intrusive_ptr<ivalue::FunctionBase> IValue::toFunction() const {
  require(Tag::Function, "Function");
  return intrusive_ptr<ivalue::FunctionBase>::reclaim_copy(static_cast<ivalue::FunctionBase*>(payload_.p));
}
const std::vector<IValue>& IValue::toListRef() const {
  if (isTuple()) return toTupleElements();
  require(Tag::List, "List");
  return static_cast<ivalue::ListImpl*>(payload_.p)->elements;
}
const std::vector<IValue>& IValue::toTupleElements() const {
  require(Tag::Tuple, "Tuple");
  return static_cast<ivalue::TupleImpl*>(payload_.p)->elements;
}
std::vector<int64_t> IValue::toIntVector() const {
  std::vector<int64_t> out;
  for (const IValue& v : toListRef()) out.push_back(v.toInt());
  return out;
}
std::vector<double> IValue::toDoubleVector() const {
  std::vector<double> out;
  for (const IValue& v : toListRef()) out.push_back(v.toDouble());
  return out;
}
std::vector<std::optional<Tensor>> IValue::toOptionalTensorVector() const {
  std::vector<std::optional<Tensor>> out;
  for (const IValue& v : toListRef()) out.push_back(v.isNone() ? std::nullopt : std::optional(v.toTensor()));
  return out;
}

std::vector<Tensor> IValue::toTensorVector() const {
  std::vector<Tensor> out;
  for (const IValue& v : toListRef()) out.push_back(v.toTensor());
  return out;
}
intrusive_ptr<intrusive_ptr_target> IValue::toCapsule() const {
  require(Tag::Capsule, "Capsule");
  return intrusive_ptr<intrusive_ptr_target>::reclaim_copy(payload_.p);
}

namespace {
// Memory that two values may have in common: storages, containers, objects.
void add_memory(const IValue& v, std::unordered_set<const void*>& memory) {
  if (v.isTensor()) {
    if (v.toTensor().defined() && v.toTensor().has_storage()) memory.insert(v.toTensor().storage().unsafeGetStorageImpl());
    return;
  }
  const auto add_all = [&](const void* owner, const std::vector<IValue>& members) {
    if (memory.insert(owner).second)
      for (const IValue& member : members) add_memory(member, memory);
  };
  if (v.isList()) {
    add_all(&v.toListImpl(), v.toListRef());
  } else if (v.isTuple()) {
    for (const IValue& member : v.toTupleElements()) add_memory(member, memory);
  } else if (v.isGenericDict()) {
    if (!memory.insert(&v.toDictImpl()).second) return;
    for (const auto& [key, value] : v.toDictImpl().items) add_memory(key, memory), add_memory(value, memory);
  } else if (v.isScriptObject()) {
    add_all(&v.toObjectRef(), v.toObjectRef().slots());
  }
}
}  // namespace

bool IValue::overlaps(const IValue& o) const {
  std::unordered_set<const void*> mine, others;
  add_memory(*this, mine);
  add_memory(o, others);
  return std::ranges::any_of(others, [&](const void* p) { return mine.count(p) > 0; });
}

int64_t IValue::storage_address() const {
  const cresset::Tensor& t = payload_.t;
  if (!t.defined() || !t.has_storage()) return tensor_address();
  return static_cast<int64_t>(reinterpret_cast<intptr_t>(t.storage().unsafeGetStorageImpl()));
}

namespace {
// What a container or object holds, one after the other.
template <class F>
void each_member(const IValue& v, F&& f) {
  if (v.isList()) {
    for (const IValue& member : v.toListRef()) f(member);
  } else if (v.isTuple()) {
    for (const IValue& member : v.toTupleElements()) f(member);
  } else if (v.isGenericDict()) {
    for (const auto& [key, value] : v.toDictImpl().items) f(key), f(value);
  } else if (v.isScriptObject()) {
    for (const IValue& member : v.toObjectRef().slots()) f(member);
  }
}
bool has_members(const IValue& v) { return v.isList() || v.isTuple() || v.isGenericDict() || v.isScriptObject(); }
}  // namespace

void IValue::getSubValues(HashAliasedIValues& values) const {
  CRESSET_CHECK(!is_counted() || isString() || isComplexDouble() || isUnsigned() || isEnum() || has_members(*this),
                "Cannot inspect value of type ", tagKind());
  CRESSET_CHECK(!isDevice(), "Cannot inspect value of type ", tagKind());
  if (!isTensor() && !has_members(*this)) return;
  if (!values.insert(*this).second) return;
  each_member(*this, [&](const IValue& member) { member.getSubValues(values); });
}

bool IValue::visit(const std::function<bool(const IValue&)>& visitor) const {
  if (visitor(*this)) return true;
  each_member(*this, [&](const IValue& member) { member.visit(visitor); });
  return false;
}

IValue IValue::deepcopy(std::optional<cresset::Device> device) const {
  HashIdentityIValueMap copies;
  return deepcopy(copies, device);
}

IValue IValue::deepcopy(HashIdentityIValueMap& copies, std::optional<cresset::Device> device) const {
  if (!isTensor() && !has_members(*this)) return *this;
  if (isTensor() && !payload_.t.defined()) return *this;
  if (const auto found = copies.find(*this); found != copies.end()) return found->second;
  const auto copy = [&](const IValue& v) { return v.deepcopy(copies, device); };
  // A container goes into the map before its members are copied: one of them may be the container again.
  const auto fill = [&](std::vector<IValue>& into, const std::vector<IValue>& from) {
    into.reserve(from.size());
    for (const IValue& v : from) into.push_back(copy(v));
  };
  switch (tag_) {
    case Tag::Tensor: return copies.emplace(*this, deep_copy_of_tensor(payload_.t, device)).first->second;
    case Tag::List: {
      auto out = make_intrusive<ivalue::ListImpl>(std::vector<IValue>(), toListImpl().element_type);
      copies.emplace(*this, out);
      fill(out->elements, toListRef());
      return out;
    }
    case Tag::Tuple: {
      auto out = make_intrusive<ivalue::TupleImpl>(std::vector<IValue>(), toTupleRef().type);
      copies.emplace(*this, out);
      fill(out->elements, toTupleElements());
      return out;
    }
    case Tag::Dict: {
      auto out = make_intrusive<ivalue::DictImpl>();
      copies.emplace(*this, out);
      out->key_type = toDictImpl().key_type;
      out->value_type = toDictImpl().value_type;
      for (const auto& [k, v] : toDictImpl().items) out->items.insert_or_assign(copy(k), copy(v));
      return out;
    }
    default: {
      intrusive_ptr<ivalue::Object> out = toObject()->copy();
      copies.emplace(*this, out);
      for (std::size_t i = 0; i < out->slots().size(); ++i) out->set_slot(i, copy(out->slot(i)));
      return out;
    }
  }
}

bool operator==(const IValue& a, const IValue& b) {
  if (a.tag_ != b.tag_) return false;
  switch (a.tag_) {
    case IValue::Tag::Tensor: return a.payload_.t.is_same(b.payload_.t);
    case IValue::Tag::Double: return a.payload_.d == b.payload_.d;
    case IValue::Tag::Complex: return a.toComplexDouble() == b.toComplexDouble();
    case IValue::Tag::UInt: return a.toScalar() == b.toScalar();
    case IValue::Tag::Stream: return a.toStream() == b.toStream();
    case IValue::Tag::String: return a.toStringRef() == b.toStringRef();
    case IValue::Tag::List:
    case IValue::Tag::Tuple: return a.toListRef() == b.toListRef();
    case IValue::Tag::Enum: {
      const auto x = a.toEnumHolder(), y = b.toEnumHolder();
      return x == y || (*x->type == *y->type && x->name == y->name);
    }
    case IValue::Tag::Dict: {
      const ivalue::DictItems &x = a.toDictImpl().items, &y = b.toDictImpl().items;
      return x.size() == y.size() && std::all_of(x.begin(), x.end(), [&](const auto& item) {
               const auto at = y.find(item.first);
               return at != y.end() && at->second == item.second;
             });
    }
    default: return a.payload_.i == b.payload_.i;
  }
}

TypePtr IValue::type() const {
  switch (tag_) {
    case Tag::None: return basic_type(TypeKind::None);
    case Tag::Tensor: return basic_type(TypeKind::Tensor);
    case Tag::Double: return basic_type(TypeKind::Float);
    case Tag::Complex: return basic_type(TypeKind::Complex);
    case Tag::Int:
    case Tag::UInt: return basic_type(TypeKind::Int);
    case Tag::Bool: return basic_type(TypeKind::Bool);
    case Tag::String: return basic_type(TypeKind::String);
    case Tag::Device: return basic_type(TypeKind::Device);
    case Tag::Stream: return basic_type(TypeKind::Stream);
    case Tag::Generator: return basic_type(TypeKind::Generator);
    case Tag::Storage: return basic_type(TypeKind::Storage);
    case Tag::Capsule: return basic_type(TypeKind::Capsule);
    case Tag::Object: return custom_class_type_of(*static_cast<CustomClassHolder*>(payload_.p));
    case Tag::ScriptObject: return toObjectRef().type;
    case Tag::Enum: return toEnumHolder()->type;
    case Tag::Future: {
      const auto future = toFuture();
      return future_of(future->element ? future->element : basic_type(TypeKind::Any));
    }
    case Tag::Function: return function_type(toFunction()->qualname());
    case Tag::List: {
      const ivalue::ListImpl& list = toListImpl();
      if (list.element_type) return list_of(list.element_type);
      return list_of(list.elements.empty() ? basic_type(TypeKind::Any) : list.elements[0].type());
    }
    case Tag::Tuple: {
      if (const TypePtr named = toTuple()->type) return named;
      std::vector<TypePtr> members;
      for (const IValue& v : toTupleElements()) members.push_back(v.type());
      return tuple_of(std::move(members));
    }
    default: {
      const ivalue::DictImpl& dict = toDictImpl();
      if (dict.key_type) return dict_of(dict.key_type, dict.value_type);
      const auto any = basic_type(TypeKind::Any);
      return dict.items.empty() ? dict_of(any, any) : dict_of(dict.items.begin()->first.type(), dict.items.begin()->second.type());
    }
  }
}

std::string to_string(const IValue& v) {
  const auto join = [](const std::vector<IValue>& values, const char* open, const char* close) {
    std::string out = open;
    for (std::size_t i = 0; i < values.size(); ++i) out += (i ? ", " : "") + to_string(values[i]);
    return out + close;
  };
  switch (v.tag()) {
    case IValue::Tag::None: return "None";
    case IValue::Tag::Tensor: return to_string(v.toTensor());
    case IValue::Tag::Double:
    case IValue::Tag::Complex:
    case IValue::Tag::Int:
    case IValue::Tag::UInt:
    case IValue::Tag::Bool: return to_string(v.toScalar());
    case IValue::Tag::String: return "'" + v.toStringRef() + "'";
    case IValue::Tag::List: return join(v.toListRef(), "[", "]");
    case IValue::Tag::Tuple: return join(v.toTupleElements(), "(", ")");
    case IValue::Tag::Dict: {
      std::string out = "{";
      for (const auto& [key, value] : v.toDictImpl().items) out += (out.size() > 1 ? ", " : "") + to_string(key) + ": " + to_string(value);
      return out + "}";
    }
    case IValue::Tag::Device: return v.toDevice().str();
    case IValue::Tag::Stream: return to_string(v.toStream());
    case IValue::Tag::ScriptObject: return "<" + v.toObjectRef().type->str() + " object>";
    case IValue::Tag::Enum: return v.toEnumHolder()->type->name + "." + v.toEnumHolder()->name;
    case IValue::Tag::Function: return "<function " + v.toFunction()->qualname() + ">";
    default: return std::string("<") + v.tagKind() + ">";
  }
}

namespace impl {
const Tensor& Arg<Tensor>::none() {
  static const Tensor undefined;
  return undefined;
}

FunctionSchema make_inferred_schema(std::vector<TypePtr> arguments, std::vector<TypePtr> returns) {
  const auto number = [](std::vector<TypePtr> types) {
    std::vector<Argument> out;
    for (std::size_t i = 0; i < types.size(); ++i) {
      Argument a;
      a.name = "_" + std::to_string(i);
      a.type = std::move(types[i]);
      out.push_back(std::move(a));
    }
    return out;
  };
  return FunctionSchema({}, number(std::move(arguments)), number(std::move(returns)));
}
}  // namespace impl
}  // namespace cresset
