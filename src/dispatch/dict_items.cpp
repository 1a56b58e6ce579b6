// The entries of dicts: a vector in order of insertion with an open-addressed table of positions beside it (as CPython's since 3.6).
#include <bit>
#include <functional>

#include <cresset/dispatch/script_values.h>

namespace cresset::ivalue {
namespace {

constexpr std::size_t kFew = 8;  // so many entries are compared one by one

/// Equal keys have equal hashes, never all ones (an erased entry's). Multiplying spreads what std::hash leaves as it is (integers) over
/// the high bits, the ones that choose a slot.
std::size_t hash_of(const IValue& key) {
  const auto spread = [](std::size_t h) { return ((h ^ (h >> 32)) * 0x9e3779b97f4a7c15u) & ~std::size_t{1}; };
  switch (key.tag()) {
    case IValue::Tag::Int: return spread(static_cast<std::size_t>(key.toInt()));
    case IValue::Tag::Bool: return spread(key.toBool());
    case IValue::Tag::Double: return spread(std::hash<double>()(key.toDouble()));
    case IValue::Tag::Complex: {
      const auto c = key.toComplexDouble();
      return spread(std::hash<double>()(c.real()) ^ spread(std::hash<double>()(c.imag())));
    }
    case IValue::Tag::String: return spread(std::hash<std::string_view>()(key.toStringRef()));
    case IValue::Tag::Tensor: return spread(reinterpret_cast<std::size_t>(key.toTensor().unsafeGetTensorImpl()));
    case IValue::Tag::Enum: return spread(std::hash<std::string_view>()(key.toEnumHolder()->name));
    default: return spread(static_cast<std::size_t>(key.tag()));
  }
}

}  // namespace

std::size_t DictItems::position(const IValue& key) const { return empty() ? entries_.size() : position(key, hash_of(key)); }

std::size_t DictItems::position(const IValue& key, std::size_t hash) const {
  const auto is_it = [&](const Entry& e) { return e.hash == hash && e.item.first == key; };
  if (slots_.empty()) {
    for (std::size_t i = 0; i < entries_.size(); ++i)
      if (is_it(entries_[i])) return i;
    return entries_.size();
  }
  const std::size_t mask = slots_.size() - 1;
  for (std::size_t at = hash >> std::countl_zero(mask);; at = (at + 1) & mask) {
    const std::size_t i = slots_[at];
    if (i == 0) return entries_.size();
    if (i <= entries_.size() && is_it(entries_[i - 1])) return i - 1;  // slots of entries that pop_back took may remain
  }
}

void DictItems::add_to_index(std::size_t position) {
  const std::size_t mask = slots_.size() - 1;
  std::size_t at = entries_[position].hash >> std::countl_zero(mask);
  while (slots_[at] != 0) at = (at + 1) & mask;
  slots_[at] = static_cast<std::uint32_t>(position + 1);
  ++used_slots_;
}

void DictItems::reindex() {
  for (Entry& e : entries_)
    if (e.hash != kErased) e.hash = hash_of(e.item.first);
  rebuild();
}

void DictItems::rebuild() {
  std::erase_if(entries_, [](const Entry& e) { return e.hash == kErased; });
  slots_.clear();
  used_slots_ = 0;
  if (size_ <= kFew) return;
  slots_.resize(std::bit_ceil(size_ * 4));
  for (std::size_t i = 0; i < entries_.size(); ++i) add_to_index(i);
}

std::pair<DictItems::iterator, bool> DictItems::try_emplace(IValue key, IValue value) {
  const std::size_t hash = hash_of(key);
  if (const std::size_t at = position(key, hash); at != entries_.size())
    return {iterator(entries_.data() + at, entries_.data() + entries_.size()), false};
  CRESSET_CHECK_AS(NotImplementedError, entries_.size() < 0xffffffffu, "a dict cannot hold more than 4294967294 entries");
  entries_.push_back({{std::move(key), std::move(value)}, hash});
  ++size_;
  if (slots_.empty() ? entries_.size() > kFew : used_slots_ * 2 >= slots_.size())
    rebuild();
  else if (!slots_.empty())
    add_to_index(entries_.size() - 1);
  return {iterator(&entries_.back(), entries_.data() + entries_.size()), true};
}

void DictItems::insert_or_assign(IValue key, IValue value) {
  const auto at = find(key);
  if (at == end())
    try_emplace(std::move(key), std::move(value));
  else
    at->second = std::move(value);
}

void DictItems::erase(iterator at) {
  *at.at_ = {{}, kErased};
  --size_;
  while (!entries_.empty() && entries_.back().hash == kErased) entries_.pop_back();
}

DictItems::value_type DictItems::pop_back() {
  value_type last = std::move(entries_.back().item);
  entries_.back().hash = kErased;
  --size_;
  while (!entries_.empty() && entries_.back().hash == kErased) entries_.pop_back();
  return last;
}

}  // namespace cresset::ivalue
