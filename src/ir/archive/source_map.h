// Where the code of an archive comes from: the files `….py.debug_pkl` beside it.
//
// A pickle of ("FORMAT_WITH_STRING_TABLE", texts, places). A place is (offset in the code, (source, start, end), tag) and holds up to the
// offset of the next one; a source is (numbers of its lines among the texts, number of the file's name, first line); equal places have
// equal tags.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <cresset/ir/source_range.h>

namespace cresset::jit {

/// Offsets in a text in ascending order, and what the text from there comes from (unknown for what was not written by anyone).
using CodeRanges = std::vector<std::pair<std::size_t, SourceRange>>;

std::string pickle_source_map(const CodeRanges& ranges);
/// Raises for bytes that are no such pickle; `name` is the file's.
CodeRanges unpickle_source_map(std::string_view bytes, const std::string& name);
/// The place of an offset; unknown when there is none.
SourceRange place_of(const CodeRanges& ranges, std::size_t offset);

}  // namespace cresset::jit
