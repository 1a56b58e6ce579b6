// fmap, filter, fold: functions over sequences, as in c10.
#pragma once

#include <type_traits>
#include <utility>
#include <vector>

namespace cresset {

/// f of each element.
template <class F, class Container>
auto fmap(Container&& inputs, const F& f) -> std::vector<std::decay_t<decltype(f(*inputs.begin()))>> {
  std::vector<std::decay_t<decltype(f(*inputs.begin()))>> out;
  out.reserve(inputs.size());
  for (auto&& input : inputs) out.push_back(f(input));
  return out;
}
/// Each element as an R.
template <class R, class Container>
std::vector<R> fmap(const Container& inputs) {
  std::vector<R> out;
  out.reserve(inputs.size());
  for (const auto& input : inputs) out.push_back(R(input));
  return out;
}
/// The elements for which f says yes.
template <class F, class Container>
auto filter(const Container& inputs, const F& f) {
  std::vector<std::decay_t<decltype(*inputs.begin())>> out;
  for (const auto& input : inputs)
    if (f(input)) out.push_back(input);
  return out;
}
}  // namespace cresset
