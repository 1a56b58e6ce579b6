#include <cresset/distributed/debug.h>
#include <cresset/ops/functions_creation.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <cstring>

namespace cresset::distributed {

// --- levels

namespace {

std::atomic<int> level_that_was_set{-1};

std::optional<DebugLevel> level_of(std::string word) {
  std::transform(word.begin(), word.end(), word.begin(), [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
  if (word == "OFF") return DebugLevel::Off;
  if (word == "INFO") return DebugLevel::Info;
  if (word == "DETAIL") return DebugLevel::Detail;
  return std::nullopt;
}
std::string word_in_environment() {
  const char* word = std::getenv("TORCH_DISTRIBUTED_DEBUG");
  return word && *word ? word : "OFF";
}

}  // namespace

DebugLevel debug_level() {
  const int level = level_that_was_set;
  return level >= 0 ? static_cast<DebugLevel>(level) : level_of(word_in_environment()).value_or(DebugLevel::Off);
}
void setDebugLevel(DebugLevel level) { level_that_was_set = static_cast<int>(level); }
void setDebugLevelFromEnvironment() {
  const std::string word = word_in_environment();
  const auto level = level_of(word);
  CRESSET_CHECK_VALUE(level, "The value of TORCH_DISTRIBUTED_DEBUG must be one of OFF, INFO, DETAIL; it is ", word, ".");
  setDebugLevel(*level);
}

// --- the same call on all ranks

namespace {

using Tensors = std::vector<Tensor>;

/// What is compared, as text: "OpType", "TensorShape", ... with their values.
using Aspects = std::vector<std::pair<std::string, std::string>>;

std::string joined(const Tensors& tensors, std::string (*text)(const Tensor&)) {
  std::string out;
  for (const Tensor& t : tensors) out += (out.empty() ? "" : ", ") + text(t);
  return out;
}
std::string shape_of(const Tensor& t) {
  std::string out;
  for (const int64_t n : t.sizes()) out += (out.empty() ? "" : ", ") + std::to_string(n);
  return "[" + out + "]";
}
Aspects aspects_of(const char* name, uint64_t number, const Tensors& tensors) {
  std::string op = name;
  for (char& c : op) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  Aspects out{{"SequenceNumber", std::to_string(number)}, {"OpType", op}};
  if (tensors.empty()) return out;
  out.emplace_back("TensorShape", joined(tensors, shape_of));
  out.emplace_back("TensorDtypes", joined(tensors, [](const Tensor& t) { return std::string(toString(t.scalar_type())); }));
  out.emplace_back("TensorDeviceTypes", joined(tensors, [](const Tensor& t) { return std::string(DeviceTypeName(t.device().type())); }));
  return out;
}
std::string fingerprint(const Aspects& aspects) {
  std::string out;
  for (const auto& [what, value] : aspects) out += (out.empty() ? "" : ", ") + what + "=" + value;
  return "CollectiveFingerPrint(" + out + ")";
}
std::string differences(const Aspects& mine, const Aspects& theirs) {
  const auto value_in = [](const Aspects& in, const std::string& what) -> std::string {
    for (const auto& [name, value] : in)
      if (name == what) return value;
    return "none";
  };
  std::string out;
  const Aspects& longer = mine.size() < theirs.size() ? theirs : mine;
  for (const auto& [what, value] : longer)
    if (const std::string a = value_in(mine, what), b = value_in(theirs, what); a != b)
      out += (out.empty() ? "" : ", ") + what + " " + a + " vs " + b;
  return out;
}

// As lines "what=value", in a buffer that is as long on all ranks. A longer text is cut, on all ranks alike.
constexpr int64_t kRoom = 4096;
Tensor packed(const Aspects& aspects) {
  std::string text;
  for (const auto& [what, value] : aspects) text += what + "=" + value + "\n";
  Tensor out = cresset::zeros({kRoom}, TensorOptions().dtype(ScalarType::Byte));
  std::memcpy(out.data_ptr(), text.data(), std::min(text.size(), static_cast<std::size_t>(kRoom - 1)));
  return out;
}
Aspects unpacked(const Tensor& t) {
  Aspects out;
  std::string_view text(static_cast<const char*>(t.data_ptr()));
  while (!text.empty()) {
    const auto line = text.substr(0, text.find('\n'));
    const auto at = line.find('=');
    if (at != std::string_view::npos) out.emplace_back(line.substr(0, at), line.substr(at + 1));
    text.remove_prefix(std::min(text.size(), line.size() + 1));
  }
  return out;
}

// What all ranks have alike in a call: tensors whose shapes may differ are left out, and so are those that only the root gives.
using Alike = std::optional<Tensors>;
Alike alike(Tensors& tensors, const CollectiveOptions&) { return tensors; }
Alike alike(std::vector<Tensors>&, Tensors& inputs, const CollectiveOptions&) { return inputs; }
Alike alike(Tensors& outputs, std::vector<Tensors>&, const CollectiveOptions&) { return outputs; }
Alike alike(Tensors&, Tensors& inputs, const AllgatherOptions&) { return inputs; }
Alike alike(Tensors&, Tensors& inputs, const ReduceScatterOptions&) { return inputs; }
Alike alike(Tensor&, Tensor& input, const CollectiveOptions&) { return Tensors{input}; }
Alike alike(Tensors&, Tensors&, const AllToAllOptions&) { return Tensors(); }
Alike alike(Tensor&, Tensor&, std::vector<int64_t>&, std::vector<int64_t>&, const AllToAllOptions&) { return Tensors(); }
Alike alike(const BarrierOptions&) { return Tensors(); }
Alike alike(Tensors&, int, int) { return std::nullopt; }  // messages between two ranks
Alike alike(Tensors&, int) { return std::nullopt; }

}  // namespace

ProcessGroupWrapper::ProcessGroupWrapper(intrusive_ptr<Backend> wrapped, intrusive_ptr<Backend> compared)
    : Backend(wrapped->getRank(), wrapped->getSize()), wrapped_(std::move(wrapped)), compared_(std::move(compared)) {
  CRESSET_CHECK_VALUE(compared_->getRank() == rank_ && compared_->getSize() == size_,
                      "ProcessGroupWrapper: two groups of the same ranks were required.");
}
ProcessGroupWrapper::~ProcessGroupWrapper() = default;

#define CRESSET_COMPARE(name, parameters, arguments)                             \
  intrusive_ptr<Work> ProcessGroupWrapper::name parameters {                     \
    if (const Alike same_on_all = alike arguments) compare(#name, *same_on_all); \
    return wrapped_->name arguments;                                             \
  }
CRESSET_COLLECTIVES(CRESSET_COMPARE)
#undef CRESSET_COMPARE

void ProcessGroupWrapper::compare(const char* name, const Tensors& tensors) {
  if (size_ == 1) return;
  const Aspects mine = aspects_of(name, ++calls_, tensors);
  compared_->monitoredBarrier(BarrierOptions(), true);
  Tensors inputs{packed(mine)};
  std::vector<Tensors> outputs(1);
  for (int r = 0; r < size_; ++r) outputs[0].push_back(cresset::empty_like(inputs[0]));
  AllgatherOptions opts;
  opts.asyncOp = false;
  compared_->allgather(outputs, inputs, opts)->wait();
  for (int r = 0; r < size_; ++r) {
    const Aspects theirs = unpacked(outputs[0][static_cast<std::size_t>(r)]);
    const std::string different = differences(unpacked(inputs[0]), theirs);
    CRESSET_CHECK(different.empty(), "Detected mismatch between collectives on ranks. Rank ", rank_,
                  " is running collective: ", fingerprint(mine), ", but Rank ", r, " is running collective: ", fingerprint(theirs),
                  ". Collectives differ in the following aspects: ", different, ".");
  }
}

void ProcessGroupWrapper::shutdown() {
  wrapped_->shutdown();
  compared_->shutdown();
}
void ProcessGroupWrapper::abort() {
  wrapped_->abort();
  compared_->abort();
}

}  // namespace cresset::distributed
