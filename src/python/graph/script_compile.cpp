// Classes, enums, interfaces and functions of scripts from Python: what the package cresset.jit builds on.
#include <cresset/ir/interpreter.h>
#include <cresset/ir/operator.h>
#include <cresset/ir/pass.h>

#include "ir/frontend/tree.h"
#include "python/convert.h"
#include "python/graph/script_convert.h"
#include "python/graph/script_things.h"
#include "python/graph/script_values.h"

namespace cresset::python {

namespace {

// Who has a name: a class or a unit, or a function, which graphs that call it keep.
struct Owner {
  std::weak_ptr<const void> shared;
  weak_intrusive_ptr<jit::Function> function;
  bool gone() const { return shared.expired() && function.expired(); }
};

// A module's class has a unit of its own, so that it goes with its last object, and so has a function; only the names are common to all.
// Under the GIL.
std::unordered_map<std::string, Owner>& owners() {
  static auto& names = *new std::unordered_map<std::string, Owner>();
  return names;
}

bool is_owned(const std::string& name) {
  const auto found = owners().find(name);
  if (found == owners().end()) return false;
  if (!found->second.gone()) return true;
  owners().erase(found);
  return false;
}

// A name that no class has, and nothing in the unit.
std::string mangled(const std::string& name, const jit::CompilationUnit& unit = *python_unit()) {
  const auto taken = [&](const std::string& candidate) {
    return is_owned(candidate) || unit.find_type(candidate) || unit.find_function(candidate);
  };
  return taken(name) ? jit::mangle_name(name, taken) : name;
}

Object new_class(const std::string& name, bool is_module) {
  const auto type = jit::ClassType::create(mangled(name), is_module);
  const auto unit = is_module ? std::make_shared<jit::CompilationUnit>() : python_unit();
  unit->register_type(type);
  if (is_module) owners()[type->name].shared = type;
  return Object(wrap_type(type));
}

jit::ClassTypePtr to_class(PyObject* o) {
  auto type = to_type(o)->cast<jit::ClassType>();
  CRESSET_CHECK_TYPE(type && !type->is_opaque(), "a class of scripts was required; '", to_type(o)->str(), "' was given.");
  return type;
}

// ---- cresset._C.ScriptDefinition

struct PyDefinition {
  PyObject_HEAD PyObject *text, *filename;
  Py_ssize_t line;
  PyObject *resolver, *defaults, *types, *name;
};
PyTypeObject* definition_type = nullptr;

PyDefinition& definition_of(PyObject* o) {
  CRESSET_CHECK_TYPE(Py_TYPE(o) == definition_type, "a ScriptDefinition was required; a ", type_name(Py_TYPE(o)), " was given.");
  return *reinterpret_cast<PyDefinition*>(o);
}

PyObject* definition_new(PyTypeObject* type, PyObject* args, PyObject* kwargs) {
  static const char* names[] = {"text", "filename", "line", "resolver", "defaults", "types", "name", nullptr};
  PyObject *text, *filename, *resolver, *defaults, *types, *name;
  Py_ssize_t line = 0;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "UUnOO!O!U:ScriptDefinition", const_cast<char**>(names), &text, &filename, &line,
                                   &resolver, &PyDict_Type, &defaults, &PyDict_Type, &types, &name))
    return nullptr;
  PyObject* o = type->tp_alloc(type, 0);
  if (!o) return nullptr;
  auto& d = *reinterpret_cast<PyDefinition*>(o);
  d.line = line;
  d.text = Py_NewRef(text), d.filename = Py_NewRef(filename), d.resolver = Py_NewRef(resolver);
  d.defaults = Py_NewRef(defaults), d.types = Py_NewRef(types), d.name = Py_NewRef(name);
  return o;
}
int definition_traverse(PyObject* o, visitproc visit, void* arg) {
  auto& d = *reinterpret_cast<PyDefinition*>(o);
  Py_VISIT(Py_TYPE(o));
  for (PyObject* part : {d.resolver, d.defaults, d.types}) Py_VISIT(part);
  return 0;
}
int definition_clear(PyObject* o) {
  auto& d = *reinterpret_cast<PyDefinition*>(o);
  for (PyObject** part : {&d.text, &d.filename, &d.resolver, &d.defaults, &d.types, &d.name}) Py_CLEAR(*part);
  return 0;
}
void definition_dealloc(PyObject* o) {
  PyObject_GC_UnTrack(o);
  definition_clear(o);
  PyTypeObject* type = Py_TYPE(o);
  type->tp_free(o);
  Py_DECREF(type);
}

void init_definition(PyObject* module) {
  static PyMemberDef members[] = {
      {"text", T_OBJECT_EX, offsetof(PyDefinition, text), READONLY, "Source text of one function."},
      {"filename", T_OBJECT_EX, offsetof(PyDefinition, filename), READONLY, "Its file, for messages."},
      {"line", T_PYSSIZET, offsetof(PyDefinition, line), READONLY, "The line in the file that the text begins at."},
      {"resolver", T_OBJECT_EX, offsetof(PyDefinition, resolver), READONLY, "What is asked of free names."},
      {"defaults", T_OBJECT_EX, offsetof(PyDefinition, defaults), READONLY, "{parameter: default}."},
      {"types", T_OBJECT_EX, offsetof(PyDefinition, types), READONLY,
       "{parameter or \"return\": type} where the text does not say it; a parameter with the type None is none."},
      {"name", T_OBJECT_EX, offsetof(PyDefinition, name), READONLY, "What the function is called when it is compiled."},
      {}};
  PyType_Slot slots[] = {{Py_tp_new, reinterpret_cast<void*>(&definition_new)},
                         {Py_tp_dealloc, reinterpret_cast<void*>(&definition_dealloc)},
                         {Py_tp_traverse, reinterpret_cast<void*>(&definition_traverse)},
                         {Py_tp_clear, reinterpret_cast<void*>(&definition_clear)},
                         {Py_tp_members, members},
                         {Py_tp_doc, const_cast<char*>("ScriptDefinition(text, filename, line, resolver, defaults, types, name)\n\n"
                                                       "A function as _jit_define compiles it.")},
                         {0, nullptr}};
  PyType_Spec spec{"cresset._C.ScriptDefinition", sizeof(PyDefinition), 0, Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC, slots};
  definition_type = reinterpret_cast<PyTypeObject*>(checked(PyType_FromSpec(&spec)).release());
  checked(PyModule_AddObjectRef(module, "ScriptDefinition", reinterpret_cast<PyObject*>(definition_type)));
}

// The function without a parameter, whose name is looked up outside.
std::shared_ptr<const jit::FunctionDefinition> without_parameter(const jit::FunctionDefinition& f, const std::string& name) {
  auto changed = std::make_shared<jit::FunctionDefinition>(f);
  std::erase_if(changed->parameters, [&](const jit::Parameter& p) { return p.name == name; });
  return changed;
}

jit::Definition to_definition(PyObject* o) {
  const PyDefinition& given = definition_of(o);
  const auto source =
      std::make_shared<const jit::Source>(to_text(given.text), to_text(given.filename), static_cast<std::size_t>(given.line));
  jit::Definition d;
  d.tree = jit::parse_function(source);
  d.resolver = python_resolver(given.resolver);
  PyObject *key, *value;
  for (Py_ssize_t at = 0; PyDict_Next(given.types, &at, &key, &value);) {
    if (value == Py_None)
      d.tree = without_parameter(*d.tree, to_text(key));
    else
      d.types.emplace(to_text(key), to_type(value));
  }
  for (Py_ssize_t at = 0; PyDict_Next(given.defaults, &at, &key, &value);) {
    const std::string name = to_text(key);
    const auto type = d.types.find(name);
    if (type != d.types.end() && !fits(value, *type->second))
      CRESSET_THROW(Error, "Expected a default value of type ", type->second->annotation_str(), " on parameter \"", name, "\".");
    try {
      d.defaults.emplace(name, to_ivalue(value, type == d.types.end() ? *basic_type(TypeKind::Any) : *type->second, name));
    } catch (const TypeError& e) {
      CRESSET_THROW(Error, "the default value of parameter \"", name, "\": ", e.msg());
    }
  }
  d.name = to_text(given.name);
  return d;
}

bool inline_everything = false;  // for the process, under the GIL

// _jit_define(prefix, definitions, class or None, concrete type or None): into the unit of the class or of the concrete type's class, else
// into a new one, which the functions' handles own. A graph that calls a function owns it.
Object define(std::string prefix, PyObject* definitions, PyObject* owner, PyObject* concrete) {
  std::vector<jit::Definition> all;
  const Ref items = checked(PySequence_Fast(definitions, "definitions were required"));
  for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(items.get()); ++i)
    all.push_back(to_definition(PySequence_Fast_GET_ITEM(items.get(), i)));
  jit::SelfFactory self;
  jit::ClassTypePtr type;
  if (owner != Py_None) type = to_class(owner);
  if (concrete != Py_None) self = [held = std::make_shared<const Held>(concrete)](Value* v) { return module_value(v, held); };
  const jit::ClassTypePtr home = type                  ? type
                                 : concrete != Py_None ? to_class(checked(PyObject_GetAttrString(concrete, "type")).get())
                                                       : nullptr;
  const auto unit = home ? home->unit() : std::make_shared<jit::CompilationUnit>();
  if (!home)
    for (const jit::Definition& d : all) owners()[prefix + "." + d.name] = {unit, {}};  // while it is compiled
  const auto functions = jit::define_functions(*unit, prefix, all, type, self);
  if (inline_everything)
    for (const auto& f : functions) jit::inline_calls(f->graph());
  if (!home)
    for (const auto& f : functions) owners()[f->qualname()].function = weak_intrusive_ptr<jit::Function>(f);
  const Ref list = checked(PyList_New(0));
  for (const auto& f : functions) checked(PyList_Append(list.get(), checked(wrap_function(f)).get()));
  return Object(Ref::borrow(list.get()));
}

TypePtr make_interface(std::string name, bool is_module) {
  const auto type = jit::InterfaceType::create(mangled(name), is_module);
  python_unit()->register_type(type);
  return type;
}

void add_interface_method(const TypePtr& type, std::string name, const std::vector<std::string>& names, const std::vector<TypePtr>& types,
                          TypePtr result) {
  const auto interface = type->cast<jit::InterfaceType>();
  CRESSET_CHECK_TYPE(interface && names.size() == types.size(), "an interface and a type for each parameter were required.");
  std::vector<cresset::Argument> arguments(1 + names.size()), returns(1);
  arguments[0].name = "self";
  arguments[0].type = type;
  for (std::size_t k = 0; k < names.size(); ++k) {
    arguments[k + 1].name = names[k];
    arguments[k + 1].type = types[k];
  }
  returns[0].type = std::move(result);
  interface->addMethod(FunctionSchema(OperatorName{std::move(name), ""}, std::move(arguments), std::move(returns)));
}

TypePtr make_enum(std::string name, TypePtr value_type, std::vector<std::string> names, std::vector<PyObject*> values) {
  const auto type = jit::EnumType::create(mangled(name), value_type);
  for (std::size_t i = 0; i < names.size(); ++i) type->addEnumerator(names[i], to_ivalue(values[i], *value_type, name));
  python_unit()->register_type(type);
  return type;
}

TypePtr make_named_tuple(std::string name, std::vector<std::string> fields, std::vector<TypePtr> types) {
  TypePtr type = named_tuple_of(mangled(name), std::move(fields), std::move(types));
  python_unit()->register_type(type);
  return type;
}

}  // namespace

void init_script_compile(PyObject* module) {
  install_python_calls();
  init_script_things(module);
  init_script_kinds();
  init_definition(module);
  def(module, "_jit_class", [](std::string name, bool is_module) { return new_class(name, is_module); });
  def(module, "_jit_class_attribute", [](PyObject* cls, std::string name, TypePtr type, bool parameter, bool buffer) {
    to_class(cls)->addAttribute(name, std::move(type), parameter, buffer);
  });
  def(module, "_jit_class_constant", [](PyObject* cls, std::string name, PyObject* value, TypePtr type) {
    to_class(cls)->addConstant(name, to_ivalue(value, *type, "constant '" + name + "'"));
  });
  def(
      module, "_jit_set_inline_everything_mode", [](bool on) { inline_everything = on; },
      "Whether what is compiled from now on has the bodies of what it calls instead of the calls.");
  def(module, "_jit_get_inline_everything_mode", [] { return inline_everything; });
  def(module, "_jit_class_hook", [](PyObject* cls, intrusive_ptr<jit::Function> hook, bool before) {
    const auto type = to_class(cls);
    before ? type->addForwardPreHook(hook.get()) : type->addForwardHook(hook.get());
  });
  def(module, "_jit_class_method", [](PyObject* cls, std::string name) -> std::optional<Object> {
    jit::Function* f = to_class(cls)->findMethod(name);
    if (!f) return std::nullopt;
    return Object(wrap_function(intrusive_ptr<jit::Function>::reclaim_copy(f)));
  });
  def(module, "_jit_enum", [](std::string name, TypePtr value_type, std::vector<std::string> names, std::vector<PyObject*> values) {
    return make_enum(std::move(name), std::move(value_type), std::move(names), std::move(values));
  });
  def(module, "_jit_named_tuple", [](std::string name, std::vector<std::string> fields, std::vector<TypePtr> types) {
    return make_named_tuple(std::move(name), std::move(fields), std::move(types));
  });
  def(module, "_jit_interface", [](std::string name, bool is_module) { return make_interface(std::move(name), is_module); });
  def(module, "_jit_interface_method",
      [](TypePtr interface, std::string name, std::vector<std::string> names, std::vector<TypePtr> types, TypePtr result) {
        add_interface_method(interface, std::move(name), names, types, std::move(result));
      });
  def(module, "_jit_remember_class", [](std::string name, PyObject* cls) { remember_class(name, cls); });
  def(module, "_jit_define", [](std::string prefix, PyObject* definitions, PyObject* owner, PyObject* concrete) {
    return define(std::move(prefix), definitions, owner, concrete);
  });
  def(
      module, "_jit_custom_class_type", [](std::string name) { return object_type(std::move(name)); },
      "The type of a C++ class's objects.");
  def(
      module, "_jit_mangled",
      [](std::string name, std::optional<PyObject*> cls) { return cls ? mangled(name, *to_class(*cls)->unit()) : mangled(name); },
      "The name, or one that is free in the unit (of the class, where one is given) when it is taken.");
  def(module, "_jit_clear_class_registry", [] {
    owners().clear();
    begin_python_unit();
  });
  def(module, "_jit_object", [](PyObject* cls) { return Object(wrap_object(jit::Object(jit::new_object(to_class(cls))))); });
  def(module, "_jit_is_subtype", [](TypePtr a, TypePtr b) -> std::optional<std::string> {
    std::string why;
    if (a->is_subtype_of(*b, &why)) return std::nullopt;
    return why.empty() ? std::string("it is no subtype") : why;
  });
  def(module, "_jit_is_script_type", [](TypePtr a) {
    return dynamic_cast<const jit::ClassType*>(a.get()) || a->kind == TypeKind::Interface || a->kind == TypeKind::Enum;
  });
}

}  // namespace cresset::python
