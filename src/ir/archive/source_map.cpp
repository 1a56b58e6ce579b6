#include "ir/archive/source_map.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <unordered_map>

#include <cresset/base/error.h>

#include "ir/archive/pickler.h"
#include "ir/archive/unpickler.h"
#include "ir/archive/zip_archive.h"

namespace cresset::jit {
namespace {

constexpr const char* kFormat = "FORMAT_WITH_STRING_TABLE";

IValue tuple(std::vector<IValue> parts) { return IValue(make_intrusive<ivalue::TupleImpl>(std::move(parts))); }

class Writer {
 public:
  std::string run(const CodeRanges& ranges) {
    std::vector<IValue> places;
    for (const auto& [offset, range] : ranges) {
      const auto [tag, added] = tags_.try_emplace({range.source().get(), range.start(), range.end()}, static_cast<int64_t>(tags_.size()));
      places.push_back(tuple({static_cast<int64_t>(offset), place(range), tag->second}));
    }
    return pickle(tuple({std::string(kFormat), tuple(std::move(texts_)), tuple(std::move(places))}), {});
  }

 private:
  int64_t text(const std::string& s) {
    const auto [found, added] = indices_.try_emplace(s, static_cast<int64_t>(texts_.size()));
    if (added) texts_.emplace_back(s);
    return found->second;
  }
  // A range of a source without text has nothing but its line, which becomes the source's first one.
  IValue place(const SourceRange& range) {
    if (!range.known() || range.source()->text().empty()) return tuple({source(range), int64_t{0}, int64_t{0}});
    return tuple({source(range), static_cast<int64_t>(range.start()), static_cast<int64_t>(range.end())});
  }
  IValue source(const SourceRange& range) {
    const Source* known = range.known() ? range.source().get() : nullptr;
    const bool has_text = known && !known->text().empty();
    const auto line = static_cast<int64_t>(has_text ? known->first_line() : range.line());
    IValue& made = sources_[{known, line}];
    if (!made.isNone()) return made;
    auto lines = make_intrusive<ivalue::ListImpl>(std::vector<IValue>(), basic_type(TypeKind::Int));
    const std::string all = has_text ? known->text() : "";
    for (std::size_t from = 0; has_text && from <= all.size();) {
      const std::size_t end = std::min(all.find('\n', from), all.size());
      lines->elements.emplace_back(text(all.substr(from, end + 1 - from)));
      from = end + 1;
    }
    return made = tuple({IValue(std::move(lines)), text(known ? known->filename() : ""), line});
  }

  std::vector<IValue> texts_;
  std::unordered_map<std::string, int64_t> indices_;
  std::map<std::pair<const Source*, int64_t>, IValue> sources_;
  std::map<std::tuple<const Source*, std::size_t, std::size_t>, int64_t> tags_;
};

class SourceMapReader {
 public:
  SourceMapReader(std::string_view bytes, const std::string& name) : bytes_(bytes.size()), name_(name) {
    UnpicklerHooks hooks;
    hooks.type = [](const std::string&) { return TypePtr(); };
    hooks.object = [this](const TypePtr&, IValue) -> IValue { fail("an object"); };
    hooks.storage = [this](const std::string&, ScalarType, const std::string&, int64_t) -> Tensor { fail("a tensor"); };
    all_ = unpickle(bytes, name, hooks);
  }
  CodeRanges run() {
    const auto& parts = tuple(all_);
    // Releases before the table of texts wrote the records alone, with whole texts in them.
    const bool has_table = parts.size() == 3 && parts[0].isString();
    if (has_table && parts[0].toStringRef() != kFormat) fail("another format");
    if (has_table) texts_ = &tuple(parts[1]);
    CodeRanges out;
    for (const IValue& record : has_table ? tuple(parts[2]) : parts) {
      const auto& fields = tuple(record);
      if (fields.size() < 2 || (has_table && fields.size() != 3)) fail("something else where a place was required");
      const std::size_t offset = number(fields[0]);
      if (!out.empty() && offset < out.back().first) fail("places that are not in order");
      out.emplace_back(offset, place(fields[1]));
    }
    return out;
  }

 private:
  [[noreturn]] void fail(const std::string& what) const {
    CRESSET_THROW(Error, "archive: '", name_, "' is no map of source lines: it has ", what, ".");
  }
  const std::vector<IValue>& tuple(const IValue& v, std::optional<std::size_t> size = std::nullopt) const {
    if (!v.isTuple() || (size && v.toTupleElements().size() != *size)) fail("something else where a tuple was required");
    return v.toTupleElements();
  }
  std::size_t number(const IValue& v) const {
    if (!v.isInt() || v.toInt() < 0) fail("something else where a number was required");
    return static_cast<std::size_t>(v.toInt());
  }
  std::string text(const IValue& v) const {
    if (!texts_) {
      if (!v.isString() && !v.isNone()) fail("something else where a text was required");
      return v.isNone() ? "" : v.toStringRef();
    }
    const std::size_t i = number(v);
    if (i >= texts_->size() || !(*texts_)[i].isString()) fail("a text that is not in its table");
    return (*texts_)[i].toStringRef();
  }
  SourceRange place(const IValue& v) {
    const auto& parts = tuple(v, 3);
    const auto& described = tuple(parts[0], 3);
    std::shared_ptr<const Source>& source = sources_[&described];
    if (!source) {
      std::string all;
      const auto add = [&](const IValue& given) {
        const std::string added = text(given);
        made_ += added.size();
        if (made_ > budget_) fail("more text than its " + std::to_string(bytes_) + " bytes can stand for");
        all += added;
      };
      if (texts_ && !described[0].isList()) fail("something else where a list was required");
      if (texts_)
        for (const IValue& line : described[0].toListRef()) add(line);
      else
        add(described[0]);
      source = std::make_shared<const Source>(std::move(all), text(described[1]), number(described[2]));
    }
    if (source->text().empty() && source->filename().empty()) return {};
    const std::size_t start = number(parts[1]), end = number(parts[2]);
    if (start > end || end > source->text().size()) fail("a place outside of its source");
    return SourceRange(source, start, end);
  }

  const std::size_t bytes_, budget_ = load_budget(bytes_);
  std::size_t made_ = 0;
  const std::string& name_;
  IValue all_;
  const std::vector<IValue>* texts_ = nullptr;                              // the table, if there is one
  std::unordered_map<const void*, std::shared_ptr<const Source>> sources_;  // shared tuples are one source
};

}  // namespace

std::string pickle_source_map(const CodeRanges& ranges) { return Writer().run(ranges); }

CodeRanges unpickle_source_map(std::string_view bytes, const std::string& name) { return SourceMapReader(bytes, name).run(); }

SourceRange place_of(const CodeRanges& ranges, std::size_t offset) {
  const auto behind =
      std::upper_bound(ranges.begin(), ranges.end(), offset, [](std::size_t at, const auto& range) { return at < range.first; });
  return behind == ranges.begin() ? SourceRange() : std::prev(behind)->second;
}

}  // namespace cresset::jit
