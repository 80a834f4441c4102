#include "cli/doctor/machine.h"

#include <netinet/in.h>
#include <sched.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/timex.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <ctime>
#include <fstream>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/available_memory.h"
#include "common/shared_memory/arena.h"
#include "kernels/optimizer/isa.h"

namespace rubato {
namespace {

constexpr size_t kTriedRegionBytes = size_t{1} << 20;
constexpr int kClockReadings = 10000;

ResourceLimit LimitOf(int resource) {
  rlimit limit = {};
  if (getrlimit(static_cast<__rlimit_resource>(resource), &limit) != 0) return {};
  const auto value = [](rlim_t bytes) { return bytes == RLIM_INFINITY ? -1 : static_cast<int64_t>(bytes); };
  return {value(limit.rlim_cur), value(limit.rlim_max)};
}

// The rest of the first line of `path` that begins with `key`, behind a colon.
std::string FieldOf(const char* path, absl::string_view key) {
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    if (!absl::StartsWith(line, key)) continue;
    const size_t colon = line.find(':');
    if (colon != std::string::npos) return std::string(absl::StripAsciiWhitespace(line.substr(colon + 1)));
  }
  return "";
}

// The field is "16000000 kB".
int64_t TotalMemoryBytes() { return std::strtoll(FieldOf("/proc/meminfo", "MemTotal").c_str(), nullptr, 10) * 1024; }

}  // namespace

CpuFacts MeasureCpu() {
  CpuFacts facts;
  facts.model = FieldOf("/proc/cpuinfo", "model name");
  facts.cores = static_cast<int>(sysconf(_SC_NPROCESSORS_ONLN));
  cpu_set_t allowed;
  facts.allowed_cores = sched_getaffinity(0, sizeof(allowed), &allowed) == 0 ? CPU_COUNT(&allowed) : facts.cores;
  for (Isa isa : kAllIsas) {
    if (Supports(isa)) facts.instruction_sets.push_back(IsaName(isa));
  }
  return facts;
}

MemoryFacts MeasureMemory() { return {TotalMemoryBytes(), AvailableMemoryBytes().value_or(0)}; }

ClockFacts MeasureClock() {
  ClockFacts facts;
  timespec time = {};
  clock_getres(CLOCK_MONOTONIC, &time);
  facts.resolution = absl::DurationFromTimespec(time);
  facts.step = absl::InfiniteDuration();
  clock_gettime(CLOCK_MONOTONIC, &time);
  absl::Duration last = absl::DurationFromTimespec(time);
  for (int i = 0; i < kClockReadings; ++i) {
    clock_gettime(CLOCK_MONOTONIC, &time);
    const absl::Duration now = absl::DurationFromTimespec(time);
    if (now > last) facts.step = std::min(facts.step, now - last);
    last = now;
  }
  timex state = {};
  if (const int result = adjtimex(&state); result >= 0) {
    facts.synchronised = result != TIME_ERROR && (state.status & STA_UNSYNC) == 0;
    facts.error = absl::Microseconds(state.maxerror);
  }
  return facts;
}

ResourceLimit OpenFilesLimit() { return LimitOf(RLIMIT_NOFILE); }
ResourceLimit LockedMemoryLimit() { return LimitOf(RLIMIT_MEMLOCK); }

absl::Status TrySharedMemory() {
  absl::StatusOr<std::shared_ptr<SharedArena>> arena = SharedArena::Create("rubato doctor", kTriedRegionBytes);
  if (!arena.ok()) return arena.status();
  auto* bytes = static_cast<char*>((*arena)->Allocate(kTriedRegionBytes / 2));
  if (bytes == nullptr) return absl::ResourceExhaustedError("a region of 1 MiB has no room for half of it");
  std::memset(bytes, 1, kTriedRegionBytes / 2);
  return absl::OkStatus();
}

absl::Status TryPort(int port) {
  const int socket_fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (socket_fd < 0) return absl::UnavailableError(absl::StrCat("no socket can be made: ", std::strerror(errno)));
  // As servers do, so that connections that have just ended do not count.
  const int on = 1;
  setsockopt(socket_fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_ANY);
  address.sin_port = htons(static_cast<uint16_t>(port));
  const bool bound =
      bind(socket_fd, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0 && listen(socket_fd, 1) == 0;
  const int error = errno;
  close(socket_fd);
  return bound ? absl::OkStatus() : absl::UnavailableError(std::strerror(error));
}

}  // namespace rubato
