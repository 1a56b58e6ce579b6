// Profiles as files.
#include <cresset/autograd/profiler.h>

#include <cstdio>
#include <fstream>

#include <cresset/base/error.h>

namespace cresset::autograd::profiler {
namespace {

std::string json_text(const std::string& text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    if (static_cast<unsigned char>(c) < 0x20) {
      char escaped[8];
      std::snprintf(escaped, sizeof escaped, "\\u%04x", static_cast<unsigned>(c));
      out += escaped;
    } else {
      out += c;
    }
  }
  return out + '"';
}

std::unique_ptr<std::ostream> open(const std::string& path) {
  auto file = std::make_unique<std::ofstream>(path);
  CRESSET_CHECK(*file, "RecordProfile: '", path, "' cannot be written.");
  return file;
}

}  // namespace

void write_chrome_trace(std::ostream& out, const cresset::profiler::Profile& profile) {
  out << "[";
  const char* separator = "\n";
  for (const auto& thread : profile.threads) {
    for (const auto& record : thread.records) {
      char times[96];
      std::snprintf(times, sizeof times, "\"ts\": %.3f, \"dur\": %.3f", static_cast<double>(record.begin) / 1e3,
                    static_cast<double>(record.end - record.begin) / 1e3);
      out << separator << "{\"name\": " << json_text(*record.name) << ", \"ph\": \"X\", " << times << ", \"tid\": " << thread.number
          << ", \"pid\": \"CPU functions\", \"args\": {}}";
      separator = ",\n";
    }
  }
  out << "\n]\n";
}

RecordProfile::RecordProfile(std::ostream& out) : out_(out) { cresset::profiler::start({}); }
RecordProfile::RecordProfile(const std::string& path) : file_(open(path)), out_(*file_) { cresset::profiler::start({}); }
RecordProfile::~RecordProfile() {
  try {
    write_chrome_trace(out_, cresset::profiler::stop());
    out_.flush();
    if (!out_) warn("RecordProfile: the profile could not be written.");
  } catch (const std::exception& e) {
    warn(std::string("RecordProfile: ") + e.what());
  }
}

}  // namespace cresset::autograd::profiler
