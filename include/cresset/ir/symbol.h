// Symbol: an interned qualified name, "aten::add", "prim::Constant", "attr::value". Compared as a number.
#pragma once

#include <cstdint>
#include <functional>
#include <iosfwd>
#include <string>
#include <string_view>

#include <cresset/base/macros.h>

namespace cresset::jit {

/// A symbol's whole text, also as C's.
struct SymbolText : std::string {
  using std::string::string;
  operator const char*() const { return c_str(); }
};
/// The part behind "::".
struct SymbolBase : std::string_view {
  using std::string_view::string_view;
  operator const char*() const { return data(); }  // the end of a whole text
  friend bool operator==(const SymbolBase& a, const SymbolBase& b) {
    return static_cast<const std::string_view&>(a) == static_cast<const std::string_view&>(b);
  }
  friend bool operator==(const SymbolBase& a, const char* b) { return static_cast<const std::string_view&>(a) == b; }
  friend std::string operator+(std::string text, const SymbolBase& name) { return std::move(text.append(name)); }
  friend std::string operator+(const SymbolBase& name, const std::string& text) { return std::string(name) + text; }
};

/// An interned name. Two symbols are equal exactly when their texts are. Those of symbols.h (prim::If, aten::add, attr::value) are
/// constants.
class CRESSET_API Symbol {
 public:
  constexpr Symbol() = default;
  explicit constexpr Symbol(uint32_t id) : id_(id) {}
  static Symbol fromQualString(std::string_view qualified);
  static Symbol fromDomainAndUnqualString(std::string_view domain, std::string_view name) {
    return fromQualString(std::string(domain.starts_with("namespaces::") ? domain.substr(12) : domain) + "::" + std::string(name));
  }
  static Symbol attr(std::string_view name) { return fromDomainAndUnqualString("attr", name); }
  static Symbol aten(std::string_view name) { return fromDomainAndUnqualString("aten", name); }
  static Symbol prim(std::string_view name) { return fromDomainAndUnqualString("prim", name); }
  static Symbol prims(std::string_view name) { return fromDomainAndUnqualString("prims", name); }
  static Symbol cuda(std::string_view name) { return fromDomainAndUnqualString("cuda", name); }
  static Symbol onnx(std::string_view name) { return fromDomainAndUnqualString("onnx", name); }
  static Symbol user(std::string_view name) { return fromDomainAndUnqualString("user", name); }
  static Symbol caffe2(std::string_view name) { return fromDomainAndUnqualString("caffe2", name); }
  static Symbol scope(std::string_view name) { return fromDomainAndUnqualString("scope", name); }
  static Symbol dimname(std::string_view name) { return fromDomainAndUnqualString("dimname", name); }
  /// "aten::add"; valid for ever.
  const SymbolText& toQualString() const;
  const SymbolText& toDisplayString() const { return toQualString(); }
  /// "add".
  SymbolBase toUnqualString() const;
  /// "aten".
  std::string_view ns() const;
  std::string domainString() const { return "namespaces::" + std::string(ns()); }
  bool is_attr() const { return ns() == "attr"; }
  bool is_aten() const { return ns() == "aten"; }
  bool is_prim() const { return ns() == "prim"; }
  bool is_prims() const { return ns() == "prims"; }
  bool is_cuda() const { return ns() == "cuda"; }
  bool is_onnx() const { return ns() == "onnx"; }
  bool is_user() const { return ns() == "user"; }
  bool is_caffe2() const { return ns() == "caffe2"; }
  bool is_dimname() const { return ns() == "dimname"; }
  constexpr uint32_t id() const { return id_; }
  constexpr operator uint32_t() const { return id_; }

 private:
  uint32_t id_ = 0;
};
inline std::string to_string(Symbol s) { return s.toQualString(); }
CRESSET_API std::ostream& operator<<(std::ostream& out, Symbol s);

}  // namespace cresset::jit

template <>
struct std::hash<cresset::jit::Symbol> {
  std::size_t operator()(cresset::jit::Symbol s) const noexcept { return s.id(); }
};
