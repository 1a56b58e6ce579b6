// IValue: any value an operator can take or return, 16 bytes. Stack: a vector of them.
#pragma once

#include <cstring>
#include <functional>
#include <map>
#include <new>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include <cresset/core/stream.h>
#include <cresset/core/tensor.h>
#include <cresset/dispatch/type.h>

namespace cresset {

class IValue;
using Stack = std::vector<IValue>;
template <class T>
class List;
template <class K, class V>
class Dict;
namespace jit {
class Module;
}

/// Base of user classes that travel through IValues (torch::CustomClassHolder).
struct CRESSET_API CustomClassHolder : intrusive_ptr_target {};

namespace ivalue {
/// A string shared between values; only who holds the one reference may change it.
struct ConstantString final : intrusive_ptr_target {
  explicit ConstantString(std::string s) : text(std::move(s)) {}
  static intrusive_ptr<ConstantString> create(std::string s) { return make_intrusive<ConstantString>(std::move(s)); }
  const std::string& string() const { return text; }
  std::string text;
};
struct UnsignedHolder final : intrusive_ptr_target {
  explicit UnsignedHolder(uint64_t v) : value(v) {}
  uint64_t value;
};
struct ComplexHolder final : intrusive_ptr_target {
  explicit ComplexHolder(std::complex<double> v) : value(v) {}
  const std::complex<double> value;
};
struct StreamHolder final : intrusive_ptr_target {
  explicit StreamHolder(Stream s) : value(s) {}
  const Stream value;
};
struct ListImpl;
struct TupleImpl;
struct DictImpl;
// Of scripts (script_values.h).
struct Object;
struct EnumHolder;
struct Future;
/// Base of everything callable that travels as a value (jit::Function).
struct CRESSET_API FunctionBase : intrusive_ptr_target {
  virtual const std::string& qualname() const = 0;
};
}  // namespace ivalue

namespace detail {
/// Not pointers other than texts: lists of nodes are no lists of bools.
template <class T>
concept is_list_element = std::is_constructible_v<IValue, T> && (!std::is_pointer_v<T> || std::is_same_v<T, const char*>);
}  // namespace detail

/// A tagged value. Lists, tuples and dicts are shared by reference, as in Python.
class CRESSET_API IValue {
 public:
  enum class Tag : uint32_t {
    None,
    Tensor,
    Double,
    Complex,
    Int,
    Bool,
    String,
    List,
    Tuple,
    Dict,
    Device,
    Generator,
    Storage,
    Object,
    Capsule,
    ScriptObject,
    Enum,
    Future,
    Function,
    UInt,
    Stream
  };

  IValue() noexcept : tag_(Tag::None) {}
  IValue(std::nullopt_t) noexcept : IValue() {}
  IValue(const IValue& o) noexcept : tag_(o.tag_) {
    if (tag_ == Tag::Tensor) {
      new (&payload_.t) cresset::Tensor(o.payload_.t);
    } else {
      payload_.i = o.payload_.i;
      if (is_counted()) intrusive_ops::incref(payload_.p);
    }
  }
  IValue(IValue&& o) noexcept : tag_(Tag::None) { take(o); }
  IValue& operator=(IValue o) noexcept {
    drop();
    take(o);
    return *this;
  }
  ~IValue() { drop(); }
  void swap(IValue& o) noexcept { std::swap(*this, o); }
  /// A value that nobody may look at; here None.
  static IValue uninitialized() { return IValue(); }

  IValue(cresset::Tensor t) noexcept : tag_(Tag::Tensor) { new (&payload_.t) cresset::Tensor(std::move(t)); }
  IValue(double v) noexcept : tag_(Tag::Double) { payload_.d = v; }
  IValue(int64_t v) noexcept : tag_(Tag::Int) { payload_.i = v; }
  IValue(int32_t v) noexcept : IValue(static_cast<int64_t>(v)) {}
  template <class T, class = std::enable_if_t<std::is_same_v<T, bool>>>
  IValue(T v) noexcept : tag_(Tag::Bool) {
    payload_.i = v;
  }  // a template: what turns into a bool by itself must not become one
  /// As PyTorch's: a pointer is taken for a bool. Programs that compile against it have such places, most of them by mistake.
  template <class T>
    requires(std::is_object_v<T> && !std::is_same_v<T, char>)  // char* is a text, as const char* is
  [[deprecated("a pointer becomes the bool that says whether it is one: say `p != nullptr`, or `*p`")]]
  IValue(T* p) noexcept
      : IValue(p != nullptr) {}
  IValue(std::complex<double> v) : tag_(Tag::Complex) { payload_.p = make_intrusive<ivalue::ComplexHolder>(v).release(); }
  IValue(const char* s) : IValue(std::string(s)) {}
  IValue(std::string s) : tag_(Tag::String) { payload_.p = make_intrusive<ivalue::ConstantString>(std::move(s)).release(); }
  IValue(std::string_view s) : IValue(std::string(s)) {}
  IValue(intrusive_ptr<ivalue::ConstantString> p) noexcept : tag_(p ? Tag::String : Tag::None) { payload_.p = p.release(); }
  IValue(ScalarType t) noexcept : IValue(static_cast<int64_t>(t)) {}
  IValue(Layout t) noexcept : IValue(static_cast<int64_t>(t)) {}
  IValue(MemoryFormat t) noexcept : IValue(static_cast<int64_t>(t)) {}
  IValue(cresset::Device d) noexcept : tag_(Tag::Device) {
    payload_.i = static_cast<int64_t>(d.type()) << 8 | static_cast<uint8_t>(d.index());
  }
  IValue(cresset::Stream s) : tag_(Tag::Stream) { payload_.p = make_intrusive<ivalue::StreamHolder>(s).release(); }
  IValue(const Scalar& s);
  IValue(const Generator& g);
  IValue(Storage s) noexcept : tag_(Tag::Storage) { payload_.p = intrusive_ptr<StorageImpl>(s.getIntrusivePtr()).release(); }
  IValue(intrusive_ptr<ivalue::ListImpl> p) noexcept;
  IValue(intrusive_ptr<ivalue::TupleImpl> p) noexcept;
  IValue(intrusive_ptr<ivalue::DictImpl> p) noexcept;
  IValue(intrusive_ptr<ivalue::Object> p) noexcept;
  IValue(intrusive_ptr<ivalue::EnumHolder> p) noexcept;
  IValue(intrusive_ptr<ivalue::Future> p) noexcept;
  IValue(intrusive_ptr<ivalue::FunctionBase> p) noexcept;
  template <class T, class = std::enable_if_t<std::is_base_of_v<CustomClassHolder, T>>>
  IValue(intrusive_ptr<T> p) noexcept : tag_(Tag::Object) {
    payload_.p = p.release();
  }
  static IValue make_capsule(intrusive_ptr<intrusive_ptr_target> p) noexcept {
    IValue v;
    v.payload_.p = p.release();
    v.tag_ = v.payload_.p ? Tag::Capsule : Tag::None;
    return v;
  }
  template <class T>
  IValue(const std::optional<T>& v) : IValue() {
    if (v) *this = IValue(*v);
  }
  // Lists of what is a value: of anything else they are not, and other overloads of a caller's have their turn.
  template <class T>
    requires detail::is_list_element<T>
  IValue(ArrayRef<T> values);
  template <class T>
    requires detail::is_list_element<T>
  IValue(const std::vector<T>& values);
  template <class T, std::size_t N>
    requires detail::is_list_element<T>
  IValue(const std::array<T, N>& values);
  template <class T>
  IValue(const OptionalArrayRef<T>& values) : IValue() {
    if (values) *this = IValue(*values);
  }
  template <class... T>
  IValue(const std::tuple<T...>& values);
  template <class T>
  IValue(const List<T>& list) noexcept;
  template <class K, class V>
  IValue(const Dict<K, V>& dict) noexcept;
  template <class K, class V>
  IValue(const std::unordered_map<K, V>& map);
  IValue(SymInt v) noexcept : IValue(v.value) {}

  Tag tag() const { return tag_; }
  std::string tagKind() const;
  bool isNone() const { return tag_ == Tag::None; }
  bool isTensor() const { return tag_ == Tag::Tensor; }
  bool isDouble() const { return tag_ == Tag::Double; }
  bool isInt() const { return tag_ == Tag::Int; }
  bool isBool() const { return tag_ == Tag::Bool; }
  bool isComplexDouble() const { return tag_ == Tag::Complex; }
  /// An integer beyond the largest int64_t: what a Scalar holds, no type of scripts.
  bool isUnsigned() const { return tag_ == Tag::UInt; }
  bool isScalar() const { return isDouble() || isInt() || isBool() || isComplexDouble() || isUnsigned(); }
  bool isString() const { return tag_ == Tag::String; }
  bool isList() const { return tag_ == Tag::List; }
  bool isTuple() const { return tag_ == Tag::Tuple; }
  bool isGenericDict() const { return tag_ == Tag::Dict; }
  bool isDevice() const { return tag_ == Tag::Device; }
  bool isStream() const { return tag_ == Tag::Stream; }
  bool isGenerator() const { return tag_ == Tag::Generator; }
  bool isStorage() const { return tag_ == Tag::Storage; }
  /// An object of a script's class, or one of a C++ class (isCustomClass).
  bool isObject() const { return tag_ == Tag::ScriptObject || tag_ == Tag::Object; }
  bool isCustomClass() const { return tag_ == Tag::Object; }
  bool isScriptObject() const { return tag_ == Tag::ScriptObject; }
  /// An object of a module's class?
  bool isModule() const;
  /// The object as a module; of libcresset_ir, complete with cresset/ir/module.h.
  jit::Module toModule() const;
  bool isEnum() const { return tag_ == Tag::Enum; }
  bool isFuture() const { return tag_ == Tag::Future; }
  bool isFunction() const { return tag_ == Tag::Function; }
  bool isPtrType() const { return is_counted() || isTensor(); }
  bool isCapsule() const { return tag_ == Tag::Capsule; }
  /// Lists whose elements are all of one tag; an empty list counts as every kind of list.
  bool isTensorList() const { return is_list_of(Tag::Tensor); }
  bool isIntList() const { return is_list_of(Tag::Int); }
  bool isDoubleList() const { return is_list_of(Tag::Double); }
  bool isBoolList() const { return is_list_of(Tag::Bool); }
  /// A list whose elements are tensors or None.
  bool isOptionalTensorList() const;

  /// The tensor in place: valid while this IValue lives and holds it, writable where the IValue is.
  const cresset::Tensor& toTensor() const& {
    require(Tag::Tensor, "Tensor");
    return payload_.t;
  }
  cresset::Tensor& toTensor() & {
    require(Tag::Tensor, "Tensor");
    return payload_.t;
  }
  cresset::Tensor toTensor() && {
    require(Tag::Tensor, "Tensor");
    cresset::Tensor t = std::move(payload_.t);
    drop();
    return t;
  }
  double toDouble() const {
    if (isInt()) return static_cast<double>(payload_.i);
    require(Tag::Double, "double");
    return payload_.d;
  }
  int64_t toInt() const {
    require(Tag::Int, "int");
    return payload_.i;
  }
  bool toBool() const {
    require(Tag::Bool, "bool");
    return payload_.i != 0;
  }
  std::complex<double> toComplexDouble() const;
  Scalar toScalar() const;
  const std::string& toStringRef() const {
    require(Tag::String, "str");
    return static_cast<ivalue::ConstantString*>(payload_.p)->text;
  }
  std::string_view toStringView() const { return toStringRef(); }
  intrusive_ptr<ivalue::ConstantString> toString() const {
    toStringRef();
    return intrusive_ptr<ivalue::ConstantString>::reclaim_copy(static_cast<ivalue::ConstantString*>(payload_.p));
  }
  std::optional<std::string_view> toOptionalStringRef() const { return isNone() ? std::nullopt : std::optional(toStringView()); }
  SymInt toSymInt() const { return toInt(); }
  ScalarType toScalarType() const { return static_cast<ScalarType>(toInt()); }
  Layout toLayout() const { return static_cast<Layout>(toInt()); }
  MemoryFormat toMemoryFormat() const { return static_cast<MemoryFormat>(toInt()); }
  cresset::Device toDevice() const;
  cresset::Stream toStream() const {
    require(Tag::Stream, "Stream");
    return static_cast<ivalue::StreamHolder*>(payload_.p)->value;
  }
  Generator toGenerator() const;
  cresset::Storage toStorage() const;
  /// The containers in place, without taking part in their ownership.
  ivalue::ListImpl& toListImpl() const;
  ivalue::DictImpl& toDictImpl() const;
  const intrusive_ptr<ivalue::TupleImpl> toTuple() const;
  /// Typed handles of them (cresset/dispatch/list.h, dict.h).
  List<IValue> toList() const;
  List<int64_t> toIntList() const;
  List<double> toDoubleList() const;
  List<bool> toBoolList() const;
  List<cresset::Tensor> toTensorList() const;
  List<std::optional<cresset::Tensor>> toOptionalTensorList() const;
  Dict<IValue, IValue> toGenericDict() const;
  intrusive_ptr<ivalue::Object> toObject() const;
  ivalue::Object& toObjectRef() const;
  intrusive_ptr<ivalue::EnumHolder> toEnumHolder() const;
  intrusive_ptr<ivalue::Future> toFuture() const;
  intrusive_ptr<ivalue::FunctionBase> toFunction() const;
  const std::vector<IValue>& toListRef() const;
  const std::vector<IValue>& toTupleElements() const;
  const ivalue::TupleImpl& toTupleRef() const;
  std::vector<int64_t> toIntVector() const;
  std::vector<double> toDoubleVector() const;
  std::vector<cresset::Tensor> toTensorVector() const;
  /// Of a list whose elements are tensors or None.
  std::vector<std::optional<cresset::Tensor>> toOptionalTensorVector() const;
  intrusive_ptr<intrusive_ptr_target> toCapsule() const;
  template <class T>
  intrusive_ptr<T> toCustomClass() const {
    require(Tag::Object, "custom class object");
    T* p = dynamic_cast<T*>(payload_.p);
    CRESSET_CHECK_TYPE(p, "IValue: the object is of another class than the one asked for.");
    return intrusive_ptr<T>::reclaim_copy(p);
  }
  intrusive_ptr<CustomClassHolder> toCustomClassHolder() const {
    require(Tag::Object, "custom class object");
    return intrusive_ptr<CustomClassHolder>::reclaim_copy(static_cast<CustomClassHolder*>(payload_.p));
  }
  /// Conversion to any type that a kernel may take (cresset/dispatch/boxing.h).
  template <class T>
  T to() const;
  template <class T>
  std::optional<T> toOptional() const {
    return isNone() ? std::nullopt : std::optional<T>(to<T>());
  }

  /// Same kind and same value (tensors: the same object; containers: element by element).
  friend CRESSET_API bool operator==(const IValue& a, const IValue& b);
  /// The most specific type that is evident from the value.
  TypePtr type() const;
  /// Same object, or tensors on one storage?
  bool isAliasOf(const IValue& o) const {
    return isTensor() && o.isTensor() ? payload_.t.is_alias_of(o.payload_.t) : is_counted() && tag_ == o.tag_ && payload_.p == o.payload_.p;
  }
  /// Do the two hold, at any depth, the same container or object, or tensors on one storage?
  bool overlaps(const IValue& o) const;
  /// A copy that shares nothing with this value: tensors are cloned (to the device, where one is named), containers and objects of
  /// scripts copied to the depth; objects of C++ classes are shared. What occurs twice in it is copied once.
  IValue deepcopy(std::optional<cresset::Device> device = std::nullopt) const;
  TensorImpl* unsafeToTensorImpl() const { return payload_.t.unsafeGetTensorImpl(); }
  /// For maps by identity: is it the same tensor, or else the same object or value?
  struct CompIdentityIValues {
    bool operator()(const IValue& a, const IValue& b) const { return a.is(b); }
  };
  /// Of equal values (CompIdentityIValues) equal numbers.
  struct HashIdentityIValue {
    std::size_t operator()(const IValue& v) const { return static_cast<std::size_t>(v.isTensor() ? v.tensor_address() : v.payload_.i); }
  };
  using HashIdentityIValueMap = std::unordered_map<IValue, IValue, HashIdentityIValue, CompIdentityIValues>;
  /// The same with the copies that were made before, by their originals, to which it adds its own.
  IValue deepcopy(HashIdentityIValueMap& copies, std::optional<cresset::Device> device = std::nullopt) const;
  // For sets and maps by memory: tensors on one storage are one, and so are two values that share a container or object.
  struct HashAliasedIValue {
    std::size_t operator()(const IValue& v) const { return static_cast<std::size_t>(v.isTensor() ? v.storage_address() : v.payload_.i); }
  };
  struct CompAliasedIValues {
    bool operator()(const IValue& a, const IValue& b) const { return a.isAliasOf(b); }
  };
  using HashAliasedIValues = std::unordered_set<IValue, HashAliasedIValue, CompAliasedIValues>;
  using HashAliasedIValueMap = std::unordered_map<IValue, IValue, HashAliasedIValue, CompAliasedIValues>;
  /// Adds this value and all that it contains, as far as it is a tensor, container or object. Numbers and texts add nothing; values that
  /// cannot be looked into (futures, devices, objects of C++ classes) raise.
  void getSubValues(HashAliasedIValues& values) const;
  /// Calls `visitor` for this value and, where it gives false, for what it contains. Gives what the visitor gave for this value.
  bool visit(const std::function<bool(const IValue&)>& visitor) const;
  const IValue& toIValue() const { return *this; }
  /// Same object?
  bool is(const IValue& o) const { return tag_ == o.tag_ && (isTensor() ? payload_.t.is_same(o.payload_.t) : payload_.i == o.payload_.i); }

 private:
  // Does payload_.p own a reference? (Tensors look after themselves.)
  bool is_counted() const {
    return tag_ != Tag::None && tag_ != Tag::Tensor && tag_ != Tag::Double && tag_ != Tag::Int && tag_ != Tag::Bool &&
           tag_ != Tag::Device && payload_.p;
  }
  // Leaves None behind.
  void drop() noexcept {
    if (tag_ == Tag::Tensor)
      payload_.t.~Tensor();
    else if (is_counted())
      intrusive_ops::decref(payload_.p);
    tag_ = Tag::None;
    payload_.i = 0;
  }
  // Moves o's value into this None.
  void take(IValue& o) noexcept {
    tag_ = o.tag_;
    if (tag_ == Tag::Tensor) {
      new (&payload_.t) cresset::Tensor(std::move(o.payload_.t));
      o.drop();
    } else {
      payload_.i = o.payload_.i;
      o.tag_ = Tag::None;
    }
  }
  int64_t tensor_address() const { return static_cast<int64_t>(reinterpret_cast<intptr_t>(payload_.t.unsafeGetTensorImpl())); }
  // Of the storage; of the tensor where it has none.
  int64_t storage_address() const;
  void require(Tag t, const char* what) const {
    if (CRESSET_UNLIKELY(tag_ != t)) raise_tag(what);
  }
  [[noreturn]] void raise_tag(const char* what) const;
  bool is_list_of(Tag t) const;

  union Payload {
    Payload() noexcept : i(0) {}
    ~Payload() {}
    int64_t i;
    double d;
    intrusive_ptr_target* p;
    cresset::Tensor t;
  } payload_;
  Tag tag_;
};
static_assert(sizeof(IValue) == 16);

namespace ivalue {
struct CRESSET_API ListImpl final : intrusive_ptr_target {
  ListImpl() = default;
  ~ListImpl() override;
  explicit ListImpl(std::vector<IValue> v, TypePtr t = nullptr) : elements(std::move(v)), element_type(std::move(t)) {}
  std::vector<IValue> elements;
  TypePtr element_type;  // may be null: then evident from the elements
};
/// The members; also PyTorch's accessor of the same name.
struct TupleElements : std::vector<IValue> {
  using std::vector<IValue>::vector;
  TupleElements(std::vector<IValue> v) : std::vector<IValue>(std::move(v)) {}
  const TupleElements& operator()() const { return *this; }
  const std::vector<IValue>& vec() const { return *this; }
};
struct CRESSET_API TupleImpl final : intrusive_ptr_target {
  ~TupleImpl() override;
  explicit TupleImpl(std::vector<IValue> v, TypePtr t = nullptr) : elements(std::move(v)), type(std::move(t)) {}
  static intrusive_ptr<TupleImpl> create(std::vector<IValue> v) { return make_intrusive<TupleImpl>(std::move(v)); }
  template <class... T>
  static intrusive_ptr<TupleImpl> create(T&&... values) {
    return make_intrusive<TupleImpl>(std::vector<IValue>{IValue(std::forward<T>(values))...});
  }
  std::size_t size() const { return elements.size(); }
  TupleElements elements;
  TypePtr type;  // of named tuples; null: evident from the elements
};
using Tuple = TupleImpl;
/// The entries of a dict in order of insertion, as Python's, each found by its key in constant time. Keys compare as IValues do (tensors
/// by identity). Inserting invalidates pointers and iterators; erasing does not move other entries. Finding from several threads is safe.
class CRESSET_API DictItems {
  struct Entry {
    std::pair<IValue, IValue> item;
    std::size_t hash;  // kErased: no entry any more
  };
  static constexpr std::size_t kErased = ~std::size_t{0};

 public:
  using value_type = std::pair<IValue, IValue>;
  template <class T>  // Entry or const Entry
  class Iterator {
   public:
    using iterator_category = std::forward_iterator_tag;
    using value_type = DictItems::value_type;
    using difference_type = std::ptrdiff_t;
    using reference = std::conditional_t<std::is_const_v<T>, const value_type, value_type>&;
    using pointer = std::remove_reference_t<reference>*;

    Iterator() = default;
    Iterator(T* at, T* end) : at_(at), end_(end) { skip(); }
    reference operator*() const { return at_->item; }
    pointer operator->() const { return &at_->item; }
    Iterator& operator++() {
      ++at_;
      skip();
      return *this;
    }
    Iterator operator++(int) {
      Iterator before = *this;
      ++*this;
      return before;
    }
    friend bool operator==(const Iterator& a, const Iterator& b) { return a.at_ == b.at_; }

   private:
    friend class DictItems;
    void skip() {
      while (at_ != end_ && at_->hash == kErased) ++at_;
    }
    T *at_ = nullptr, *end_ = nullptr;
  };
  using iterator = Iterator<Entry>;
  using const_iterator = Iterator<const Entry>;

  DictItems() = default;
  DictItems(const DictItems&) = default;
  DictItems(DictItems&& o) noexcept { swap(o); }
  DictItems& operator=(DictItems o) noexcept {
    swap(o);
    return *this;
  }
  void swap(DictItems& o) noexcept {
    entries_.swap(o.entries_);
    slots_.swap(o.slots_);
    std::swap(size_, o.size_);
    std::swap(used_slots_, o.used_slots_);
  }

  std::size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  iterator begin() { return iterator(entries_.data(), entries_.data() + entries_.size()); }
  iterator end() { return iterator(entries_.data() + entries_.size(), entries_.data() + entries_.size()); }
  const_iterator begin() const { return const_iterator(entries_.data(), entries_.data() + entries_.size()); }
  const_iterator end() const { return const_iterator(entries_.data() + entries_.size(), entries_.data() + entries_.size()); }
  iterator find(const IValue& key) { return iterator(entries_.data() + position(key), entries_.data() + entries_.size()); }
  const_iterator find(const IValue& key) const {
    return const_iterator(entries_.data() + position(key), entries_.data() + entries_.size());
  }
  /// Leaves an entry that exists alone; true: there was none.
  std::pair<iterator, bool> try_emplace(IValue key, IValue value);
  void insert_or_assign(IValue key, IValue value);
  void erase(iterator at);
  /// The entry inserted last, taken out; there must be one.
  value_type pop_back();
  void clear() { *this = DictItems(); }
  void reserve(std::size_t n) { entries_.reserve(n); }
  /// Builds the index anew: for keys that were changed in place.
  void reindex();

 private:
  /// In entries_; its size when there is no such key.
  std::size_t position(const IValue& key) const;
  std::size_t position(const IValue& key, std::size_t hash) const;
  void add_to_index(std::size_t position);
  void rebuild();

  std::vector<Entry> entries_;        // in order of insertion, erased ones among them until the next reindex
  std::vector<std::uint32_t> slots_;  // open addressing, a power of two long: position in entries_ + 1, 0 is free; empty for few entries
  std::size_t size_ = 0, used_slots_ = 0;
};
struct DictImpl final : intrusive_ptr_target {
  DictItems items;
  TypePtr key_type, value_type;
  /// The value; null when there is none.
  IValue* find(const IValue& key) {
    const auto at = items.find(key);
    return at == items.end() ? nullptr : &at->second;
  }
};
}  // namespace ivalue

template <class K, class V>
IValue::IValue(const std::unordered_map<K, V>& map) : IValue() {
  auto dict = make_intrusive<ivalue::DictImpl>();
  for (const auto& [k, v] : map) dict->items.insert_or_assign(IValue(k), IValue(v));
  *this = IValue(std::move(dict));
}

inline ivalue::ListImpl& IValue::toListImpl() const {
  require(Tag::List, "List");
  return *static_cast<ivalue::ListImpl*>(payload_.p);
}
inline ivalue::DictImpl& IValue::toDictImpl() const {
  require(Tag::Dict, "Dict");
  return *static_cast<ivalue::DictImpl*>(payload_.p);
}
inline const ivalue::TupleImpl& IValue::toTupleRef() const {
  require(Tag::Tuple, "Tuple");
  return *static_cast<ivalue::TupleImpl*>(payload_.p);
}

/// Python-like rendering: "[1, 2]", "None", "'text'", tensors by dtype and shape.
CRESSET_API std::string to_string(const IValue& v);

template <class T>
  requires detail::is_list_element<T>
IValue::IValue(ArrayRef<T> values) : IValue() {
  std::vector<IValue> v;
  v.reserve(values.size());
  for (const T& x : values) v.emplace_back(x);
  *this = IValue(make_intrusive<ivalue::ListImpl>(std::move(v)));
}
template <class T>
  requires detail::is_list_element<T>
IValue::IValue(const std::vector<T>& values) : IValue() {
  std::vector<IValue> v;
  v.reserve(values.size());
  for (const auto& x : values) v.emplace_back(static_cast<const T&>(x));
  *this = IValue(make_intrusive<ivalue::ListImpl>(std::move(v)));
}
// The common lists are made in the library, once.
extern template CRESSET_API IValue::IValue(ArrayRef<int64_t> values);
extern template CRESSET_API IValue::IValue(ArrayRef<Tensor> values);
extern template CRESSET_API IValue::IValue(const std::vector<int64_t>& values);
extern template CRESSET_API IValue::IValue(const std::vector<Tensor>& values);
template <class T, std::size_t N>
  requires detail::is_list_element<T>
IValue::IValue(const std::array<T, N>& values) : IValue(ArrayRef<T>(values)) {}
template <class... T>
IValue::IValue(const std::tuple<T...>& values) : IValue() {
  std::vector<IValue> v;
  v.reserve(sizeof...(T));
  std::apply([&](const auto&... x) { (v.emplace_back(x), ...); }, values);
  *this = IValue(make_intrusive<ivalue::TupleImpl>(std::move(v)));
}

// Stack helpers, as torch::jit has them.
inline IValue pop(Stack& stack) {
  IValue v = std::move(stack.back());
  stack.pop_back();
  return v;
}
inline IValue pop(Stack* stack) { return pop(*stack); }
template <class... A>
void push(Stack& stack, A&&... values) {
  (stack.emplace_back(std::forward<A>(values)), ...);
}
template <class... A>
void push(Stack* stack, A&&... values) {
  push(*stack, std::forward<A>(values)...);
}
/// One value, or the members of a tuple.
template <class T>
void pack(Stack& stack, T&& value) {
  stack.emplace_back(std::forward<T>(value));
}
template <class... T>
void pack(Stack& stack, std::tuple<T...>&& values) {
  std::apply([&](auto&... v) { push(stack, std::move(v)...); }, values);
}
template <class T>
void pack(Stack* stack, T&& value) {
  pack(*stack, std::forward<T>(value));
}
CRESSET_API void drop(Stack& stack, std::size_t n);
inline void drop(Stack* stack, std::size_t n) { drop(*stack, n); }
/// The i-th of the last n values.
inline IValue& peek(Stack& stack, std::size_t i, std::size_t n) {
  return *(stack.end() - static_cast<std::ptrdiff_t>(n) + static_cast<std::ptrdiff_t>(i));
}
inline IValue& peek(Stack* stack, std::size_t i, std::size_t n) { return peek(*stack, i, n); }
inline ArrayRef<IValue> last(const Stack& stack, std::size_t n) { return ArrayRef<IValue>(stack.data() + stack.size() - n, n); }
inline ArrayRef<IValue> last(const Stack* stack, std::size_t n) { return last(*stack, n); }

namespace jit {
using cresset::drop;
using cresset::last;
using cresset::pack;
using cresset::peek;
using cresset::pop;
using cresset::push;
using cresset::Stack;
}  // namespace jit

}  // namespace cresset

extern template class std::vector<cresset::IValue>;

#include <cresset/dispatch/dict.h>
#include <cresset/dispatch/list.h>
