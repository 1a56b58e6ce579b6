// Inputs as files, for readers that take a path.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace cresset::fuzz {

/// The path of a file in memory with these contents. There is one for the whole process, which is written over.
std::string file_of(const uint8_t* data, std::size_t size);

}  // namespace cresset::fuzz
