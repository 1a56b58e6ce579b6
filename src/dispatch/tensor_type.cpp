// TensorType: printing, comparison and merging of partial knowledge about tensors.
#include <cresset/dispatch/tensor_type.h>

#include <algorithm>

#include <cresset/core/grad_mode.h>

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
  // Names are given once, so that whoever asks twice finds the same ones.
  if (r->sizes && !r->concrete_sizes()) r->size_symbols = *SymbolicShape(*r->sizes).sizes();
  return r;
}
namespace {
void check_defined(std::optional<bool> undefined) {
  CRESSET_CHECK(!undefined.value_or(false), "TensorType.create: types say nothing of undefined tensors; undefined=true was given.");
}
}  // namespace
TensorTypePtr TensorType::create(std::optional<ScalarType> dtype, std::optional<cresset::Device> device, const VaryingShape<int64_t>& sizes,
                                 const VaryingShape<int64_t>& strides, std::optional<bool> requires_grad, std::optional<bool> undefined,
                                 bool /*tensor_contiguity*/) {
  check_defined(undefined);
  CRESSET_CHECK(!strides.isComplete() || (sizes.isComplete() && sizes.size() == strides.size()),
                "TensorType.create: ", strides.size().value_or(0), " strides need as many known sizes.");
  return create(dtype, sizes.sizes(), strides.sizes(), requires_grad, device);
}
TensorTypePtr TensorType::create(std::optional<ScalarType> dtype, std::optional<cresset::Device> device, const SymbolicShape& sizes,
                                 const VaryingShape<Stride>& strides, std::optional<bool> requires_grad, std::optional<bool> undefined) {
  check_defined(undefined);
  return create(dtype, std::nullopt, std::nullopt, requires_grad, device)->withSymbolicShapes(sizes)->withStrides(strides);
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
TensorTypePtr TensorType::withScalarType(std::optional<ScalarType> t) const {
  auto r = copy();
  r->dtype = t;
  return r;
}
TensorTypePtr TensorType::withDevice(std::optional<cresset::Device> d) const {
  auto r = copy();
  r->device = d;
  return r;
}
TensorTypePtr TensorType::withRequiresGrad(std::optional<bool> known) const {
  auto r = copy();
  r->requires_grad = known;
  return r;
}
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
std::shared_ptr<TensorType> TensorType::copy() const {
  auto r = create(dtype, std::nullopt, strides, requires_grad, device);
  r->sizes = sizes;
  if (sizes && sizes->empty()) r->strides = Dims();
  r->size_symbols = size_symbols;
  return r;
}

SymbolicShape TensorType::symbolic_sizes() const {
  if (!sizes) return {};
  if (size_symbols.size() != sizes->size()) return SymbolicShape(*sizes);
  std::vector<ShapeSymbol> out = size_symbols;
  for (std::size_t i = 0; i < out.size(); ++i)
    if ((*sizes)[i]) out[i] = ShapeSymbol::fromStaticSize(*(*sizes)[i]);
  return SymbolicShape(std::move(out));
}
TensorTypePtr TensorType::withSymbolicShapes(const SymbolicShape& shape) const {
  auto r = copy();
  r->sizes = std::nullopt;
  r->size_symbols.clear();
  if (!shape.rank()) return r;
  Dims dims;
  for (const ShapeSymbol s : *shape.sizes()) dims.push_back(s.is_static() ? std::optional(s.static_size()) : std::nullopt);
  if (dims.empty()) r->strides = Dims();
  r->sizes = std::move(dims);
  if (!shape.isComplete()) r->size_symbols = *shape.sizes();
  return r;
}

VaryingShape<Stride> TensorType::stride_properties() const {
  if (!strides || std::ranges::none_of(*strides, [](const auto& s) { return s.has_value(); }))
    return strides ? VaryingShape<Stride>(strides->size()) : VaryingShape<Stride>();
  std::vector<std::size_t> known, unknown;
  for (std::size_t i = 0; i < strides->size(); ++i) ((*strides)[i] ? known : unknown).push_back(i);
  // Of equal strides the dimension behind is the inner one, of size 1 or not.
  const auto outer = [&](std::size_t a, std::size_t b) {
    return *(*strides)[a] != *(*strides)[b] ? *(*strides)[a] < *(*strides)[b] : a > b;
  };
  std::ranges::sort(known, outer);
  VaryingShape<Stride>::Entries out;
  std::optional<int64_t> follows = 1;  // the stride that leaves no gap, where it is known
  for (const std::size_t i : known) {
    const int64_t stride = *(*strides)[i];
    out.push_back(Stride(i, follows ? std::optional(stride == *follows) : std::nullopt, static_cast<std::size_t>(stride)));
    const bool sized = sizes && i < sizes->size() && (*sizes)[i];
    follows = sized ? std::optional(stride_before(stride, *(*sizes)[i])) : std::nullopt;
  }
  // Which of several dimensions comes first is not known of those without strides.
  for (const std::size_t i : unknown)
    out.push_back(unknown.size() == 1 ? std::optional(Stride(i, std::nullopt, std::nullopt)) : std::optional<Stride>());
  return VaryingShape<Stride>(std::optional(std::move(out)));
}
TensorTypePtr TensorType::withStrides(const VaryingShape<Stride>& properties) const {
  auto r = copy();
  r->strides = std::nullopt;
  if (!properties.size()) return r;
  Dims dims(*properties.size());
  for (const auto& p : *properties.sizes()) {
    if (!p || !p->stride_index_ || !p->stride_) continue;
    CRESSET_CHECK(*p->stride_index_ < dims.size(), "TensorType.withStrides: dimension ", *p->stride_index_, " is out of range for ",
                  dims.size(), " dimensions.");
    dims[*p->stride_index_] = static_cast<int64_t>(*p->stride_);
  }
  if (dims.empty() || std::ranges::any_of(dims, [](const auto& d) { return d.has_value(); })) r->strides = std::move(dims);
  return r;
}

bool TensorType::matchTensor(const Tensor& t) const {
  if (!t.defined()) return !is_refined();
  // A type asks for a gradient where one is recorded.
  const bool grad = t.requires_grad() && GradMode::is_enabled();
  const auto fits = [](const std::optional<Dims>& wanted, IntArrayRef given) {
    if (!wanted) return true;
    if (wanted->size() != given.size()) return false;
    for (std::size_t i = 0; i < given.size(); ++i)
      if ((*wanted)[i] && *(*wanted)[i] != given[i]) return false;
    return true;
  };
  return (!dtype || *dtype == t.scalar_type()) && (!device || *device == t.device()) &&
         (!static_cast<const std::optional<bool>&>(requires_grad) || *requires_grad == grad) && fits(sizes, t.sizes()) &&
         (!strides || (t.has_storage() && fits(strides, t.strides())));
}
std::vector<int64_t> TensorType::contiguousStridesOf(IntArrayRef sizes, MemoryFormat format) {
  const DimVector strides = strides_for(sizes, format);
  return {strides.begin(), strides.end()};
}

std::optional<std::vector<int64_t>> TensorType::concrete_sizes() const { return concrete(sizes); }
std::optional<std::vector<int64_t>> TensorType::concrete_strides() const { return concrete(strides); }
std::optional<int64_t> TensorType::numel() const {
  const auto known = concrete_sizes();
  if (!known) return std::nullopt;
  int64_t n = 1;
  for (int64_t s : *known) n *= s;
  return n;
}

std::shared_ptr<TensorType> TensorType::merge(const TensorType& o, bool merge_sizes) const {
  const std::optional<Dims>& own = strides;
  auto both = create(common(dtype, o.dtype), std::nullopt, merge_sizes ? common(own, o.strides) : own,
                     common(requires_grad, o.requires_grad), common(device, o.device));
  both->hint = hint || o.hint;
  return both->withSymbolicShapes(merge_sizes ? symbolic_sizes().merge(o.symbolic_sizes()) : symbolic_sizes());
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
