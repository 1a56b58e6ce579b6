#include "ir/native/support.h"

#include <algorithm>
#include <cstring>

namespace cresset::jit::native {

bool step(Frame* f, const Instruction* i) noexcept {
  try {
    f->step(*i);
    return true;
  } catch (...) {
    f->error = std::current_exception();
    return false;
  }
}

bool grow(IValue* list, int64_t rounds) noexcept {
  try {
    auto& elements = list->toListImpl().elements;
    const std::size_t n = elements.size(), hoped = n + static_cast<std::size_t>(std::max<int64_t>(rounds, 0));
    elements.reserve(std::max(2 * n + 4, std::min(hoped, 8 * n + 64)));
    return true;
  } catch (...) {
    return false;
  }
}

Layout::Layout() {
  static_assert(sizeof(IValue) == kElement && sizeof(std::vector<IValue>) == 24);
  ivalue::ListImpl list;
  list.elements.reserve(3);
  list.elements.emplace_back(int64_t{0x0123456789abcdef});
  elements =
      static_cast<int32_t>(reinterpret_cast<char*>(&list.elements) - reinterpret_cast<char*>(static_cast<intrusive_ptr_target*>(&list)));
  const IValue* pointers[3];
  std::memcpy(pointers, static_cast<const void*>(&list.elements), sizeof pointers);
  const IValue* const first = list.elements.data();
  int64_t payload;
  uint32_t tag;
  std::memcpy(&payload, static_cast<const void*>(first), sizeof payload);
  std::memcpy(&tag, reinterpret_cast<const char*>(first) + kTag, sizeof tag);
  known = pointers[0] == first && pointers[1] == first + 1 && pointers[2] == first + list.elements.capacity() &&
          payload == first->toInt() && tag == static_cast<uint32_t>(IValue::Tag::Int);
}

const Layout& Layout::get() {
  static const Layout layout;
  return layout;
}

}  // namespace cresset::jit::native
