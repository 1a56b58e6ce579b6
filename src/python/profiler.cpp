// Private functions behind cresset.autograd.profiler: sessions, ranges, and the records as Python values.
#include <cresset/dispatch/profiler.h>

#include "python/bind.h"
#include "python/convert.h"
#include "python/frames.h"

#include <frameobject.h>

namespace cresset::python {
namespace {

constexpr int kDeepestStack = 64;

/// Texts of frames, by their code and the instruction they are at. A place that was used for another frame is used again.
class FrameTexts {
 public:
  const std::string& of(PyFrameObject* frame) {
    const Ref code = Ref::steal(reinterpret_cast<PyObject*>(PyFrame_GetCode(frame)));
    const int instruction = PyFrame_GetLasti(frame);
    Known& known = table_[(reinterpret_cast<std::uintptr_t>(code.get()) / 16 + static_cast<std::size_t>(instruction)) % table_.size()];
    if (known.code.get() != code.get() || known.instruction != instruction) {
      const auto* c = reinterpret_cast<PyCodeObject*>(code.get());
      known.text = str(to_text(c->co_filename), "(", PyFrame_GetLineNumber(frame), "): ", to_text(c->co_name));
      known.instruction = instruction;
      known.code = Ref::borrow(code.get());
    }
    return known.text;
  }
  void forget() {
    for (Known& known : table_) known = Known();
  }

 private:
  struct Known {
    Ref code;  // held, so that no other code can have its address
    int instruction = -1;
    std::string text;
  };
  std::vector<Known> table_ = std::vector<Known>(1024);
};
/// Used with the interpreter lock only; never destroyed, as the interpreter may have gone by then.
FrameTexts& frame_texts() {
  static auto& texts = *new FrameTexts;
  return texts;
}

}  // namespace

std::vector<std::string> python_stack() {
  std::vector<std::string> out;
  if (!Py_IsInitialized() || !PyGILState_GetThisThreadState()) return out;
  const GilAcquire gil;
  Ref frame = Ref::steal(Py_XNewRef(reinterpret_cast<PyObject*>(PyEval_GetFrame())));
  for (int i = 0; frame && i < kDeepestStack; ++i) {
    auto* f = reinterpret_cast<PyFrameObject*>(frame.get());
    out.push_back(frame_texts().of(f));
    frame = Ref::steal(reinterpret_cast<PyObject*>(PyFrame_GetBack(f)));
  }
  return out;
}

namespace {

template <class T>
Ref list_of_values(std::vector<T> values) {
  return checked(Convert<std::vector<T>>::to(std::move(values)));
}

unsigned long long as_number(const void* address) { return reinterpret_cast<uintptr_t>(address); }

// (sizes, strides, type, layout, device, address of the tensor, that of its storage or None), or None
Ref tensor_to_python(const profiler::TensorInput& t) {
  if (!t.impl_address) return Ref::borrow(Py_None);
  const Ref sizes = list_of_values(t.sizes), strides = list_of_values(t.strides);
  const Ref dtype = checked(wrap_dtype(t.dtype)), layout = checked(wrap_layout(t.layout)), device = checked(wrap_device(t.device));
  const Ref data = t.data ? checked(PyLong_FromUnsignedLongLong(as_number(*t.data))) : Ref::borrow(Py_None);
  return checked(Py_BuildValue("(OOOOOKO)", sizes.get(), strides.get(), dtype.get(), layout.get(), device.get(), as_number(t.impl_address),
                               data.get()));
}

template <class T>
Ref list_of(const std::vector<T>& items, Ref (*convert)(const T&)) {
  Ref out = checked(PyList_New(static_cast<Py_ssize_t>(items.size())));
  for (std::size_t i = 0; i < items.size(); ++i) PyList_SET_ITEM(out.get(), static_cast<Py_ssize_t>(i), convert(items[i]).release());
  return out;
}

// (sizes, or a list of sizes; strides; type; value; tensors)
Ref input_to_python(const profiler::Input& input) {
  std::vector<std::vector<int64_t>> all;
  for (const profiler::TensorInput& t : input.tensors) all.push_back(t.sizes);
  const bool is_list = std::string_view(input.type) == "TensorList";
  const Ref sizes = is_list ? list_of_values(std::move(all)) : list_of_values(input.sizes()), strides = list_of_values(input.strides());
  const Ref value = checked(to_python(input.value, false)), tensors = list_of(input.tensors, &tensor_to_python);
  return checked(Py_BuildValue("(OOsOO)", sizes.get(), strides.get(), input.type, value.get(), tensors.get()));
}

// (name, overload, begin, end, parent, scope, sequence number, forward thread, device milliseconds, device index, args, inputs, stack, id)
Ref record_to_python(const profiler::Record& r) {
  static const profiler::Details none;
  const profiler::Details& d = r.details ? *r.details : none;
  const Ref inputs = list_of(d.inputs, &input_to_python);
  const Ref stack = list_of_values(d.stack);
  return checked(Py_BuildValue("(ssLLiiLKdisOOK)", r.name->c_str(), r.overload ? r.overload->c_str() : "", static_cast<long long>(r.begin),
                               static_cast<long long>(r.end), static_cast<int>(r.parent), static_cast<int>(r.scope),
                               static_cast<long long>(r.sequence_nr), static_cast<unsigned long long>(r.forward_thread),
                               r.device_milliseconds, static_cast<int>(r.device.index()), d.args.c_str(), inputs.get(), stack.get(),
                               static_cast<unsigned long long>(r.id)));
}

// (kind, tensor or None, value, elements); a tensor is (type, sizes, strides, address, that of its storage, offset, elements, device)
Ref observed_to_python(const profiler::ObservedValue& v) {
  Ref tensor = Ref::borrow(Py_None);
  if (v.tensor) {
    const profiler::TensorInput& t = *v.tensor;
    const Ref sizes = list_of_values(t.sizes), strides = list_of_values(t.strides), dtype = checked(wrap_dtype(t.dtype));
    tensor = checked(Py_BuildValue("(OOOKKLLs)", dtype.get(), sizes.get(), strides.get(), as_number(t.impl_address), as_number(t.storage),
                                   static_cast<long long>(t.offset), static_cast<long long>(t.numel), t.device.str().c_str()));
  }
  const Ref value = checked(to_python(v.value, false)), elements = list_of(v.elements, &observed_to_python);
  return checked(Py_BuildValue("(sOOO)", v.kind.c_str(), tensor.get(), value.get(), elements.get()));
}

// (id, name, overload, begin, end, parent, scope, sequence number, forward thread, args, values given, values given out)
Ref observed_record_to_python(const profiler::Record& r) {
  static const profiler::Details none;
  const profiler::Details& d = r.details ? *r.details : none;
  const Ref given = list_of(d.given, &observed_to_python), results = list_of(d.results, &observed_to_python);
  return checked(Py_BuildValue("(KssLLiiLKsOO)", static_cast<unsigned long long>(r.id), r.name->c_str(),
                               r.overload ? r.overload->c_str() : "", static_cast<long long>(r.begin), static_cast<long long>(r.end),
                               static_cast<int>(r.parent), static_cast<int>(r.scope), static_cast<long long>(r.sequence_nr),
                               static_cast<unsigned long long>(r.forward_thread), d.args.c_str(), given.get(), results.get()));
}

// (number, autograd's number, records)
Ref observed_thread_to_python(const profiler::ThreadProfile& t) {
  const Ref records = list_of(t.records, &observed_record_to_python);
  return checked(Py_BuildValue("(IKO)", t.number, static_cast<unsigned long long>(t.autograd_thread), records.get()));
}

// (time, bytes, address, device, parent)
Ref memory_to_python(const profiler::MemoryRecord& m) {
  const Ref device = checked(wrap_device(m.device));
  return checked(Py_BuildValue("(LLKOi)", static_cast<long long>(m.time), static_cast<long long>(m.bytes), as_number(m.data), device.get(),
                               static_cast<int>(m.parent)));
}

// (number, system's number, autograd's number, records, memory)
Ref thread_to_python(const profiler::ThreadProfile& t) {
  const Ref records = list_of(t.records, &record_to_python), memory = list_of(t.memory, &memory_to_python);
  return checked(Py_BuildValue("(ILKOO)", t.number, static_cast<long long>(t.os_thread), static_cast<unsigned long long>(t.autograd_thread),
                               records.get(), memory.get()));
}

std::vector<IValue> to_ivalues(PyObject* sequence) {
  std::vector<IValue> values;
  const Ref items = checked(PySequence_Fast(sequence, "inputs: a list or tuple was required"));
  for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(items.get()); ++i)
    values.push_back(to_ivalue(PySequence_Fast_GET_ITEM(items.get(), i), *basic_type(TypeKind::Any), "input"));
  return values;
}

}  // namespace

void init_profiler(PyObject* module) {
  profiler::set_stack_source(&python_stack);
  def(module, "_profiler_start", [](bool shapes, bool memory, bool stack, std::optional<Device> device) {
    profiler::start({shapes, memory, stack, device ? std::optional(device->type()) : std::nullopt});
  });
  // (wall clock at the start, duration, threads); times in nanoseconds.
  def(module, "_profiler_stop", [] {
    profiler::Profile p;
    {
      const GilRelease release;  // it may wait for a device
      p = profiler::stop();
    }
    frame_texts().forget();
    const Ref threads = list_of(p.threads, &thread_to_python);
    return Object(Py_BuildValue("(LLO)", static_cast<long long>(p.wall_clock), static_cast<long long>(p.duration), threads.get()));
  });
  def(module, "_profiler_observe", [] { profiler::start_observing(); });
  // The threads.
  def(module, "_profiler_observed", [] { return Object(list_of(profiler::stop_observing().threads, &observed_thread_to_python)); });
  def(module, "_profiler_recording", [] { return profiler::recording(); });
  def(module, "_profiler_begin", [](std::string name, std::string args) -> uint64_t {
    if (!profiler::recording()) return 0;
    return profiler::begin({.name = name, .scope = profiler::Scope::UserScope, .args = args});
  });
  // The same as a function with inputs, any values, and what an observer sees in the place of these, or None.
  def(module, "_profiler_begin_function", [](std::string name, PyObject* inputs, PyObject* observed) -> uint64_t {
    if (!profiler::recording()) return 0;
    std::vector<IValue> values, others;
    if (profiler::wants_inputs()) {
      values = to_ivalues(inputs);
      if (observed != Py_None) others = to_ivalues(observed);
    }
    profiler::Beginning beginning{.name = name, .inputs = values};
    if (observed != Py_None) beginning.observed = others;
    return profiler::begin(beginning);
  });
  def(module, "_profiler_end", [](uint64_t token) { profiler::end(token); });
}

}  // namespace cresset::python
