// Tokens of a script: Python's, with INDENT and DEDENT.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <cresset/ir/source_range.h>

namespace cresset::jit {

struct Token {
  enum Kind : uint8_t { Name, Number, String, Operator, Newline, Indent, Dedent, End, Error };
  Kind kind;
  uint8_t prefix = 0;  // of a String: characters in front of the quotes
  std::size_t begin, end;
};

/// All tokens of text[begin, end). What is wrong becomes an Error token, so that it is raised where the parser arrives at it.
struct TokenList {
  std::vector<Token> tokens;         // ends with End or Error
  std::string error;                 // what the Error token says
  std::vector<Token> type_comments;  // begin and end of the text behind "# type:", in order
};

/// Brackets and blocks may nest this deep.
inline constexpr std::size_t kMaxNesting = 256;

/// `one_line`: newlines are blanks, as inside brackets (expressions in annotations and format strings).
TokenList tokens_of(std::string_view text, std::size_t begin, std::size_t end, bool one_line);

/// The {field} of a format string that starts at `at`, in a text whose tokens were read: where its expression ends (at "!", ":" or "}") and
/// the place behind it.
struct FormatField {
  std::size_t expression_end, end;
};
FormatField format_field(std::string_view text, std::size_t at);

/// Is this word reserved in Python?
bool is_keyword(std::string_view word);

}  // namespace cresset::jit
