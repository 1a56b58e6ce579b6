#include "shared_mark.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <stdexcept>
#include <thread>

namespace simulated {

namespace {
std::string fresh_name() {
  static std::atomic<uint64_t> made{0};
  return "/cresset-simulated-" + std::to_string(getpid()) + "-" + std::to_string(++made);
}
}  // namespace

SharedMark::SharedMark() : name_(fresh_name()), is_maker_(true) {
  const int file = shm_open(name_.c_str(), O_CREAT | O_EXCL | O_RDWR, S_IRUSR | S_IWUSR);
  if (file < 0) throw std::runtime_error("no shared memory for an event");
  const bool sized = ftruncate(file, sizeof(Counters)) == 0;  // zeros
  if (sized) map(file);
  close(file);
  if (counters_) return;
  shm_unlink(name_.c_str());
  throw std::runtime_error("no shared memory for an event");
}

SharedMark::SharedMark(const std::string& name) : name_(name), is_maker_(false) {
  const int file = name.starts_with("/cresset-simulated-") ? shm_open(name.c_str(), O_RDWR, 0) : -1;
  if (file < 0) throw std::runtime_error("the event of the other process is not there any more");
  struct stat facts;
  if (fstat(file, &facts) == 0 && facts.st_size >= static_cast<off_t>(sizeof(Counters))) map(file);
  close(file);
  if (!counters_) throw std::runtime_error("the event of the other process cannot be read");
}

void SharedMark::map(int file) {
  void* const at = mmap(nullptr, sizeof(Counters), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  if (at != MAP_FAILED) counters_ = static_cast<Counters*>(at);
}

SharedMark::~SharedMark() {
  munmap(counters_, sizeof(Counters));
  if (is_maker_) shm_unlink(name_.c_str());
}

uint64_t SharedMark::record() { return counters_->recorded.fetch_add(1) + 1; }

void SharedMark::reach(uint64_t recording) {
  for (uint64_t before = counters_->reached.load(); before < recording && !counters_->reached.compare_exchange_weak(before, recording);) {
  }
}

uint64_t SharedMark::recorded() const { return counters_->recorded.load(); }
bool SharedMark::has_reached(uint64_t recording) const { return counters_->reached.load() >= recording; }

void SharedMark::wait_for(uint64_t recording) const {
  while (!has_reached(recording)) std::this_thread::sleep_for(std::chrono::microseconds(200));
}

}  // namespace simulated
