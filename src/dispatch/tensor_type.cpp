// TensorType: printing, comparison and merging of partial knowledge about tensors.
#include <cresset/dispatch/tensor_type.h>

namespace cresset {
namespace {

std::string dims_text(const TensorType::Dims& dims) {
  std::string out;
  for (std::size_t i = 0; i < dims.size(); ++i) out += (i ? ", " : "") + (dims[i] ? std::to_string(*dims[i]) : "*");
  return out;
}

std::optional<std::vector<int64_t>> concrete(const std::optional<TensorType::Dims>& dims) {
  if (!dims) return std::nullopt;
  std::vector<int64_t> out;
  for (const auto& d : *dims) {
    if (!d) return std::nullopt;
    out.push_back(*d);
  }
  return out;
}

// Does `narrow` know all that `wide` knows?
template <class T>
bool covers(const std::optional<T>& narrow, const std::optional<T>& wide) {
  return !wide || narrow == wide;
}
bool covers(const std::optional<TensorType::Dims>& narrow, const std::optional<TensorType::Dims>& wide) {
  if (!wide) return true;
  if (!narrow || narrow->size() != wide->size()) return false;
  for (std::size_t i = 0; i < wide->size(); ++i)
    if ((*wide)[i] && (*wide)[i] != (*narrow)[i]) return false;
  return true;
}

template <class T>
std::optional<T> common(const std::optional<T>& a, const std::optional<T>& b) {
  return a == b ? a : std::nullopt;
}
std::optional<TensorType::Dims> common(const std::optional<TensorType::Dims>& a, const std::optional<TensorType::Dims>& b) {
  if (!a || !b || a->size() != b->size()) return std::nullopt;
  TensorType::Dims out;
  for (std::size_t i = 0; i < a->size(); ++i) out.push_back((*a)[i] == (*b)[i] ? (*a)[i] : std::nullopt);
  return out;
}

}  // namespace

const char* dtype_word(ScalarType t) {
  const char* word = toString(t);
  CRESSET_CHECK(std::string_view(word) != toString(ScalarType::Undefined), "IR: a dtype with a word was required; number ",
                static_cast<int>(t), " was given.");
  return word;
}
std::optional<ScalarType> dtype_of_word(std::string_view word) {
  for (int i = 0; i < static_cast<int>(ScalarType::Undefined); ++i)
    if (word == toString(static_cast<ScalarType>(i)) && word != toString(ScalarType::Undefined)) return static_cast<ScalarType>(i);
  return std::nullopt;
}

std::shared_ptr<TensorType> TensorType::create(const Tensor& t) {
  auto r = std::make_shared<TensorType>();
  if (!t.defined()) return r;
  r->dtype = t.scalar_type();
  r->device = t.device();
  r->requires_grad = t.requires_grad();
  r->sizes = Dims(t.sizes().begin(), t.sizes().end());
  if (t.has_storage()) r->strides = Dims(t.strides().begin(), t.strides().end());
  return r;
}
std::shared_ptr<TensorType> TensorType::create(std::optional<ScalarType> dtype, std::optional<Dims> sizes, std::optional<Dims> strides,
                                               std::optional<bool> requires_grad, std::optional<cresset::Device> device) {
  auto r = std::make_shared<TensorType>();
  r->dtype = dtype;
  r->sizes = std::move(sizes);
  r->strides = r->sizes && r->sizes->empty() ? Dims() : std::move(strides);  // rank 0 has no other ones
  r->requires_grad = requires_grad;
  r->device = device;
  return r;
}
namespace {
TensorType::Dims contiguous_dims(IntArrayRef sizes) {
  const auto strides = contiguous_strides(sizes);
  return TensorType::Dims(strides.begin(), strides.end());
}
}  // namespace
TensorTypePtr TensorType::createContiguous(ScalarType dtype, cresset::Device device, IntArrayRef sizes) {
  return create(dtype, Dims(sizes.begin(), sizes.end()), contiguous_dims(sizes), std::nullopt, device);
}
TensorTypePtr TensorType::withScalarType(std::optional<ScalarType> t) const { return create(t, sizes, strides, requires_grad, device); }
TensorTypePtr TensorType::withDevice(std::optional<cresset::Device> d) const { return create(dtype, sizes, strides, requires_grad, d); }
TensorTypePtr TensorType::withRequiresGrad(std::optional<bool> r) const { return create(dtype, sizes, strides, r, device); }
TensorTypePtr TensorType::withDim(std::optional<std::size_t> n) const {
  return create(dtype, VaryingShape<int64_t>(n), std::nullopt, requires_grad, device);
}
TensorTypePtr TensorType::withSizesStrides(IntArrayRef s, IntArrayRef t) const {
  return create(dtype, Dims(s.begin(), s.end()), Dims(t.begin(), t.end()), requires_grad, device);
}
TensorTypePtr TensorType::withSizes(IntArrayRef s) const {
  return create(dtype, Dims(s.begin(), s.end()), contiguous_dims(s), requires_grad, device);
}
TensorTypePtr TensorType::contiguous() const {
  const auto known = concrete_sizes();
  CRESSET_CHECK(known, "TensorType.contiguous: a type with known sizes was required; '", str(), "' was given.");
  return withSizes(*known);
}
std::shared_ptr<TensorType> TensorType::copy() const { return create(dtype, sizes, strides, requires_grad, device); }

std::optional<std::vector<int64_t>> TensorType::concrete_sizes() const { return concrete(sizes); }
std::optional<std::vector<int64_t>> TensorType::concrete_strides() const { return concrete(strides); }
std::optional<int64_t> TensorType::numel() const {
  const auto known = concrete_sizes();
  if (!known) return std::nullopt;
  int64_t n = 1;
  for (int64_t s : *known) n *= s;
  return n;
}

std::shared_ptr<TensorType> TensorType::merge(const TensorType& o) const {
  auto both = create(common(dtype, o.dtype), common(sizes, o.sizes), common(strides, o.strides), common(requires_grad, o.requires_grad),
                     common(device, o.device));
  both->hint = hint || o.hint;
  return both;
}

// Rank 0 with nothing else known is "Float()"; an unknown rank is "Float(...)" where other things follow or not.
std::string TensorType::own_str() const {
  std::string out = dtype ? dtype_word(*dtype) : "Tensor";
  if (!is_refined()) return out;
  std::string inside = sizes ? dims_text(*sizes) : "...";
  const auto add = [&](const std::string& text) { inside += (inside.empty() ? "" : ", ") + text; };
  if (strides && !(sizes && sizes->empty())) add("strides=[" + dims_text(*strides) + "]");
  if (requires_grad) add(std::string("requires_grad=") + (*requires_grad ? "1" : "0"));
  if (device) add("device=" + device->str());
  return out + "(" + inside + ")";
}

bool TensorType::same_details(const Type& other) const {
  const auto& o = static_cast<const TensorType&>(other);
  return dtype == o.dtype && sizes == o.sizes && strides == o.strides && requires_grad == o.requires_grad && device == o.device;
}
bool TensorType::details_below(const Type& other, std::string*) const {
  const auto& o = static_cast<const TensorType&>(other);
  return covers(dtype, o.dtype) && covers(sizes, o.sizes) && covers(strides, o.strides) && covers(requires_grad, o.requires_grad) &&
         covers(device, o.device);
}

}  // namespace cresset
