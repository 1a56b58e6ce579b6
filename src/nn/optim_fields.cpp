// Fields of options and states that are more than one value.
#include <cresset/nn/optim_fields.h>

#include <algorithm>

#include <cresset/ops/functions_reduce.h>

namespace cresset::optim {

namespace {
[[noreturn]] void not_overridden(const char* what) {
  CRESSET_THROW(Error, what,
                " has not been overridden by these options: derive OptimizerCloneableOptions instead of OptimizerOptions, or override it.");
}
}  // namespace
std::unique_ptr<OptimizerOptions> OptimizerOptions::clone() const { not_overridden("OptimizerOptions::clone()"); }
double OptimizerOptions::get_lr() const { not_overridden("OptimizerOptions::get_lr()"); }
void OptimizerOptions::set_lr(double /*lr*/) { not_overridden("OptimizerOptions::set_lr()"); }
void OptimizerOptions::serialize(serialize::OutputArchive& /*archive*/) const { not_overridden("OptimizerOptions::serialize()"); }
void OptimizerOptions::serialize(serialize::InputArchive& /*archive*/) { not_overridden("OptimizerOptions::serialize()"); }

bool same_field(const Tensor& a, const Tensor& b) {
  if (!a.defined() || !b.defined()) return a.defined() == b.defined();
  return cresset::equal(a, b);
}
namespace {
template <class List>
bool same_list(const List& a, const List& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const Tensor& x, const Tensor& y) { return same_field(x, y); });
}

// A part with the tensors under their numbers.
template <class List>
void write_list(serialize::OutputArchive& archive, const std::string& name, const List& tensors) {
  serialize::OutputArchive part(archive.compilation_unit());
  part.write("size", IValue(static_cast<int64_t>(tensors.size())));
  for (std::size_t i = 0; i < tensors.size(); ++i) part.write(std::to_string(i), tensors[i], true);
  archive.write(name, part);
}
template <class List>
bool read_list(serialize::InputArchive& archive, const std::string& name, List& tensors) {
  tensors.clear();
  serialize::InputArchive part;
  if (!archive.try_read(name, part)) return false;
  IValue size;
  part.read("size", size);
  for (int64_t i = 0; i < size.toInt(); ++i) {
    Tensor t;
    part.read(std::to_string(i), t, true);
    tensors.push_back(std::move(t));
  }
  return true;
}
}  // namespace

bool same_field(const std::deque<Tensor>& a, const std::deque<Tensor>& b) { return same_list(a, b); }
bool same_field(const std::optional<std::vector<Tensor>>& a, const std::optional<std::vector<Tensor>>& b) {
  return a && b ? same_list(*a, *b) : a.has_value() == b.has_value();
}

void write_field(serialize::OutputArchive& archive, const std::string& name, const std::tuple<double, double>& value) {
  archive.write(name + "_0", IValue(std::get<0>(value)));
  archive.write(name + "_1", IValue(std::get<1>(value)));
}
void read_field(serialize::InputArchive& archive, const std::string& name, std::tuple<double, double>& value) {
  IValue first, second;
  archive.read(name + "_0", first);
  archive.read(name + "_1", second);
  value = {first.toDouble(), second.toDouble()};
}
void write_field(serialize::OutputArchive& archive, const std::string& name, const Tensor& value) {
  if (value.defined()) archive.write(name, value, true);
}
void read_field(serialize::InputArchive& archive, const std::string& name, Tensor& value) {
  value = Tensor();
  archive.try_read(name, value, true);
}
void write_field(serialize::OutputArchive& archive, const std::string& name, const std::deque<Tensor>& value) {
  write_list(archive, name, value);
}
void read_field(serialize::InputArchive& archive, const std::string& name, std::deque<Tensor>& value) { read_list(archive, name, value); }
void write_field(serialize::OutputArchive& archive, const std::string& name, const std::optional<std::vector<Tensor>>& value) {
  if (value) write_list(archive, name, *value);
}
void read_field(serialize::InputArchive& archive, const std::string& name, std::optional<std::vector<Tensor>>& value) {
  std::vector<Tensor> read;
  value.reset();
  if (read_list(archive, name, read)) value = std::move(read);
}

}  // namespace cresset::optim
