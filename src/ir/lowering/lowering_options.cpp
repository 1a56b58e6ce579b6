// Options of lowering by name: one table.
#include <cresset/ir/lowering_options.h>

#include <algorithm>
#include <variant>

#include <cresset/base/error.h>

namespace cresset::jit {
namespace {

using Member =
    std::variant<bool LoweringOptions::*, std::optional<std::string> LoweringOptions::*, std::vector<std::string> LoweringOptions::*>;
struct Row {
  std::string_view name;
  Member member;
};

#define ROW(name) \
  Row { #name, &LoweringOptions::name }
const Row kRows[] = {
    ROW(approximate_gelu),
    ROW(assume_batched),
    ROW(assume_inference),
    ROW(building_engine),
    ROW(casts_are_managed),
    ROW(delete_delimiters),
    ROW(disable_cse),
    ROW(disabled_passes),
    ROW(documented_forms),
    ROW(fuse_addmm),
    ROW(layout_is_managed),
    ROW(linear_flattens),
    ROW(outputs_may_alias_inputs),
    ROW(refine_list_lengths),
    ROW(remove_casts),
    ROW(remove_checks),
    ROW(stable_numerics),
    ROW(target_device),
    ROW(torch_executed_modules),
    ROW(trust_examples),
    ROW(trust_types),
    ROW(unfreeze),
};
#undef ROW

bool flag_of(std::string_view name, std::string_view value) {
  if (value.empty() || value == "1" || value == "true" || value == "on") return true;
  if (value == "0" || value == "false" || value == "off") return false;
  CRESSET_THROW(ValueError, "lowering option '", name, "': 0 or 1 was required, '", value, "' was given.");
}

std::vector<std::string> split(std::string_view list) {
  std::vector<std::string> out;
  while (!list.empty()) {
    const std::size_t comma = list.find(',');
    if (comma != 0) out.emplace_back(list.substr(0, comma));
    if (comma == std::string_view::npos) break;
    list.remove_prefix(comma + 1);
  }
  return out;
}

}  // namespace

void LoweringOptions::set_documented_forms(bool on) {
  documented_forms = linear_flattens = casts_are_managed = remove_casts = layout_is_managed = outputs_may_alias_inputs = on;
  stable_numerics = !on;
}

std::vector<std::string> lowering_option_names() {
  std::vector<std::string> out;
  for (const Row& r : kRows) out.emplace_back(r.name);
  return out;
}

void set_lowering_option(LoweringOptions& options, std::string_view assignment) {
  const std::size_t equals = assignment.find('=');
  std::string name(assignment.substr(0, equals));
  std::replace(name.begin(), name.end(), '-', '_');
  const std::string_view value = equals == std::string_view::npos ? std::string_view() : assignment.substr(equals + 1);
  for (const Row& r : kRows) {
    if (r.name != name) continue;
    if (name == "documented_forms")
      options.set_documented_forms(flag_of(name, value));
    else if (const auto* flag = std::get_if<bool LoweringOptions::*>(&r.member))
      options.*(*flag) = flag_of(name, value);
    else if (const auto* text = std::get_if<std::optional<std::string> LoweringOptions::*>(&r.member))
      options.*(*text) = value.empty() ? std::nullopt : std::optional<std::string>(value);
    else
      options.*std::get<std::vector<std::string> LoweringOptions::*>(r.member) = split(value);
    return;
  }
  std::string names;
  for (const Row& r : kRows) names += (names.empty() ? "" : ", ") + std::string(r.name);
  CRESSET_THROW(ValueError, "there is no lowering option '", name, "'. Options: ", names);
}

}  // namespace cresset::jit
