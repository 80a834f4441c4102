#include "bench/push_pull/two_way_region.h"

#include <fcntl.h>
#include <linux/futex.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <climits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "bench/push_pull/sockets.h"
#include "common/status.h"

namespace rubato::bench {
namespace {

// Looks before the wait in the kernel: a few microseconds, less than it takes to sleep and wake.
constexpr int kSpins = 200;

void Pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

}  // namespace

void SharedCounter::Increment() {
  value_.fetch_add(1, std::memory_order_seq_cst);
  if (waiters_.load(std::memory_order_seq_cst) > 0)
    syscall(SYS_futex, &value_, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
}

uint32_t SharedCounter::AwaitChange(uint32_t old) {
  for (int i = 0; i < kSpins; ++i) {
    if (const uint32_t value = Get(); value != old) return value;
    Pause();
  }
  waiters_.fetch_add(1, std::memory_order_seq_cst);
  while (value_.load(std::memory_order_seq_cst) == old) {
    syscall(SYS_futex, &value_, FUTEX_WAIT, old, nullptr, nullptr, 0);
  }
  waiters_.fetch_sub(1, std::memory_order_relaxed);
  return Get();
}

absl::StatusOr<std::unique_ptr<TwoWayRegion>> TwoWayRegion::Map(FileDescriptor descriptor, size_t bytes) {
  void* data = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, descriptor.get(), 0);
  if (data == MAP_FAILED) return SystemError(absl::StrCat("mapping ", bytes, " bytes"));
  return std::unique_ptr<TwoWayRegion>(new TwoWayRegion(std::move(descriptor), data, bytes));
}

absl::StatusOr<std::unique_ptr<TwoWayRegion>> TwoWayRegion::Create(size_t bytes) {
  FileDescriptor descriptor(memfd_create("rubato-bench", MFD_CLOEXEC));
  if (!descriptor.open()) return SystemError("memfd_create");
  if (ftruncate(descriptor.get(), static_cast<off_t>(bytes)) != 0) return SystemError("ftruncate");
  return Map(std::move(descriptor), bytes);
}

absl::StatusOr<std::unique_ptr<TwoWayRegion>> TwoWayRegion::Open(const std::string& address, size_t bytes) {
  FileDescriptor descriptor(open(address.c_str(), O_RDWR | O_CLOEXEC));
  if (!descriptor.open()) return SystemError(absl::StrCat("open ", address));
  return Map(std::move(descriptor), bytes);
}

TwoWayRegion::~TwoWayRegion() { munmap(data_, bytes_); }

std::string TwoWayRegion::address() const { return absl::StrCat("/proc/", getpid(), "/fd/", descriptor_.get()); }

}  // namespace rubato::bench
