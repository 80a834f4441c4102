#include "common/transport/process_tuning.h"

#include <limits.h>
#include <malloc.h>
#include <sched.h>
#include <sys/auxv.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"

namespace rubato {
namespace {

// What sched_setattr(2) takes, in its first version; glibc has it only since 2.41.
struct Scheduling {
  uint32_t size = sizeof(Scheduling);
  uint32_t policy;
  uint64_t flags = 0;
  int32_t nice;
  uint32_t priority = 0;
  // Of a policy without deadlines, the slice, in ns; 0: the system's own.
  uint64_t runtime;
  uint64_t deadline = 0;
  uint64_t period = 0;
};

constexpr char kTunables[] = "GLIBC_TUNABLES";

// Empty if it cannot be read.
std::string ReadAll(const char* path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

// Of the calling thread, whose nice value stays.
void Schedule(int policy, uint64_t slice_ns) {
  const Scheduling scheduling = {
      .policy = static_cast<uint32_t>(policy), .nice = getpriority(PRIO_PROCESS, 0), .runtime = slice_ns};
  if (syscall(SYS_sched_setattr, 0, &scheduling, 0) == 0) return;
  const sched_param no_priority = {};
  sched_setscheduler(0, policy, &no_priority);
}

}  // namespace

std::optional<std::string> TunablesForHugePages(absl::string_view tunables, absl::string_view enabled) {
  constexpr absl::string_view kHugePages = "glibc.malloc.hugetlb";
  if (!absl::StrContains(enabled, "[madvise]") || absl::StrContains(tunables, kHugePages)) return std::nullopt;
  return absl::StrCat(tunables, tunables.empty() ? "" : ":", kHugePages, "=1");
}

void UseHugePages() {
  if (getauxval(AT_SECURE) != 0) return;  // The variable would not get through, now or after any start.
  const char* const set = getenv(kTunables);
  const std::optional<std::string> tunables =
      TunablesForHugePages(set == nullptr ? "" : set, ReadAll("/sys/kernel/mm/transparent_hugepage/enabled"));
  if (!tunables.has_value()) return;
  char program[PATH_MAX];
  const ssize_t length = readlink("/proc/self/exe", program, sizeof(program) - 1);
  std::string arguments = ReadAll("/proc/self/cmdline");  // Each ends with a zero.
  if (length <= 0 || arguments.empty() || setenv(kTunables, tunables->c_str(), 1) != 0) return;
  program[length] = '\0';
  std::vector<char*> argv;
  for (size_t at = 0; at < arguments.size(); at = arguments.find('\0', at) + 1) argv.push_back(&arguments[at]);
  argv.push_back(nullptr);
  execv(program, argv.data());  // Returns only if it fails.
}

void TuneProcess() {
#ifdef __GLIBC__
  // Free memory at the top of the heap that is kept.
  mallopt(M_TRIM_THRESHOLD, 1 << 30);
  // Setting the first stops glibc from adapting this one, the size from which an allocation is a mapping of its own,
  // unmapped when it is freed. This is the largest value that it takes.
  mallopt(M_MMAP_THRESHOLD, 32 << 20);
#endif
  // Debian's Abseil is built with its check on, which takes one lock of the whole process at each lock of gRPC's.
  absl::SetMutexDeadlockDetectionMode(absl::OnDeadlockCycle::kIgnore);
}

void ScheduleAsBatch() { Schedule(SCHED_BATCH, 0); }

void ScheduleToAnswer() {
  constexpr uint64_t kSliceNs = 100'000;  // The shortest that the system takes.
  Schedule(SCHED_OTHER, kSliceNs);
}

}  // namespace rubato
