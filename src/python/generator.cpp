// Generator objects and the default generator.
#include <cresset/core/accelerator_hooks.h>

#include "python/bind.h"
#include "python/types.h"

namespace cresset::python {

PyTypeObject* generator_type = nullptr;

namespace {

PyGenerator* generator_of(PyObject* o) { return reinterpret_cast<PyGenerator*>(o); }

PyObject* generator_new(PyTypeObject*, PyObject* args, PyObject* kwargs) {
  CRESSET_PY_TRY
  static const char* names[] = {"device", nullptr};
  PyObject* device = nullptr;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|O:Generator", const_cast<char**>(names), &device)) return nullptr;
  const Device d = device && device != Py_None ? to_device(device) : Device(kCPU);
  return wrap_generator(without_lock(may_wait(d), [&] { return make_generator_for(d); }));
  CRESSET_PY_CATCH(nullptr)
}

void generator_dealloc(PyObject* o) {
  generator_of(o)->generator.~Generator();
  PyTypeObject* type = Py_TYPE(o);
  type->tp_free(o);
  Py_DECREF(type);
}

// Seeds are 64-bit patterns; negative ones count from the top, as in PyTorch.
uint64_t to_seed(PyObject* o) {
  int overflow = 0;
  const Ref number = checked(PyNumber_Index(o));
  const long long v = PyLong_AsLongLongAndOverflow(number.get(), &overflow);
  if (v == -1 && PyErr_Occurred()) throw ErrorAlreadySet();
  if (overflow == 0) return static_cast<uint64_t>(v);
  const unsigned long long u = overflow > 0 ? PyLong_AsUnsignedLongLong(number.get()) : ~0ull;
  if (overflow < 0 || PyErr_Occurred()) {
    PyErr_Clear();
    CRESSET_THROW(ValueError, "Overflow when unpacking long long");
  }
  return u;
}

// f(generator) under its lock. Who holds that may need the interpreter (a kernel of a device), so the interpreter's goes first.
template <class F>
auto locked(PyObject* o, F f) {
  const Generator& g = generator_of(o)->generator;
  return without_lock(true, [&] {
    const std::lock_guard lock(g.mutex());
    return f(g);
  });
}

PyObject* manual_seed(PyObject* o, PyObject* seed) {
  CRESSET_PY_TRY
  const uint64_t value = to_seed(seed);
  locked(o, [&](const Generator& g) { g.set_current_seed(value); });
  return Py_NewRef(o);
  CRESSET_PY_CATCH(nullptr)
}
PyObject* seed(PyObject* o, PyObject*) {
  CRESSET_PY_TRY
  return PyLong_FromUnsignedLongLong(locked(o, [](const Generator& g) { return g.seed(); }));
  CRESSET_PY_CATCH(nullptr)
}
PyObject* initial_seed(PyObject* o, PyObject*) {
  CRESSET_PY_TRY
  return PyLong_FromUnsignedLongLong(locked(o, [](const Generator& g) { return g.current_seed(); }));
  CRESSET_PY_CATCH(nullptr)
}
PyObject* get_state(PyObject* o, PyObject*) {
  CRESSET_PY_TRY
  const std::vector<uint8_t> bytes = locked(o, [](const Generator& g) { return g.state_bytes(); });
  Tensor t = cresset::detail::empty_cpu({static_cast<int64_t>(bytes.size())}, kByte);
  std::memcpy(t.data_ptr(), bytes.data(), bytes.size());
  return wrap(std::move(t));
  CRESSET_PY_CATCH(nullptr)
}
PyObject* set_state(PyObject* o, PyObject* state) {
  CRESSET_PY_TRY
  CRESSET_CHECK_TYPE(is_tensor(state), "expected a torch.ByteTensor, but got ", type_name(Py_TYPE(state)));
  const Tensor& t = unwrap(state);
  CRESSET_CHECK_TYPE(t.scalar_type() == kByte && t.is_cpu() && t.is_contiguous(), "expected a torch.ByteTensor, but got ", t);
  locked(o,
         [&](const Generator& g) { g.set_state_bytes({static_cast<const uint8_t*>(t.data_ptr()), static_cast<std::size_t>(t.numel())}); });
  return Py_NewRef(o);
  CRESSET_PY_CATCH(nullptr)
}
PyObject* clone_state(PyObject* o, PyObject*) {
  CRESSET_PY_TRY
  return wrap_generator(locked(o, [](const Generator& g) { return g.clone(); }));
  CRESSET_PY_CATCH(nullptr)
}
PyObject* get_offset(PyObject* o, PyObject*) {
  CRESSET_PY_TRY
  return PyLong_FromUnsignedLongLong(locked(o, [](const Generator& g) { return g.get_offset(); }));
  CRESSET_PY_CATCH(nullptr)
}
PyObject* set_offset(PyObject* o, PyObject* offset) {
  CRESSET_PY_TRY
  const uint64_t value = to_seed(offset);
  locked(o, [&](const Generator& g) { g.set_offset(value); });
  return Py_NewRef(o);
  CRESSET_PY_CATCH(nullptr)
}
PyObject* generator_device(PyObject* o, void*) { return wrap_device(generator_of(o)->generator.device()); }
PyObject* generator_repr(PyObject* o) {
  CRESSET_PY_TRY
  return PyUnicode_FromFormat("<cresset._C.Generator object at %p>", o);
  CRESSET_PY_CATCH(nullptr)
}
PyObject* generator_compare(PyObject* a, PyObject* b, int op) {
  if (!is_generator(a) || !is_generator(b) || (op != Py_EQ && op != Py_NE)) Py_RETURN_NOTIMPLEMENTED;
  return PyBool_FromLong((to_generator(a) == to_generator(b)) == (op == Py_EQ));
}
Py_hash_t generator_hash(PyObject* o) {
  return static_cast<Py_hash_t>(reinterpret_cast<uintptr_t>(to_generator(o).unsafeGetGeneratorImpl()) >> 4);
}

PyMethodDef generator_methods[] = {{"manual_seed", manual_seed, METH_O, "Restarts the stream from a seed; returns the generator."},
                                   {"seed", seed, METH_NOARGS, "Seeds from the system's entropy; returns the seed."},
                                   {"initial_seed", initial_seed, METH_NOARGS, "The seed that was set last."},
                                   {"get_state", get_state, METH_NOARGS, "The state as a uint8 tensor."},
                                   {"set_state", set_state, METH_O, "Continues from a state of get_state."},
                                   {"clone_state", clone_state, METH_NOARGS, "Another generator with the same state."},
                                   {"get_offset", get_offset, METH_NOARGS, "Position of a counter-based stream."},
                                   {"set_offset", set_offset, METH_O, "Sets the position of a counter-based stream."},
                                   {}};
PyGetSetDef generator_properties[] = {{"device", generator_device, nullptr, "The device the generator belongs to.", nullptr}, {}};

}  // namespace

PyObject* wrap_generator(Generator g) {
  if (!g.defined()) Py_RETURN_NONE;
  auto* o = PyObject_New(PyGenerator, generator_type);
  if (!o) return nullptr;
  new (&o->generator) Generator(std::move(g));
  return reinterpret_cast<PyObject*>(o);
}

void init_generator(PyObject* module) {
  PyType_Slot slots[] = {{Py_tp_new, reinterpret_cast<void*>(&generator_new)},
                         {Py_tp_dealloc, reinterpret_cast<void*>(&generator_dealloc)},
                         {Py_tp_repr, reinterpret_cast<void*>(&generator_repr)},
                         {Py_tp_richcompare, reinterpret_cast<void*>(&generator_compare)},
                         {Py_tp_hash, reinterpret_cast<void*>(&generator_hash)},
                         {Py_tp_methods, generator_methods},
                         {Py_tp_getset, generator_properties},
                         {Py_tp_doc, const_cast<char*>("A stream of random numbers.")},
                         {0, nullptr}};
  PyType_Spec spec{"cresset.Generator", sizeof(PyGenerator), 0, Py_TPFLAGS_DEFAULT, slots};
  generator_type = reinterpret_cast<PyTypeObject*>(checked(PyType_FromSpec(&spec)).release());
  checked(PyModule_AddObjectRef(module, "Generator", reinterpret_cast<PyObject*>(generator_type)));
  const Ref default_generator = checked(wrap_generator(default_cpu_generator()));
  checked(PyModule_AddObjectRef(module, "default_generator", default_generator.get()));
  def(module, "_default_generator", [](Device d) { return Object(wrap_generator(default_generator_of(d))); });
  def(module, "_has_generator", [](Device d) { return has_generator(d.type()); });
}

}  // namespace cresset::python
