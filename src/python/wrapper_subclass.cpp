// Tensors that see operators in Python and need not have memory: Tensor._make_wrapper_subclass and aliases of class instances.
#include <cresset/autograd/variable.h>
#include <cresset/core/tensor_impl.h>
#include <cresset/dispatch/dispatcher.h>

#include <algorithm>
#include <array>
#include <deque>

#include "python/bind.h"
#include "python/convert.h"
#include "python/dispatch.h"
#include "python/dispatch_mode.h"
#include "python/tensor_new.h"

namespace cresset::python {

namespace {

// What the class answers in __torch_dispatch__ in place of what the tensor was made with.
enum class SizesPolicy : uint8_t { None, Strides, Sizes };  // Sizes: strides too
struct Asks {
  SizesPolicy sizes = SizesPolicy::None;
  bool device = false, layout = false;
};

OperatorHandle question(const char* name, const char* overload = "") { return Dispatcher::singleton().findSchemaOrThrow(name, overload); }

// A tensor whose copies are made in Python, so that they are wrapped as the original is.
struct DispatchingTensorImpl final : TensorImpl {
  using TensorImpl::TensorImpl;

  /// What untyped_storage() shows of a wrapper: a size and a device, no memory. Made at the first question.
  const Storage& shown_storage() const {
    if (!shown_storage_) {
      const std::size_t needed = cresset::detail::compute_storage_nbytes(sizes_, strides_, itemsize(), offset_);
      shown_storage_ = Storage(Storage::use_byte_size_t(), storage_nbytes_.value_or(needed), DataPtr(nullptr, device_), nullptr, true);
    }
    return *shown_storage_;
  }
  void show_storage(const Storage& storage) { shown_storage_ = storage; }
  void set_storage_nbytes(std::size_t n) { storage_nbytes_ = n; }
  uint64_t foreign_keys() const { return foreign_keys_; }
  void set_foreign_keys(uint64_t keys) { foreign_keys_ = keys; }

  void let_answer(Asks asks) {
    asks_ = asks;
    set_custom_sizes_strides(asks.sizes != SizesPolicy::None);
    known_dim_ = sizes_.size();
  }
  const Asks& asks() const { return asks_; }

  // The class's answer to a question; null when it has none (None, or no object is left to ask).
  Ref ask(const OperatorHandle& op, std::optional<MemoryFormat> format = std::nullopt) const {
    if (!pyobject()) return {};
    std::array<IValue, 2> arguments;
    arguments[0] = Tensor(intrusive_ptr<TensorImpl>::reclaim_copy(const_cast<DispatchingTensorImpl*>(this)));
    if (format) arguments[1] = *format;
    const Ref result = ask_torch_dispatch(op, arguments.data(), format ? 2 : 1, true);
    return result && result.get() != Py_None ? result : Ref();
  }
  void set_layout(Layout layout) { layout_ = layout; }
  Layout layout() const override {
    if (!asks_.layout) return layout_;
    GilAcquire gil;
    try {
      static const OperatorHandle op = question("prim::layout");
      const Ref answer = ask(op);
      if (answer && PyLong_Check(answer.get())) {  // what prim::layout itself returns
        const long number = PyLong_AsLong(answer.get());
        CRESSET_CHECK(number >= 0 && number <= static_cast<long>(Layout::Custom), "unsupported at::Layout");
        return static_cast<Layout>(number);
      }
      CRESSET_CHECK(answer && is_layout(answer.get()), "layout returned invalid type ",
                    answer ? type_name(Py_TYPE(answer.get())) : "NoneType", ", expected Layout");
      return static_cast<Layout>(constant_value(answer.get()));
    } catch (const ErrorAlreadySet&) {
      throw_python_error();
    }
  }

  intrusive_ptr<TensorImpl> shallow_copy_and_detach(bool share_version) const override {
    const bool excluded = impl::tls_is_dispatch_key_excluded(DispatchKey::Python);
    if (pyobject() && !excluded) {
      if (auto made = detached_in_python(share_version)) return made;
    }
    auto r = storage_
                 ? make_intrusive<DispatchingTensorImpl>(storage_, key_set_, dtype_, IntArrayRef(sizes_), IntArrayRef(strides_), offset_)
                 : make_intrusive<DispatchingTensorImpl>(key_set_, dtype_, std::optional<Device>(device_));
    if (!storage_) r->set_sizes_and_strides(sizes_, strides_, offset_);
    r->let_answer(asks_);
    r->set_layout(layout_);
    r->set_foreign_keys(foreign_keys_);
    set_version_of_copy(*r, share_version);
    return r;
  }
  const char* tensorimpl_type_name() const override { return "DispatchingTensorImpl"; }

 protected:
  // Kernels ask for the address of what they read and write: one that meets a wrapper stops here.
  void* data_without_storage() const override {
    CRESSET_CHECK(numel_ == 0 && asks_.sizes == SizesPolicy::None,
                  "The tensor has a non-zero number of elements, but its data is not allocated yet: it is a wrapper, whose "
                  "class sees operators in __torch_dispatch__. Unwrap it there before an operator runs on its memory.");
    return nullptr;
  }

  IntArrayRef sizes_custom() const override {
    if (asks_.sizes != SizesPolicy::Sizes) return sizes_;
    static const OperatorHandle op = question("aten::sym_size");
    const IntArrayRef sizes = asked_numbers(op, "size", sizes_);
    known_dim_ = sizes.size();
    return sizes;
  }
  IntArrayRef strides_custom() const override {
    static const OperatorHandle op = question("aten::sym_stride");
    const IntArrayRef strides = asked_numbers(op, "stride", strides_);
    // Code that walks over both relies on their being as many.
    CRESSET_CHECK(strides.size() == known_dim_, "__torch_dispatch__: as many strides as sizes were required; ", strides.size(),
                  " were given for ", known_dim_, " sizes.");
    return strides;
  }
  int64_t numel_custom() const override {
    if (asks_.sizes != SizesPolicy::Sizes) return numel_;
    static const OperatorHandle op = question("aten::sym_numel");
    return asked_number(op, "numel").value_or(numel_);
  }
  bool is_contiguous_custom(MemoryFormat format) const override {
    static const OperatorHandle plain = question("aten::is_contiguous"), with_format = question("aten::is_contiguous", "memory_format");
    const bool standard = format == MemoryFormat::Contiguous;
    GilAcquire gil;
    try {
      const Ref answer = standard ? ask(plain) : ask(with_format, format);
      if (!answer) return standard ? contiguous_ : has_strides_of(format);
      CRESSET_CHECK(PyBool_Check(answer.get()), "is_contiguous returned invalid type ", type_name(Py_TYPE(answer.get())),
                    ", expected bool");
      return answer.get() == Py_True;
    } catch (const ErrorAlreadySet&) {
      throw_python_error();
    }
  }

 private:
  // Answers stay where they are as long as the tensor lives, since callers hold references to them. Few different ones are given.
  IntArrayRef asked_numbers(const OperatorHandle& op, const char* what, const DimVector& standard) const {
    GilAcquire gil;
    try {
      const Ref answer = ask(op);
      if (!answer) return standard;
      CRESSET_CHECK(PyTuple_Check(answer.get()) || PyList_Check(answer.get()), what, " returned invalid type ",
                    type_name(Py_TYPE(answer.get())), ", expected a tuple of int");
      const Ref items = checked(PySequence_Fast(answer.get(), what));
      DimVector numbers;
      for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(items.get()); ++i) {
        PyObject* item = PySequence_Fast_GET_ITEM(items.get(), i);
        CRESSET_CHECK(is_int(item), what, " returned a tuple with a ", type_name(Py_TYPE(item)), ", expected int");
        numbers.push_back(to_int(item));
        CRESSET_CHECK(numbers.back() >= 0, what, " returned the negative number ", numbers.back());
      }
      const auto same = [&](const DimVector& known) { return IntArrayRef(known) == IntArrayRef(numbers); };
      const auto known = std::find_if(answers_.begin(), answers_.end(), same);
      return known != answers_.end() ? *known : answers_.emplace_back(std::move(numbers));
    } catch (const ErrorAlreadySet&) {
      throw_python_error();
    }
  }

 public:
  std::optional<int64_t> asked_number(const OperatorHandle& op, const char* what, bool required = false) const {
    GilAcquire gil;
    try {
      const Ref answer = ask(op);
      if (!answer && !required) return std::nullopt;
      CRESSET_CHECK(answer && is_int(answer.get()), what, " returned invalid type ", answer ? type_name(Py_TYPE(answer.get())) : "NoneType",
                    ", expected int");
      return to_int(answer.get());
    } catch (const ErrorAlreadySet&) {
      throw_python_error();
    }
  }

 private:
  intrusive_ptr<TensorImpl> detached_in_python(bool share_version) const {
    GilAcquire gil;
    try {
      static const OperatorHandle detach = Dispatcher::singleton().findSchemaOrThrow("aten::detach", "");
      auto self = intrusive_ptr<TensorImpl>::reclaim_copy(const_cast<DispatchingTensorImpl*>(this));
      const IValue argument{Tensor(std::move(self))};
      const Ref result = ask_torch_dispatch(detach, &argument, 1);
      if (!result) return {};
      CRESSET_CHECK(is_tensor(result.get()), "aten::detach: Unable to cast the result of __torch_dispatch__, a ",
                    type_name(Py_TYPE(result.get())), ", to Tensor.");
      const Tensor t = unwrap(result.get());
      TensorImpl* made = t.unsafeGetTensorImpl();
      if (made == this || made->autograd_meta()) return {};
      set_version_of_copy(*made, share_version);
      return intrusive_ptr<TensorImpl>::reclaim_copy(made);
    } catch (const ErrorAlreadySet&) {
      throw_python_error();
    }
  }

  Asks asks_;
  Layout layout_ = kStrided;                      // of sparse tensors, whose class keeps the parts
  uint64_t foreign_keys_ = 0;                     // what DispatchKeySet remembers beside the set, as _extra_dispatch_keys gave it
  std::optional<std::size_t> storage_nbytes_;     // of shown_storage_, when the class has said so
  mutable std::optional<Storage> shown_storage_;  // changed with the lock held
  mutable std::deque<DimVector> answers_;         // of all questions so far; changed with the lock held
  mutable std::size_t known_dim_ = 0;             // dimensions by the last answer
};

// The impl of a tensor whose class answers questions, else null.
const DispatchingTensorImpl* answering(const Tensor& t) {
  return CRESSET_UNLIKELY(t.key_set().has(DispatchKey::Python)) ? dynamic_cast<const DispatchingTensorImpl*>(t.unsafeGetTensorImpl())
                                                                : nullptr;
}

SizesPolicy to_policy(PyObject* o) {
  if (o == Py_None) return SizesPolicy::None;
  const std::string name = PyUnicode_Check(o) ? to_text(o) : type_name(Py_TYPE(o));
  if (name == "sizes") return SizesPolicy::Sizes;
  CRESSET_CHECK_VALUE(name == "strides", "Unknown sizes_strides_policy: ", name, "; expected 'strides' or 'sizes'");
  return SizesPolicy::Strides;
}

DimVector integers(PyObject* o, const char* what, int64_t position) {
  CRESSET_CHECK_TYPE(is_int_sequence(o), "_make_wrapper_subclass(): argument '", what, "' (position ", position,
                     ") must be tuple of ints, not ", type_name(Py_TYPE(o)));
  const Ref items = checked(PySequence_Fast(o, what));
  DimVector out;
  for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(items.get()); ++i) out.push_back(to_int(PySequence_Fast_GET_ITEM(items.get(), i)));
  return out;
}

// Tensor._make_wrapper_subclass(cls, size, …): a tensor with sizes, dtype and device but without memory.
PyObject* make_wrapper_subclass(PyObject*, PyObject* args, PyObject* kwargs) {
  CRESSET_PY_TRY
  static const char* names[] = {"cls",
                                "size",
                                "strides",
                                "storage_offset",
                                "memory_format",
                                "dtype",
                                "layout",
                                "device",
                                "pin_memory",
                                "requires_grad",
                                "dispatch_sizes_strides_policy",
                                "dispatch_device",
                                "dispatch_layout",
                                "_extra_dispatch_keys",
                                "storage_size",
                                nullptr};
  PyObject *cls, *size, *strides = Py_None, *offset = Py_None, *format = Py_None, *dtype = Py_None, *layout = Py_None, *device = Py_None,
                        *policy = Py_None, *extra = Py_None, *storage_size = Py_None;
  int pin = 0, requires_grad = 0, dispatch_device = 0, dispatch_layout = 0;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "OO|OOOOOOppOppOO:_make_wrapper_subclass", const_cast<char**>(names), &cls, &size,
                                   &strides, &offset, &format, &dtype, &layout, &device, &pin, &requires_grad, &policy, &dispatch_device,
                                   &dispatch_layout, &extra, &storage_size))
    return nullptr;
  CRESSET_CHECK_TYPE(PyType_Check(cls), "cls must be a type (got ", type_name(Py_TYPE(cls)), ")");
  auto* type = reinterpret_cast<PyTypeObject*>(cls);
  CRESSET_CHECK_TYPE(PyType_IsSubtype(type, tensor_type), "_make_wrapper_subclass: cls must be a subclass of Tensor; ", type_name(type),
                     " is not.");
  CRESSET_CHECK_TYPE(type_dispatches(type), type_name(type), " must define __torch_dispatch__");
  const Asks asks{to_policy(policy), dispatch_device != 0, dispatch_layout != 0};
  CRESSET_CHECK_NOT_IMPLEMENTED(layout == Py_None || static_cast<Layout>(constant_value(layout)) == kStrided,
                                "_make_wrapper_subclass: only the strided layout is supported.");
  const DimVector sizes = integers(size, "size", 2);
  for (int64_t s : sizes) CRESSET_CHECK(s >= 0, "_make_wrapper_subclass: sizes must not be negative; given ", s);
  const Device where = device == Py_None ? Device(kCPU) : to_device(device);
  DispatchKeySet keys = key_set_for_device(where.type()) | keys_of_type(type);
  if (extra != Py_None)
    keys |= DispatchKeySet::from_raw_repr(Convert<uint64_t>::from(checked(PyObject_CallMethod(extra, "raw_repr", nullptr)).get()));
  auto made = make_intrusive<DispatchingTensorImpl>(keys, dtype == Py_None ? get_default_dtype() : to_scalar_type(dtype),
                                                    std::optional<Device>(where));
  if (strides == Py_None) {
    made->set_sizes_contiguous(sizes);
  } else {
    const DimVector given = integers(strides, "strides", 3);
    CRESSET_CHECK(given.size() == sizes.size(), "dimensionality of sizes (", sizes.size(), ") must match dimensionality of strides (",
                  given.size(), ")");
    made->set_sizes_and_strides(sizes, given);
  }
  if (extra != Py_None) made->set_foreign_keys(foreign_keys_of(extra));
  if (offset != Py_None) made->set_storage_offset(to_int(offset));
  made->new_version_counter();
  made->let_answer(asks);
  if (storage_size != Py_None) {
    const int64_t bytes = to_int(storage_size);
    CRESSET_CHECK(bytes >= 0, "_make_wrapper_subclass: storage_size must not be negative; given ", bytes);
    made->set_storage_nbytes(static_cast<std::size_t>(bytes));
  }
  Tensor t(std::move(made));
  if (requires_grad) require_grad_of_new(t);
  return wrap_as(type, std::move(t));
  CRESSET_PY_CATCH(nullptr)
}

}  // namespace

Tensor dispatching_alias(const Tensor& t) {
  if (!t.has_storage()) return autograd::detach_shared(t);
  auto made = make_intrusive<DispatchingTensorImpl>(t.storage(), t.key_set(), t.scalar_type(), t.sizes(), t.strides(), t.storage_offset());
  if (t.is_inference())
    made->set_inference(true);
  else
    made->share_version_with(*t.unsafeGetTensorImpl());
  return Tensor(std::move(made));
}

Device device_seen(const Tensor& t) {
  const auto* impl = answering(t);
  if (CRESSET_LIKELY(!impl || !impl->asks().device)) return t.device();
  static const OperatorHandle op = question("prim::device");
  const Ref answer = impl->ask(op);
  CRESSET_CHECK(answer && (is_device(answer.get()) || PyUnicode_Check(answer.get())), "device returned invalid type ",
                answer ? type_name(Py_TYPE(answer.get())) : "NoneType", ", expected Device");
  return to_device(answer.get());
}

uint64_t foreign_keys(const Tensor& t) {
  const auto* impl = answering(t);
  return impl ? impl->foreign_keys() : 0;
}

std::optional<Storage> wrapper_storage(const Tensor& t) {
  const auto* impl = answering(t);
  if (!impl) return std::nullopt;
  return impl->shown_storage();
}

void let_class_answer(const Tensor& t, PyObject* sizes_strides_policy, bool device, bool layout) {
  const Asks asks{to_policy(sizes_strides_policy), device, layout};
  if (auto* impl = dynamic_cast<DispatchingTensorImpl*>(t.unsafeGetTensorImpl())) impl->let_answer(asks);  // it may have no Python key yet
}

void share_shown_storage(const Tensor& view, const Tensor& base) {
  auto* wrapper = const_cast<DispatchingTensorImpl*>(answering(view));
  const auto* shown = answering(base);
  if (wrapper && shown && !wrapper->has_storage() && !shown->has_storage()) wrapper->show_storage(shown->shown_storage());
}

int64_t dim_seen(const Tensor& t) {
  const auto* impl = answering(t);
  if (CRESSET_LIKELY(!impl || impl->asks().sizes != SizesPolicy::Sizes)) return t.dim();
  static const OperatorHandle op = question("aten::dim");
  return *impl->asked_number(op, "dim", true);
}

int64_t storage_offset_seen(const Tensor& t) {
  const auto* impl = answering(t);
  if (CRESSET_LIKELY(!impl || impl->asks().sizes != SizesPolicy::Sizes)) return t.storage_offset();
  static const OperatorHandle op = question("aten::sym_storage_offset");
  return impl->asked_number(op, "storage_offset").value_or(t.storage_offset());
}

void init_wrapper_subclass(PyObject* module) {
  // Gives a wrapper the sizes, strides and offset of another tensor: an operator that ran in place on what it stands for has changed them.
  def(module, "_take_sizes", [](Tensor wrapper, Tensor other) {
    CRESSET_CHECK(!wrapper.has_storage(), "_take_sizes: a tensor without storage was required.");
    wrapper.unsafeGetTensorImpl()->set_sizes_and_strides(other.sizes(), other.strides(), other.storage_offset());
  });
  // Says to C++ which layout a wrapper of a sparse or nested class has.
  def(module, "_give_layout", [](Tensor wrapper, PyObject* layout) {
    auto* impl = dynamic_cast<DispatchingTensorImpl*>(wrapper.unsafeGetTensorImpl());
    CRESSET_CHECK(impl && !wrapper.has_storage(), "_give_layout: a wrapper without storage was required.");
    CRESSET_CHECK_TYPE(is_layout(layout), "_give_layout: a layout was required, not ", type_name(Py_TYPE(layout)), ".");
    impl->set_layout(static_cast<Layout>(constant_value(layout)));
  });
}

PyMethodDef wrapper_subclass_methods[] = {
    {"_make_wrapper_subclass", reinterpret_cast<PyCFunction>(reinterpret_cast<void*>(&make_wrapper_subclass)),
     METH_VARARGS | METH_KEYWORDS | METH_STATIC,
     "_make_wrapper_subclass(cls, size, strides=None, storage_offset=None, …)\n\nAn instance without memory of a class with "
     "__torch_dispatch__."},
    {}};

}  // namespace cresset::python
