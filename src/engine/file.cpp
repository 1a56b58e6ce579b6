#include <cresset/engine/file.h>

#include <cstring>
#include <utility>

#include <cresset/core/scalar_type.h>
#include <cresset/ops/functions_creation.h>
#include <cresset/version.h>

namespace cresset::engine {
namespace {

constexpr std::string_view kMagic = "CRESSET ENGINE\n";
constexpr std::size_t kFields = 9, kNumber = 8;

// FNV-1a over whole words and the bytes that are left; files are large.
uint64_t checksum(std::string_view bytes) {
  constexpr uint64_t kPrime = 0x100000001b3;
  uint64_t out = 0xcbf29ce484222325;
  std::size_t i = 0;
  for (; i + kNumber <= bytes.size(); i += kNumber) {
    uint64_t word;
    std::memcpy(&word, bytes.data() + i, kNumber);
    out = (out ^ word) * kPrime;
    out ^= out >> 29;
  }
  for (; i < bytes.size(); ++i) out = (out ^ static_cast<unsigned char>(bytes[i])) * kPrime;
  return out;
}

class Writer {
 public:
  void number(uint64_t n) {
    for (std::size_t i = 0; i < kNumber; ++i) out_ += static_cast<char>(n >> (8 * i));
  }
  void text(std::string_view s) {
    number(s.size());
    out_ += s;
  }
  void names(const std::vector<std::string>& all) {
    number(all.size());
    for (const std::string& one : all) text(one);
  }
  void tensors(const std::vector<Tensor>& all) {
    number(all.size());
    for (const Tensor& t : all) {
      const Tensor plain = t.detach().to(Device(DeviceType::CPU)).contiguous();
      text(dtype_name(plain.scalar_type()));
      number(static_cast<uint64_t>(plain.dim()));
      for (const int64_t n : plain.sizes()) number(static_cast<uint64_t>(n));
      text({static_cast<const char*>(plain.const_data_ptr()), plain.nbytes()});
    }
  }
  void raw(std::string_view s) { out_ += s; }
  std::string take() { return std::move(out_); }
  const std::string& bytes() const { return out_; }

 private:
  std::string out_;
};

class Reader {
 public:
  explicit Reader(std::string_view bytes) : bytes_(bytes) {}
  uint64_t number() {
    const std::string_view raw = take(kNumber);
    uint64_t out = 0;
    for (std::size_t i = 0; i < kNumber; ++i) out |= uint64_t{static_cast<unsigned char>(raw[i])} << (8 * i);
    return out;
  }
  std::string_view text() { return take(number()); }
  // A count of things that take at least a number each.
  std::size_t count() {
    const uint64_t n = number();
    CRESSET_CHECK_VALUE(n <= bytes_.size() / kNumber, "engine file: a length goes beyond the end.");
    return n;
  }
  std::vector<std::string> names() {
    std::vector<std::string> out(count());
    for (std::string& one : out) one = text();
    return out;
  }
  std::vector<Tensor> tensors() {
    std::vector<Tensor> out;
    for (std::size_t left = count(); left-- > 0;) out.push_back(tensor());
    return out;
  }
  bool at_end() const { return bytes_.empty(); }

 private:
  std::string_view take(uint64_t n) {
    CRESSET_CHECK_VALUE(n <= bytes_.size(), "engine file: a length goes beyond the end.");
    const std::string_view out = bytes_.substr(0, n);
    bytes_.remove_prefix(n);
    return out;
  }
  Tensor tensor() {
    const std::string name(text());
    const auto dtype = dtype_from_name(name);
    CRESSET_CHECK_VALUE(dtype, "engine file: '", name, "' is no dtype.");
    DimVector sizes;
    for (std::size_t left = count(); left-- > 0;) {
      sizes.push_back(static_cast<int64_t>(number()));
      CRESSET_CHECK_VALUE(sizes.back() >= 0, "engine file: a size is negative.");
    }
    const std::string_view data = text();
    uint64_t bytes = element_size(*dtype);
    for (const int64_t n : sizes)
      CRESSET_CHECK_VALUE(!__builtin_mul_overflow(bytes, static_cast<uint64_t>(n), &bytes), "engine file: a size is too large.");
    CRESSET_CHECK_VALUE(bytes == data.size(), "engine file: a weight has ", data.size(), " bytes; its sizes say ", bytes, ".");
    Tensor out = cresset::empty(sizes, TensorOptions(*dtype));
    if (!data.empty()) std::memcpy(out.mutable_data_ptr(), data.data(), data.size());
    return out;
  }

  std::string_view bytes_;
};

template <class F>
std::string field(F&& write) {
  Writer w;
  write(w);
  return w.take();
}
template <class F>
auto parsed(std::string_view bytes, F&& read) {
  Reader r(bytes);
  auto out = read(r);
  CRESSET_CHECK_VALUE(r.at_end(), "engine file: a field is longer than what is in it.");
  return out;
}

}  // namespace

bool is_engine_file(std::string_view bytes) { return bytes.starts_with(kMagic); }

std::string engine_bytes(const Engine& engine) {
  const EngineSource& source = engine.source();
  const jit::Graph& graph = *source.graph;
  std::vector<std::string> inputs, outputs;
  for (std::size_t i = 0; i < engine.num_inputs(); ++i) inputs.push_back(graph.inputs()[i]->debugName());
  for (const jit::Value* v : graph.outputs()) outputs.push_back(v->debugName());
  Writer w;
  w.raw(kMagic);
  w.number(kFields);
  for (const std::string& text :
       {std::string(kEngineAbi), std::string(CRESSET_VERSION), engine.builder(), engine_builder(engine.builder()).target, engine.name()})
    w.text(text);
  w.text(field([&](Writer& f) { f.names(inputs); }));
  w.text(field([&](Writer& f) { f.names(outputs); }));
  w.text(source_text(source));
  w.text(field([&](Writer& f) { f.tensors(source.weights); }));
  w.number(checksum(w.bytes()));
  return w.take();
}

EngineFile read_engine_file(std::string_view bytes) {
  CRESSET_CHECK_VALUE(is_engine_file(bytes), "engine file: this is none: it does not begin with 'CRESSET ENGINE'.");
  CRESSET_CHECK_VALUE(bytes.size() >= kMagic.size() + 2 * kNumber, "engine file: it ends too early.");
  Reader r(bytes.substr(kMagic.size(), bytes.size() - kMagic.size() - kNumber));
  const uint64_t fields = r.number();
  EngineFile out;
  // The tag comes first in every format, and is read before anything is said of the rest.
  out.abi = r.text();
  CRESSET_CHECK_VALUE(out.abi == kEngineAbi, "engine file: ABI '", kEngineAbi, "' was required; this one is of '", out.abi,
                      "'. Compile the module again with this version.");
  CRESSET_CHECK_VALUE(fields == kFields, "engine file: ", kFields, " fields were required; this one has ", fields, ".");
  Reader end(bytes.substr(bytes.size() - kNumber));
  CRESSET_CHECK_VALUE(end.number() == checksum(bytes.substr(0, bytes.size() - kNumber)),
                      "engine file: the checksum does not fit: bytes of it were lost or changed.");
  for (std::string* text : {&out.version, &out.backend, &out.target, &out.name}) *text = r.text();
  out.inputs = parsed(r.text(), [](Reader& f) { return f.names(); });
  out.outputs = parsed(r.text(), [](Reader& f) { return f.names(); });
  out.graph = r.text();
  out.weights = parsed(r.text(), [](Reader& f) { return f.tensors(); });
  CRESSET_CHECK_VALUE(r.at_end(), "engine file: there is more behind the last field.");
  return out;
}

intrusive_ptr<Engine> engine_from_bytes(std::string_view bytes) {
  EngineFile file = read_engine_file(bytes);
  const std::string& target = engine_builder(file.backend).target;
  CRESSET_CHECK_VALUE(file.target == target, "engine file: engine '", file.name, "' is for the target '", file.target, "' of '",
                      file.backend, "'; here it is '", target, "'. Compile the module here.");
  return make_intrusive<Engine>(file.backend, source_of_text(file.name, file.graph, std::move(file.weights)));
}

}  // namespace cresset::engine
