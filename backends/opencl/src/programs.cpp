#include "programs.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

namespace cresset_opencl {
namespace {

// FNV-1a. It only names files: what a file was made from is stored in it and compared.
uint64_t fnv1a(std::string_view text) {
  uint64_t h = 14695981039346656037u;
  for (const char c : text) h = (h ^ static_cast<unsigned char>(c)) * 1099511628211u;
  return h;
}

constexpr char kHead[] = "cresset-opencl 2\n";

std::string file_name(const std::string& identity) {
  std::ostringstream out;
  out << std::hex << fnv1a(identity) << ".clbin";
  return out.str();
}

// Nobody else can put files there: what lies in it runs on the device.
bool is_private(const std::string& path) {
  struct stat info = {};
  return stat(path.c_str(), &info) == 0 && (info.st_uid == geteuid() || info.st_uid == 0) &&
         (info.st_mode & (info.st_gid == getegid() ? S_IWOTH : S_IWOTH | S_IWGRP)) == 0;
}

std::string head_of(const std::string& identity, std::string_view binary) {
  return kHead + std::to_string(identity.size()) + "\n" + identity + std::to_string(fnv1a(binary)) + "\n";
}

std::string build_log(cl_program program, cl_device_id device) {
  std::size_t n = 0;
  clGetProgramBuildInfo(program, device, CL_PROGRAM_BUILD_LOG, 0, nullptr, &n);
  std::string log(n, '\0');
  clGetProgramBuildInfo(program, device, CL_PROGRAM_BUILD_LOG, n, log.data(), nullptr);
  return log.substr(0, 2000);
}

}  // namespace

std::string program_folder(const DeviceFacts& facts) {
  if (const char* own = std::getenv("CRESSET_OPENCL_CACHE")) return std::string_view(own) == "off" ? "" : own;
  if (facts.compiles_late) return "";
  if (const char* cache = std::getenv("XDG_CACHE_HOME"); cache && *cache) return std::string(cache) + "/cresset/opencl";
  const char* home = std::getenv("HOME");
  return home && *home ? std::string(home) + "/.cache/cresset/opencl" : "";
}

cl_kernel Programs::kernel(std::string_view key, const char* name, const std::function<ProgramText()>& text) {
  std::lock_guard lock(mutex_);
  std::string own = std::string(key) + ':' + name;
  if (const auto at = kernels_.find(own); at != kernels_.end()) return at->second;
  auto at = programs_.find(key);
  if (at == programs_.end()) at = programs_.emplace(std::string(key), build(text())).first;
  cl_int status = CL_SUCCESS;
  const cl_kernel kernel = clCreateKernel(at->second, name, &status);
  check(status, "clCreateKernel");
  kernels_.emplace(std::move(own), kernel);
  return kernel;
}

Programs::Counts Programs::counts() {
  std::lock_guard lock(mutex_);
  return counts_;
}

cl_program Programs::build(const ProgramText& text) {
  // Kernels find a NaN by comparing it with itself, of which compilers warn: -w.
  const std::string options = "-cl-std=CL1.2 -w " + std::string(device_.facts().has_fp64 ? "-DHAS_FP64 " : "") + text.definitions;
  const std::string identity = device_.facts().identity + "\n" + options + "\n" + text.source;
  const std::string folder = text.keep ? program_folder(device_.facts()) : "";
  const std::string file = folder.empty() ? "" : folder + "/" + file_name(identity);
  if (!file.empty())
    if (const cl_program program = load(file, identity, options)) {
      ++counts_.loaded;
      return program;
    }
  const char* source = text.source.c_str();
  cl_int status = CL_SUCCESS;
  const cl_program program = clCreateProgramWithSource(device_.context(), 1, &source, nullptr, &status);
  check(status, "clCreateProgramWithSource");
  const cl_device_id id = device_.id();
  status = clBuildProgram(program, 1, &id, options.c_str(), nullptr, nullptr);
  CRESSET_CHECK_AS(DeviceError, status == CL_SUCCESS, "opencl: a kernel does not compile on ", device_.facts().name, " (",
                   error_name(status), "), options ", options, ":\n", build_log(program, id));
  ++counts_.compiled;
  if (!file.empty()) store(program, file, identity);
  return program;
}

// A file that is damaged, of another user, of another driver or of another source is not used.
cl_program Programs::load(const std::string& file, const std::string& identity, const std::string& options) {
  if (!is_private(std::filesystem::path(file).parent_path()) || !is_private(file)) return nullptr;
  std::ifstream in(file, std::ios::binary);
  if (!in) return nullptr;
  std::string content((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
  const std::string head = kHead + std::to_string(identity.size()) + "\n" + identity;
  const std::size_t end = content.find('\n', head.size());
  if (!content.starts_with(head) || end == std::string::npos) return nullptr;
  const std::string_view binary = std::string_view(content).substr(end + 1);
  if (binary.empty() || !content.starts_with(head_of(identity, binary))) return nullptr;
  const std::size_t nbytes = binary.size();
  const auto* data = reinterpret_cast<const unsigned char*>(binary.data());
  const cl_device_id id = device_.id();
  cl_int status = CL_SUCCESS, loaded = CL_SUCCESS;
  const cl_program program = clCreateProgramWithBinary(device_.context(), 1, &id, &nbytes, &data, &loaded, &status);
  if (status != CL_SUCCESS || loaded != CL_SUCCESS) return nullptr;
  if (clBuildProgram(program, 1, &id, options.c_str(), nullptr, nullptr) == CL_SUCCESS) return program;
  clReleaseProgram(program);
  return nullptr;
}

// Written beside its place and moved there, so that other processes never see half a file. Failures only cost a compilation.
void Programs::store(cl_program program, const std::string& file, const std::string& identity) const {
  std::size_t nbytes = 0;
  if (clGetProgramInfo(program, CL_PROGRAM_BINARY_SIZES, sizeof nbytes, &nbytes, nullptr) != CL_SUCCESS || nbytes == 0) return;
  std::string binary(nbytes, '\0');
  unsigned char* data = reinterpret_cast<unsigned char*>(binary.data());
  if (clGetProgramInfo(program, CL_PROGRAM_BINARIES, sizeof data, &data, nullptr) != CL_SUCCESS) return;
  std::error_code error;
  const std::filesystem::path folder = std::filesystem::path(file).parent_path();
  std::filesystem::create_directories(folder.parent_path(), error);
  mkdir(folder.c_str(), 0700);
  if (!is_private(folder)) return;
  const std::string draft = file + "." + std::to_string(getpid());
  {
    std::ofstream out(draft, std::ios::binary);
    out << head_of(identity, binary) << binary;
    if (!out.good()) {
      out.close();
      std::filesystem::remove(draft, error);
      return;
    }
  }
  std::filesystem::rename(draft, file, error);
  if (error) std::filesystem::remove(draft, error);
}

}  // namespace cresset_opencl
