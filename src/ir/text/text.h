// Pieces of the text form that the printer and the reader share.
#pragma once

#include <string>
#include <string_view>

#include <cresset/ir/ir.h>

namespace cresset::jit {

/// "3.", "-0.", "inf", "nan", otherwise 17 digits; always recognisable as a float. Unusual NaNs show their bits: nan(0x7ff8000000000001).
std::string float_text(double v);
/// "1.+2.j".
std::string complex_text(std::complex<double> v);
/// With double quotes and C escapes; bytes from 128 up stay as they are.
std::string in_quotes(std::string_view s);
std::string base64(const void* data, std::size_t size);
/// Nothing for text that is no base64.
std::optional<std::string> from_base64(std::string_view text);

/// The elements of a CPU tensor in row-major order.
std::string tensor_bytes(const Tensor& t);
/// A tensor of a complete type from its elements in row-major order; null when their number is wrong.
std::optional<Tensor> tensor_from_bytes(const TensorType& type, std::string_view bytes);
/// What `{text}` on an output of this type means: one element, of the type's dtype and shape as far as they are known.
std::optional<Tensor> tensor_from_display(std::string_view text, const Type& type);

/// What a node's line says between its results and its operands, e.g. `prim::Constant[value=1]`.
std::string kind_and_attributes(const Node& n);

/// May the name stand behind % without quotes?
bool is_plain_name(std::string_view name);

/// The kind of attributes that an empty list cannot show: "fs", "cs", "ss", "ts", "gs", "tys".
std::optional<AttributeKind> list_kind_of_word(std::string_view word);

}  // namespace cresset::jit
