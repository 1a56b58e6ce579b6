// What users ask of caching allocators, in PYTORCH_ALLOC_CONF (older: PYTORCH_CUDA_ALLOC_CONF), for allocators of devices to follow:
// "max_split_size_mb:64,garbage_collection_threshold:0.8,expandable_segments:True". Keys that are not known here are a device's own.
// https://docs.pytorch.org/docs/stable/notes/cuda.html#optimizing-memory-usage-with-pytorch-alloc-conf
#pragma once

#include <cresset_compat/device_allocator.h>

#include <cresset/base/error.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <map>
#include <string>
#include <utility>

namespace cresset::device_stats {

// Sizes, in bytes, by which PyTorch's caching allocators cut and ask for memory.
inline constexpr std::size_t kMinBlockSize = 512;                // all sizes are multiples of it
inline constexpr std::size_t kSmallSize = std::size_t{1} << 20;  // until here, blocks are parts of small buffers
inline constexpr std::size_t kSmallBuffer = std::size_t{2} << 20;
inline constexpr std::size_t kLargeBuffer = std::size_t{20} << 20;
inline constexpr std::size_t kMinLargeAlloc = std::size_t{10} << 20;  // from here on, a block is a buffer of its own
inline constexpr std::size_t kRoundLarge = std::size_t{2} << 20;

/// A number of bytes as errors write it: "512 bytes", "1.50 MiB".
inline std::string format_size(uint64_t bytes) {
  if (bytes <= 1024) return std::to_string(bytes) + " bytes";
  const int step = bytes <= (uint64_t{1} << 20) ? 1 : bytes <= (uint64_t{1} << 30) ? 2 : 3;
  constexpr std::array<const char*, 4> kUnits{"bytes", "KiB", "MiB", "GiB"};
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.2f %s", static_cast<double>(bytes) / static_cast<double>(uint64_t{1} << (10 * step)),
                kUnits[step]);
  return text.data();
}

class AcceleratorAllocatorConfig {
 public:
  /// Larger blocks, in bytes, are not split.
  static std::size_t max_split_size() {
    const std::string& mb = value("max_split_size_mb");
    return mb.empty() ? std::numeric_limits<std::size_t>::max() : static_cast<std::size_t>(number(mb)) << 20;
  }
  /// The fraction of the device's memory from which on freed blocks are given back; 0 for never.
  static double garbage_collection_threshold() {
    const std::string& fraction = value("garbage_collection_threshold");
    const double threshold = fraction.empty() ? 0 : number(fraction);
    CRESSET_CHECK(threshold >= 0 && threshold < 1, "garbage_collection_threshold too big, set it 0.0~1.0; ", fraction, " was given.");
    return threshold;
  }
  static bool use_expandable_segments() { return flag("expandable_segments"); }
  static bool pinned_use_background_threads() { return flag("pinned_use_background_threads"); }
  /// In bytes: what is asked of the device at once for blocks of medium size.
  static std::size_t large_segment_size() {
    const std::string& mb = value("large_segment_size_mb");
    return mb.empty() ? std::size_t{20} << 20 : static_cast<std::size_t>(number(mb)) << 20;
  }
  /// Sizes are rounded up to one of so many steps between powers of two; 0: they are not.
  static std::size_t roundup_power2_divisions(std::size_t /*nbytes*/) {
    const std::string& steps = value("roundup_power2_divisions");
    CRESSET_CHECK(!steps.starts_with('['),
                  "roundup_power2_divisions: one number for all sizes was required; lists by size are not known here: ", steps);
    return steps.empty() ? 0 : static_cast<std::size_t>(number(steps));
  }
  /// The settings as they were given.
  static const std::string& last_allocator_settings() {
    static const std::string text = [] {
      for (const char* name : {"PYTORCH_ALLOC_CONF", "PYTORCH_CUDA_ALLOC_CONF"})
        if (const char* set = std::getenv(name)) return std::string(set);
      return std::string();
    }();
    return text;
  }

 private:
  // The value of a key, or nothing.
  static const std::string& value(const std::string& key) {
    static const std::map<std::string, std::string> all = parsed(last_allocator_settings());
    static const std::string none;
    const auto it = all.find(key);
    return it == all.end() ? none : it->second;
  }
  static std::map<std::string, std::string> parsed(const std::string& text) {
    std::map<std::string, std::string> all;
    std::string key, part;
    int depth = 0;  // of lists in brackets, whose commas separate nothing
    for (const char c : text + ",") {
      depth += (c == '[') - (c == ']');
      if (c == ' ' || (c == ',' && depth == 0 && key.empty() && part.empty())) continue;
      if (c == ':' && key.empty()) {
        key = std::exchange(part, {});
      } else if (c == ',' && depth == 0) {
        CRESSET_CHECK(!key.empty(), "PYTORCH_ALLOC_CONF: key:value was required; '", part, "' was given.");
        all[std::exchange(key, {})] = std::exchange(part, {});
      } else {
        part += c;
      }
    }
    return all;
  }
  static double number(const std::string& text) {
    char* end = nullptr;
    const double n = std::strtod(text.c_str(), &end);
    CRESSET_CHECK(end != text.c_str() && *end == 0, "PYTORCH_ALLOC_CONF: a number was required; '", text, "' was given.");
    return n;
  }
  static bool flag(const std::string& key) {
    const std::string& text = value(key);
    CRESSET_CHECK(text.empty() || text == "True" || text == "False", "Expected a single True/False argument for ", key, "; '", text,
                  "' was given.");
    return text == "True";
  }
};

}  // namespace cresset::device_stats
