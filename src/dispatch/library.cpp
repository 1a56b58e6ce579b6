// Registration blocks: names, namespaces and keys are checked here, then handed to the dispatcher.
#include <cresset/dispatch/library.h>
#include <cresset/dispatch/register_operators.h>

#include "dispatch/near_misses.h"

namespace cresset {
namespace {
const char* kind_name(Library::Kind k) {
  return k == Library::DEF ? "TORCH_LIBRARY" : k == Library::IMPL ? "TORCH_LIBRARY_IMPL" : "TORCH_LIBRARY_FRAGMENT";
}

[[noreturn]] void raise_unknown(const OperatorName& name, const std::string& place) {
  std::vector<std::string> names;
  for (const OperatorName& n : Dispatcher::singleton().getAllOpNames()) names.push_back(n.str());
  const std::string near = impl::near_misses(name.str(), names);
  CRESSET_THROW(Error, "impl(\"", name, "\"): there is no such operator", near.empty() ? "" : "; near names: " + near, " (", place, ").");
}
}  // namespace

Library::Library(Kind kind, std::string ns, std::optional<DispatchKey> key, const char* file, uint32_t line)
    : kind_(kind), ns_(std::move(ns)), key_(key == DispatchKey::CatchAll ? std::nullopt : key), file_(file), line_(line) {
  CRESSET_CHECK(kind != IMPL ? ns_ != "_" : true, kind_name(kind),
                ": cannot define operators in the namespace of all operators `_`. Name a namespace.");
  if (kind == DEF) registrations_.push_back(Dispatcher::singleton().registerLibrary(ns_, place()));
}

std::string Library::place() const { return str("registered at ", file_, ":", line_); }

OperatorName Library::qualify(OperatorName name, const char* call) const {
  const std::string_view given = name.ns();
  if (given.empty()) {
    CRESSET_CHECK(ns_ != "_", call, "(\"", name, "\"): an operator in the block of namespace `_` must be written with its namespace.");
    name.name = ns_ + "::" + name.name;
    return name;
  }
  const bool impl = kind_ == IMPL;
  CRESSET_CHECK(
      ns_ == "_" || given == ns_, impl ? str(call, "(\"", name, "\", ...): ") : std::string(), "Explicitly provided namespace (", given,
      ") in ", impl ? "operator name" : "schema string", " does not match namespace of enclosing ", kind_name(kind_), " block (", ns_,
      ").  Move this definition to the ", impl ? "TORCH_LIBRARY_IMPL" : "(unique) TORCH_LIBRARY",
      " block corresponding to this namespace (and consider deleting the namespace from your schema string.)  (Error occurred while "
      "processing ",
      kind_name(kind_), " block at ", file_, ":", line_, ")");
  return name;
}

Library& Library::def(std::string_view schema, std::vector<std::string> tags) { return def(parse_schema(schema), std::move(tags)); }

Library& Library::def(FunctionSchema schema, std::vector<std::string> tags) {
  CRESSET_CHECK(
      kind_ != IMPL, "def(\"", schema, "\"): Cannot define an operator inside of a ", kind_name(kind_),
      " block.  All def()s should be placed in the (unique) TORCH_LIBRARY block for their namespace.  (Error occurred while processing ",
      kind_name(kind_), " block at ", file_, ":", line_, ")");
  FunctionSchema named(qualify(schema.operator_name(), "def"), schema.arguments(), schema.returns(), schema.is_vararg(),
                       schema.is_varret());
  if (schema.has_alias_analysis()) named.set_alias_analysis(schema.alias_analysis());
  registrations_.push_back(Dispatcher::singleton().registerDef(std::move(named), place(), std::move(tags), python_module_));
  return *this;
}

Library& Library::def_with_kernel(std::string_view name_or_schema, CppFunction f, AliasAnalysisKind alias) {
  auto parsed = parse_schema_or_name(name_or_schema);
  if (auto* schema = std::get_if<FunctionSchema>(&parsed)) return def_with_kernel(std::move(*schema), std::move(f));
  const OperatorName& n = std::get<OperatorName>(parsed);
  CRESSET_CHECK(
      f.inferred_, "def(\"", n,
      "\"): Full schema string was not specified, and we couldn't infer schema either. Please explicitly provide a schema string.");
  FunctionSchema inferred(n, f.inferred_->arguments(), f.inferred_->returns());
  inferred.set_alias_analysis(alias);
  return def_with_kernel(std::move(inferred), std::move(f));
}

Library& Library::def_with_kernel(FunctionSchema schema, CppFunction f) {
  const std::string name = schema.operator_name().str();
  def(std::move(schema));
  // The kernel of a def serves every backend unless it names a key.
  const OperatorName full = qualify(parse_operator_name(name), "def");
  const std::string debug = f.debug_.empty() ? place() : f.debug_;
  try {
    registrations_.push_back(
        Dispatcher::singleton().registerImpl(full, f.key_, std::move(f.kernel_), f.signature_, std::move(f.inferred_), debug));
  } catch (...) {
    registrations_.pop_back();  // the definition made above: a failed call leaves nothing behind
    throw;
  }
  return *this;
}

Library& Library::impl_kernel(std::string_view name, CppFunction f) {
  const OperatorName full = qualify(parse_operator_name(name), "impl");
  if (names_must_exist_ && (full.ns() == "aten" || full.ns() == "cresset") && !Dispatcher::singleton().findSchema(full))
    raise_unknown(full, place());
  CRESSET_CHECK(!(f.key_ && key_ && *f.key_ != *key_), "impl(\"", full, "\", ...): Explicitly provided dispatch key (",
                f.key_ ? *f.key_ : DispatchKey::Undefined, ") is inconsistent with the dispatch key of the enclosing ", kind_name(kind_),
                " block (", key_ ? *key_ : DispatchKey::Undefined, "). Declare a separate block for this dispatch key (", place(), ").");
  const std::string debug = f.debug_.empty() ? place() : f.debug_;
  if (const auto key = f.key_ ? f.key_ : key_; key && isForeignDispatchKey(*key)) return *this;  // nothing can call it
  registrations_.push_back(Dispatcher::singleton().registerImpl(full, f.key_ ? f.key_ : key_, std::move(f.kernel_), f.signature_,
                                                                std::move(f.inferred_), debug));
  return *this;
}

Library& Library::fallback_kernel(CppFunction f) {
  CRESSET_CHECK(kind_ == IMPL, "fallback(...): Cannot define an operator inside of a ", kind_name(kind_),
                " block. Did you mean to call this function inside a TORCH_LIBRARY_IMPL block?");
  const std::optional<DispatchKey> key = f.key_ ? f.key_ : key_;
  CRESSET_CHECK(key, "fallback(...): a dispatch key was required. Did you mean to use TORCH_LIBRARY_IMPL(_, Key, m)?");
  CRESSET_CHECK(ns_ == "_", "fallback(...): Fallback functions which apply to only a single namespace (you specified ", ns_,
                ") are not supported. If you intended to apply "
                "this fallback function globally, please define a separate block: TORCH_LIBRARY_IMPL(_, ",
                *key, ", m) { m.fallback(...); }");
  const std::string debug = f.debug_.empty() ? place() : f.debug_;
  if (isForeignDispatchKey(*key)) return *this;
  registrations_.push_back(Dispatcher::singleton().registerFallback(*key, std::move(f.kernel_), debug));
  return *this;
}

void RegisterOperators::add(Options&& o) {
  const auto parsed = parse_schema_or_name(o.schema_);
  const auto* schema = std::get_if<FunctionSchema>(&parsed);
  const OperatorName name = schema ? schema->operator_name() : std::get<OperatorName>(parsed);
  CRESSET_CHECK(!name.ns().empty(), "RegisterOperators: an operator with its namespace was required; \"", o.schema_, "\" was given.");
  Library& library = libraries_.emplace_back(Library::FRAGMENT, std::string(name.ns()), std::nullopt, "RegisterOperators", 0);
  auto kernel = o.kernels_.begin();
  if (!Dispatcher::singleton().findSchema(name)) {
    if (schema) {
      FunctionSchema with_alias = *schema;
      if (o.alias_) with_alias.set_alias_analysis(*o.alias_);
      library.def(std::move(with_alias));
    } else {
      CRESSET_CHECK(kernel != o.kernels_.end(), "RegisterOperators: \"", o.schema_,
                    "\" has neither a schema nor a kernel to infer one from.");
      library.def_with_kernel(name.str(), std::move(*kernel++), o.alias_.value_or(AliasAnalysisKind::CONSERVATIVE));
      if (o.alias_ == AliasAnalysisKind::FROM_SCHEMA) {
        const std::string inferred = Dispatcher::singleton().findSchema(name)->schema().str();
        libraries_.pop_back();
        CRESSET_THROW(Error, "Tried to register operator ", inferred, " with AliasAnalysisKind::FROM_SCHEMA, but the schema is inferred.");
      }
    }
  }
  for (; kernel != o.kernels_.end(); ++kernel) library.impl(name.str(), std::move(*kernel));
}

}  // namespace cresset
