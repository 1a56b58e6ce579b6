// save: objects, then the code of every class and function that they or the code mention.
#include <cresset/ir/archive.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>
#include <unordered_set>

#include <cresset/ops/functions_creation.h>

#include "base/replaced_file.h"
#include "ir/archive/code_printer.h"
#include "ir/archive/pickler.h"
#include "ir/archive/zip_archive.h"

namespace cresset::jit {
namespace {

// The oldest version in which all operators of an archive mean what they mean today: so that old programs read it.
constexpr int64_t kOldestVersion = 3;
constexpr std::pair<std::string_view, int64_t> kSince[] = {{"aten::div", 4},      {"aten::div_", 4},     {"aten::full", 5},
                                                           {"aten::linspace", 8}, {"aten::logspace", 9}, {"aten::gelu", 10}};

int64_t version_of(const Graph& graph) {
  int64_t version = kOldestVersion;
  graph.block()->visit([&](const Node* n) {
    for (const auto& [name, since] : kSince)
      if (name == n->kind().toQualString() && (since != 4 || n->input(0)->type()->kind == TypeKind::Tensor))
        version = std::max(version, since);
    if (n->hasAttribute(attr::Subgraph) && n->kindOf(attr::Subgraph) == AttributeKind::g)
      version = std::max(version, version_of(*n->g(attr::Subgraph)));
  });
  return version;
}

// Names of types and functions in one archive. Two of one name (from different units) are told apart by a mangled one.
class ArchiveNames {
 public:
  struct Entry {
    std::string name;
    TypePtr type;                      // either a type
    intrusive_ptr<Function> function;  // or a function
  };
  std::string of_type(const TypePtr& type) {
    if (type->name.starts_with("__torch__.torch.classes.")) return type->name;  // of C++, by which every program knows it
    const auto [found, added] = names_.try_emplace(type.get());
    if (added) {
      found->second = unique(type->name);
      entries_.push_back({found->second, type, nullptr});
    }
    return found->second;
  }
  std::string of_function(const Function& f) {
    const auto [found, added] = names_.try_emplace(&f);
    if (added) {
      found->second = unique(f.qualname());
      entries_.push_back({found->second, nullptr, intrusive_ptr<Function>::reclaim_copy(const_cast<Function*>(&f))});
    }
    return found->second;
  }
  /// Grows while it is read: writing code mentions further names.
  const std::vector<Entry>& entries() const { return entries_; }

 private:
  std::string unique(std::string name) {
    if (name.rfind("__torch__.", 0) != 0) name = "__torch__." + name;
    const auto taken = [this](const std::string& n) { return used_.count(n) != 0; };
    if (taken(name)) name = mangle_name(name, taken);
    used_.insert(name);
    return name;
  }
  std::unordered_map<const void*, std::string> names_;
  std::unordered_set<std::string> used_;
  std::vector<Entry> entries_;
};

/// The whole storage of a tensor as a tensor of one dimension.
Tensor whole_storage(const Tensor& t) {
  const auto elements = static_cast<int64_t>(t.storage().nbytes() / t.itemsize());
  return Tensor(
      make_intrusive<TensorImpl>(t.storage(), t.key_set(), t.scalar_type(), std::vector<int64_t>{elements}, std::vector<int64_t>{1}, 0));
}

class ArchiveWriter {
 public:
  ArchiveWriter(std::ostream& out, std::string name) : zip_(out), top_(std::move(name) + "/") {}

  void run(const Module& module, const ExtraFilesMap& extra_files) {
    const std::map<std::string, std::string> sorted(extra_files.begin(), extra_files.end());
    for (const auto& [name, content] : sorted) add("extra/" + name, content);
    values("data", IValue(module._ivalue()));
    code();
    values("constants", IValue(make_intrusive<ivalue::TupleImpl>(constants_.values())));
    finish();
  }
  /// A value without code.
  void run(const IValue& value) {
    values("data", value);
    CRESSET_CHECK(names_.entries().empty(), "pickle_save: a value without objects of scripts' classes was required; this one has one of '",
                  names_.entries()[0].name, "'. jit::save writes their code, too.");
    finish();
  }

 private:
  void finish() {
    add("version", std::to_string(version_) + "\n");
    add("byteorder", "little");
    add(".data/serialization_id", identity_of(zip_, top_.size()));
    zip_.finish();
  }
  void add(const std::string& name, std::string_view data) { zip_.add(top_ + name, data); }
  CodeNames code_names() {
    return {[this](const TypePtr& t) { return names_.of_type(t); }, [this](const Function& f) { return names_.of_function(f); }};
  }

  // <folder>.pkl and the storages of its tensors.
  void values(const std::string& folder, const IValue& v) {
    std::vector<Tensor> storages;
    std::unordered_map<const StorageImpl*, std::string> keys;
    PicklerHooks hooks;
    hooks.type_name = [this](const TypePtr& t) { return names_.of_type(t); };
    hooks.annotation = [this](const TypePtr& t) { return annotation_text(t, code_names()); };
    hooks.storage_key = [&](const Tensor& t) {
      const auto [found, added] = keys.try_emplace(t.storage().unsafeGetStorageImpl(), std::to_string(storages.size()));
      if (added) storages.push_back(t);
      return found->second;
    };
    const std::string bytes = pickle(v, hooks);
    for (std::size_t i = 0; i < storages.size(); ++i) storage(folder + "/" + std::to_string(i), storages[i]);
    add(folder + ".pkl", bytes);
  }

  void storage(const std::string& name, const Tensor& t) {
    if (t.is_meta()) return add(name, {});  // there is nothing but its size
    const NoGradGuard no_grad;
    Tensor all = whole_storage(t);
    if (!t.device().is_cpu()) all = all.to(TensorOptions().device(kCPU));
    add(name, {static_cast<const char*>(all.const_data_ptr()), all.nbytes()});
  }

  void need(const Function& f) {
    if (const auto graph = f.graph()) version_ = std::max(version_, version_of(*graph));
  }

  // One text a package, in the order in which classes and functions are first mentioned.
  void code() {
    std::vector<std::pair<std::string, std::unique_ptr<CodePrinter>>> packages;
    for (std::size_t i = 0; i < names_.entries().size(); ++i) {
      const ArchiveNames::Entry entry = names_.entries()[i];
      const std::string package = entry.name.substr(0, entry.name.rfind('.'));
      auto found = std::find_if(packages.begin(), packages.end(), [&](const auto& p) { return p.first == package; });
      if (found == packages.end()) {
        packages.emplace_back(package, std::make_unique<CodePrinter>(code_names(), constants_));
        found = packages.end() - 1;
      }
      if (entry.type)
        found->second->type(entry.type);
      else
        found->second->function(*entry.function);
      if (!entry.type)
        need(*entry.function);
      else if (const auto cls = entry.type->cast<ClassType>())
        for (const std::vector<Function*>& functions : {cls->methods(), cls->getForwardPreHooks(), cls->getForwardHooks()})
          for (const Function* f : functions) need(*f);
    }
    for (auto& [package, printer] : packages) {
      std::string path = package;
      std::replace(path.begin(), path.end(), '.', '/');
      zip_.add_text(top_ + "code/" + path + ".py", printer->text());
      zip_.add_text(top_ + "code/" + path + ".py.debug_pkl", pickle_source_map(printer->ranges()));
    }
  }

  ZipWriter zip_;
  std::string top_;
  ArchiveNames names_;
  ConstantTable constants_;
  int64_t version_ = kOldestVersion;
};

template <class Write>
void write_file(const std::string& path, Write write) {
  ReplacedFile replaced("archive", path);
  std::ofstream file(replaced.temporary(), std::ios::binary);
  if (!file) replaced.fail();
  write(file);
  file.close();
  if (!file) replaced.fail();
  replaced.commit();
}
std::string archive_name(const std::string& path) {
  const std::string stem = std::filesystem::path(path).stem().string();
  return stem.empty() ? "archive" : stem;
}

// A module whose forward is the function.
Module as_module(const Function& function) {
  const auto original = function.graph();
  CRESSET_CHECK(original, "archive: function '", function.qualname(), "' is not written in the script language; its code cannot be saved.");
  Module module("__torch__.PlaceholderModule");
  module.register_attribute("training", basic_type(TypeKind::Bool), IValue(true));
  const auto graph = original->copy();
  graph->insertInput(0, "self")->setType(module.type());
  auto forward = make_intrusive<GraphFunction>("__torch__.PlaceholderModule.forward", graph);
  std::vector<Argument> arguments = function.getSchema().arguments();
  Argument self;
  self.name = "self";
  self.type = module.type();
  arguments.insert(arguments.begin(), std::move(self));
  forward->setSchema(FunctionSchema(OperatorName{"forward", ""}, std::move(arguments), function.getSchema().returns()));
  module.type()->addMethod(std::move(forward));
  return module;
}

}  // namespace

void save(const Module& module, std::ostream& out, const ExtraFilesMap& extra_files) {
  ArchiveWriter(out, "archive").run(module, extra_files);
}
void save(const Module& module, const std::string& path, const ExtraFilesMap& extra_files) {
  write_file(path, [&](std::ostream& out) { ArchiveWriter(out, archive_name(path)).run(module, extra_files); });
}
void save(const Function& function, std::ostream& out, const ExtraFilesMap& extra_files) { save(as_module(function), out, extra_files); }
void save(const Function& function, const std::string& path, const ExtraFilesMap& extra_files) {
  save(as_module(function), path, extra_files);
}

std::vector<char> pickle_save(const IValue& value) {
  std::ostringstream out;
  ArchiveWriter(out, "archive").run(value);
  const std::string bytes = out.str();
  return {bytes.begin(), bytes.end()};
}

std::vector<char> pickle(const IValue& value, std::vector<Tensor>* tensor_table) {
  const CodeNames no_names = {[](const TypePtr& t) -> std::string {
                                CRESSET_THROW(Error,
                                              "pickle: a value without objects of scripts' classes was required; this one has one of '",
                                              t->str(), "'. jit::save writes their code, too.");
                              },
                              [](const Function&) -> std::string { CRESSET_THROW(Error, "pickle: a function is no value."); }};
  PicklerHooks hooks;
  hooks.type_name = no_names.type;
  hooks.annotation = [&](const TypePtr& t) { return annotation_text(t, no_names); };
  hooks.storage_key = [&](const Tensor& t) {
    CRESSET_CHECK(tensor_table, "pickle: a table for tensors is required, for the value has one.");
    for (std::size_t i = 0; i < tensor_table->size(); ++i)
      if ((*tensor_table)[i].is_alias_of(t) && (*tensor_table)[i].scalar_type() == t.scalar_type()) return std::to_string(i);
    tensor_table->push_back(whole_storage(t));
    return std::to_string(tensor_table->size() - 1);
  };
  const std::string bytes = pickle(value, hooks);
  return {bytes.begin(), bytes.end()};
}

void Module::save(const std::string& path, const ExtraFilesMap& extra_files) const { jit::save(*this, path, extra_files); }
void Module::save(std::ostream& out, const ExtraFilesMap& extra_files) const { jit::save(*this, out, extra_files); }

}  // namespace cresset::jit
