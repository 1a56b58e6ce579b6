#include "ir/archive/pickler.h"

#include <bit>
#include <limits>
#include <map>
#include <unordered_map>
#include <unordered_set>

#include <cresset/core/backend_meta.h>
#include <cresset/dispatch/custom_class.h>
#include <cresset/dispatch/dispatcher.h>
#include <cresset/ir/class_type.h>
#include <cresset/ir/function.h>

#include "ir/archive/unpickler.h"

namespace cresset::jit {
namespace {

class Pickler {
 public:
  explicit Pickler(const PicklerHooks& hooks) : hooks_(hooks) {}

  std::string run(const IValue& v) {
    out_ = "\x80\x02";
    push(v, nullptr);
    out_ += '.';
    return std::move(out_);
  }

 private:
  template <class T>
  void number(T v) {
    out_.append(reinterpret_cast<const char*>(&v), sizeof v);
  }
  void integer(int64_t v) {
    if (v >= 0 && v <= 0xff) {
      out_ += 'K';
      number(static_cast<uint8_t>(v));
    } else if (v >= 0 && v <= 0xffff) {
      out_ += 'M';
      number(static_cast<uint16_t>(v));
    } else if (v >= std::numeric_limits<int32_t>::min() && v <= std::numeric_limits<int32_t>::max()) {
      out_ += 'J';
      number(static_cast<int32_t>(v));
    } else {
      out_ += "\x8a\x08";
      number(v);
    }
  }
  void floating(double v) {
    out_ += 'G';
    number(__builtin_bswap64(std::bit_cast<uint64_t>(v)));
  }

  // The memo: texts and names by what they say, objects by their address (which `kept_` keeps from being used again).
  void put() {
    if (next_memo_ <= 0xff) {
      out_ += 'q';
      number(static_cast<uint8_t>(next_memo_));
    } else {
      out_ += 'r';
      number(next_memo_);
    }
    ++next_memo_;
  }
  void get(uint32_t i) {
    if (i <= 0xff) {
      out_ += 'h';
      number(static_cast<uint8_t>(i));
    } else {
      out_ += 'j';
      number(i);
    }
  }
  void memoized(const std::string& key, const std::string& code) {
    const auto [found, added] = text_memo_.emplace(key, next_memo_);
    if (!added) return get(found->second);
    out_ += code;
    put();
  }
  void global(const std::string& module, const std::string& name) {
    memoized("c" + module + "\n" + name, "c" + module + "\n" + name + "\n");
  }
  void text(const std::string& s) {
    CRESSET_CHECK(s.size() <= std::numeric_limits<uint32_t>::max(), "archive: ", path_, " is a string of more than 4 GiB.");
    std::string code = "X";
    const auto size = static_cast<uint32_t>(s.size());
    code.append(reinterpret_cast<const char*>(&size), sizeof size);
    memoized("s" + s, code + s);
  }
  void class_name(const TypePtr& type) {
    const std::string qualified = hooks_.type_name(type);
    const std::size_t dot = qualified.rfind('.');
    CRESSET_CHECK(dot != std::string::npos, "archive: ", path_, ": the class '", qualified, "' is in no package.");
    global(qualified.substr(0, dot), qualified.substr(dot + 1));
  }
  template <class F>
  void tuple(std::size_t size, F each) {
    if (size == 0) {
      out_ += ')';
      return;
    }
    if (size > 3) out_ += '(';
    for (std::size_t i = 0; i < size; ++i) each(i);
    out_ += size > 3 ? 't' : static_cast<char>(0x85 + size - 1);
  }
  void integers(IntArrayRef values) {
    out_ += '(';
    for (int64_t v : values) integer(v);
    out_ += 't';
  }

  static const void* address(const IValue& v) {
    if (v.isTensor()) return v.unsafeToTensorImpl();
    if (v.isList()) return &v.toListImpl();
    if (v.isGenericDict()) return &v.toDictImpl();
    if (v.isTuple()) return v.toTupleElements().empty() ? nullptr : &v.toTupleRef();
    if (v.isScriptObject()) return &v.toObjectRef();
    if (v.isCustomClass()) return v.toCustomClassHolder().get();
    return nullptr;
  }

  void push(const IValue& v, const TypePtr& type);
  void value(const IValue& v, const TypePtr& type);
  void member(const IValue& v, const TypePtr& type, const std::string& step) {
    const std::size_t size = path_.size();
    path_ += step;
    push(v, type);
    path_.resize(size);
  }
  void tensor(const Tensor& t);
  void sparse_tensor(const Tensor& t);
  bool quantized_tensor(const Tensor& t);
  void storage(const Tensor& t, const char* type);
  void list(const IValue& v, const TypePtr& type);
  void dict(const IValue& v, const TypePtr& type);
  void object(const IValue& v);
  void custom_object(const IValue& v);

  const PicklerHooks& hooks_;
  std::string out_, path_ = "module";
  uint32_t next_memo_ = 0;
  std::size_t depth_ = 0;
  std::unordered_map<std::string, uint32_t> text_memo_;
  std::unordered_map<const void*, uint32_t> memo_;
  std::unordered_set<const void*> unfinished_;
  std::vector<IValue> kept_;
};

void Pickler::push(const IValue& v, const TypePtr& type) {
  const void* at = address(v);
  if (!at) return value(v, type);
  if (const auto found = memo_.find(at); found != memo_.end()) return get(found->second);
  CRESSET_CHECK_VALUE(unfinished_.insert(at).second, "archive: ", path_, " contains itself, which archives cannot hold.");
  CRESSET_CHECK_VALUE(++depth_ < kDeepestPickle / 2, "archive: ", path_.substr(0, 100), "... nests too deep.");
  value(v, type);
  --depth_;
  unfinished_.erase(at);
  memo_.emplace(at, next_memo_);
  kept_.push_back(v);
  put();
}

void Pickler::value(const IValue& v, const TypePtr& type) {
  switch (v.tag()) {
    case IValue::Tag::None: out_ += 'N'; break;
    case IValue::Tag::Bool: out_ += v.toBool() ? '\x88' : '\x89'; break;
    case IValue::Tag::Int: integer(v.toInt()); break;
    case IValue::Tag::Double: floating(v.toDouble()); break;
    case IValue::Tag::String: text(v.toStringRef()); break;
    case IValue::Tag::Tensor: tensor(v.toTensor()); break;
    case IValue::Tag::List: list(v, type); break;
    case IValue::Tag::Dict: dict(v, type); break;
    case IValue::Tag::ScriptObject: object(v); break;
    case IValue::Tag::Object: custom_object(v); break;
    case IValue::Tag::Complex:
      global("builtins", "complex");
      floating(v.toComplexDouble().real());
      floating(v.toComplexDouble().imag());
      out_ += "\x86R";
      break;
    case IValue::Tag::Device:
      global("torch", "device");
      text(v.toDevice().str());
      out_ += "\x85R";
      break;
    case IValue::Tag::Tuple: {
      const auto& members = v.toTupleElements();
      const bool typed = type && type->kind == TypeKind::Tuple && type->contained.size() == members.size();
      tuple(members.size(),
            [&](std::size_t i) { member(members[i], typed ? type->contained[i] : nullptr, "[" + std::to_string(i) + "]"); });
      break;
    }
    case IValue::Tag::Enum: {
      const auto holder = v.toEnumHolder();
      class_name(holder->type);
      push(holder->value, nullptr);
      out_ += 'R';
      break;
    }
    default: CRESSET_THROW(TypeError, "archive: ", path_, " is a value of type '", v.type()->str(), "', which archives cannot hold.");
  }
}

// (layout, sizes, requires_grad, parts…, hooks)
void Pickler::sparse_tensor(const Tensor& t) {
  constexpr const char *kCoordinates[] = {"aten::_indices", "aten::_values"},
                       *kRows[] = {"aten::crow_indices", "aten::col_indices", "aten::values"};
  const ArrayRef<const char*> names = t.layout() == Layout::Sparse ? ArrayRef<const char*>(kCoordinates) : ArrayRef<const char*>(kRows);
  std::vector<Tensor> parts;
  for (const char* name : names) parts.push_back(call_python_operator(name, "", {IValue(t)}, "sparse tensors")[0].toTensor().detach());
  global("torch._utils", "_rebuild_sparse_tensor");
  out_ += '(';
  integer(static_cast<int64_t>(t.layout()));
  integers(t.sizes());
  out_ += t.requires_grad() ? '\x88' : '\x89';
  for (const Tensor& part : parts) tensor(part);
  global("collections", "OrderedDict");
  out_ += ")RtR";
}

// (storage, offset, sizes, strides, (scheme, scale, zero point[, axis]), requires_grad, hooks); false for a tensor that is not quantized.
bool Pickler::quantized_tensor(const Tensor& t) {
  if (!Dispatcher::singleton().findSchema({kQuantizedParts, ""})) return false;
  const impl::ExcludeDispatchKeyGuard below_classes(
      DispatchKey::Python);  // it asks any tensor, whatever the tensor's class makes of operators
  const Stack parts = call_python_operator(kQuantizedParts, "", {IValue(t)}, "quantized tensors");
  const int64_t axis = parts.at(3).toInt();
  if (axis < -1) return false;
  const Tensor numbers = parts[0].toTensor(), scales = parts[1].toTensor(), zero_points = parts[2].toTensor();
  global("torch._utils", "_rebuild_qtensor");
  out_ += '(';
  storage(numbers, quantized_storage_name(numbers.scalar_type()));
  integer(numbers.storage_offset());
  integers(numbers.sizes());
  integers(numbers.strides());
  out_ += '(';
  global("torch", quantization_schemes()[axis < 0 ? 0 : isFloatingType(zero_points.scalar_type()) ? 2 : 1]);
  if (axis < 0) {
    floating(scales.item<double>());
    integer(zero_points.item<int64_t>());
  } else {
    tensor(scales);
    tensor(zero_points);
    integer(axis);
  }
  out_ += "t\x89";
  global("collections", "OrderedDict");
  out_ += ")RtR";
  return true;
}

// The persistent id of the storage of a tensor.
void Pickler::storage(const Tensor& t, const char* type) {
  out_ += '(';
  text("storage");
  global("torch", type);
  text(hooks_.storage_key(t));
  text(t.device().str());
  integer(static_cast<int64_t>(t.storage().nbytes() / t.itemsize()));
  out_ += "tQ";
}

void Pickler::tensor(const Tensor& t) {
  if (t.defined() && is_sparse_layout(t.layout())) return sparse_tensor(t);
  if (t.defined() && !t.has_storage() && quantized_tensor(t)) return;
  CRESSET_CHECK(t.defined() && t.has_storage() && t.layout() == Layout::Strided, "archive: ", path_,
                " is a tensor without storage, which archives cannot hold.");
  const char* type = storage_name(t.scalar_type());
  CRESSET_CHECK(type, "archive: ", path_, " is a tensor of type ", t.scalar_type(), ", which archives cannot hold.");
  global("torch._utils", "_rebuild_tensor_v2");
  out_ += '(';
  storage(t, type);
  integer(t.storage_offset());
  integers(t.sizes());
  integers(t.strides());
  out_ += t.requires_grad() ? '\x88' : '\x89';
  global("collections", "OrderedDict");
  out_ += ")R";
  if (const BackendMetaFacts facts = backend_meta_facts(t); !facts.empty()) {
    global("torch.jit._pickle", "restore_type_tag");
    out_ += "}(";
    for (const auto& [name, fact] : std::map(facts.begin(), facts.end())) {
      text(name);
      out_ += fact ? '\x88' : '\x89';
    }
    out_ += 'u';
    text("Dict[str, bool]");
    out_ += "\x86R";
  }
  out_ += "tR";
}

void Pickler::list(const IValue& v, const TypePtr& type) {
  const ivalue::ListImpl& list = v.toListImpl();
  TypePtr element = list.element_type;
  if (!element) element = type && type->kind == TypeKind::Optional ? type->contained[0] : type;
  if (!list.element_type) element = element && element->kind == TypeKind::List ? element->contained[0] : v.type()->contained[0];
  const char* builder = element->kind == TypeKind::Int      ? "build_intlist"
                        : element->kind == TypeKind::Float  ? "build_doublelist"
                        : element->kind == TypeKind::Bool   ? "build_boollist"
                        : element->kind == TypeKind::Tensor ? "build_tensorlist"
                                                            : nullptr;
  global("torch.jit._pickle", builder ? builder : "restore_type_tag");
  if (builder) out_ += '(';
  out_ += "](";
  for (std::size_t i = 0; i < list.elements.size(); ++i) member(list.elements[i], element, "[" + std::to_string(i) + "]");
  out_ += 'e';
  if (builder) {
    out_ += "tR";
  } else {
    text("List[" + hooks_.annotation(element) + "]");
    out_ += "\x86R";
  }
}

void Pickler::dict(const IValue& v, const TypePtr& type) {
  const ivalue::DictImpl& dict = v.toDictImpl();
  TypePtr whole = type && type->kind == TypeKind::Optional ? type->contained[0] : type;
  if (dict.key_type && dict.value_type) whole = dict_of(dict.key_type, dict.value_type);
  if (!whole || whole->kind != TypeKind::Dict) whole = v.type();
  global("torch.jit._pickle", "restore_type_tag");
  out_ += "}(";
  for (const auto& [key, item] : dict.items) {
    member(key, whole->contained[0], ".key");
    member(item, whole->contained[1], "[" + to_string(key) + "]");
  }
  out_ += 'u';
  text(hooks_.annotation(whole));
  out_ += "\x86R";
}

void Pickler::object(const IValue& v) {
  const ivalue::Object& object = v.toObjectRef();
  const auto cls = object.type->cast<ClassType>();
  CRESSET_CHECK(cls && !cls->is_opaque(), "archive: ", path_, " is an object of an unknown class '", object.type->str(), "'.");
  class_name(object.type);
  out_ += ")\x81";
  if (Function* get_state = cls->findMethod("__getstate__")) {
    CRESSET_CHECK(cls->findMethod("__setstate__"), "archive: ", path_, ": class '", cls->name, "' has __getstate__ but no __setstate__.");
    const TypePtr state_type = get_state->getSchema().returns().at(0).type;
    member((*get_state)(Stack{v}), state_type, ".__getstate__()");
  } else {
    out_ += "}(";
    for (std::size_t i = 0; i < cls->numAttributes(); ++i) {
      const ClassAttribute& a = cls->attributes()[i];
      text(a.name);
      member(i < object.slots.size() ? object.slot(i) : IValue(), a.type, "." + a.name);
    }
    out_ += 'u';
  }
  out_ += 'b';
}

// An object of a class that C++ code registered.
void Pickler::custom_object(const IValue& v) {
  const CustomClassInfo* info = find_custom_class(typeid(*v.toCustomClassHolder()));
  CRESSET_CHECK(info && info->has_state(), "archive: ", path_, " is an object of the C++ class '",
                info ? info->qualified_name : v.type()->str(), "', which has no def_pickle. Give it one to save it.");
  const std::size_t dot = info->qualified_name.rfind('.');
  global(info->qualified_name.substr(0, dot), info->qualified_name.substr(dot + 1));
  out_ += ")\x81";
  member(info->get_state(v), nullptr, ".__getstate__()");
  out_ += 'b';
}

}  // namespace

Stack call_python_operator(const char* name, const char* overload, Stack stack, const char* what) {
  const auto op = Dispatcher::singleton().findSchema({name, overload});
  CRESSET_CHECK_NOT_IMPLEMENTED(op, "archive: ", what, " need ", name, ", which the Python package defines. Load it first.");
  op->callBoxed(&stack);
  return stack;
}

std::string pickle(const IValue& v, const PicklerHooks& hooks) { return Pickler(hooks).run(v); }

}  // namespace cresset::jit
