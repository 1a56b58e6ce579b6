// Archives for fuzz targets. The checksums of a zip file keep changed entries from ever being read, so an input is either a zip file or a
// bundle: entries under lines `=== name`, of which a sound archive is made.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace cresset::fuzz {

std::string archive_of(const uint8_t* data, std::size_t size);

}  // namespace cresset::fuzz
