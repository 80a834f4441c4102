#ifndef RUBATO_CLI_DOCTOR_JUDGE_H_
#define RUBATO_CLI_DOCTOR_JUDGE_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cli/doctor/finding.h"
#include "cli/doctor/machine.h"

// What measurements mean for a job. All functions are pure.

namespace rubato {

// A job as far as it matters here; zeros if no config was given.
struct JobNeeds {
  // Float32 weights, and what servers keep for them: weights twice, because one version is read while the next is
  // written, and the optimizer's state.
  int64_t weight_bytes = 0;
  int64_t server_bytes = 0;
  int tasks = 0;
};

struct DiskFacts {
  std::string directory;
  double bytes_per_second = 0;
  int64_t free_bytes = 0;
};

// Push and pull of payload over the real transport.
struct ExchangeFacts {
  // Both directions together.
  double bytes_per_second = 0;
  // Of a small message, the median.
  absl::Duration round_trip;
};

Finding JudgeCpu(const CpuFacts& cpu);
// `description` is what a worker would compute on, or why it could not.
Finding JudgeDevice(const absl::StatusOr<std::string>& description);
Finding JudgeMemory(const MemoryFacts& memory, const JobNeeds& needs);
Finding JudgeOpenFiles(const ResourceLimit& limit, const JobNeeds& needs);
Finding JudgeLockedMemory(const ResourceLimit& limit);
Finding JudgeSharedMemory(const absl::Status& tried);
Finding JudgeClock(const ClockFacts& clock);
Finding JudgePort(int port, const absl::Status& tried);
Finding JudgeDisk(const absl::StatusOr<DiskFacts>& disk, const JobNeeds& needs);
Finding JudgeLoopback(const absl::StatusOr<ExchangeFacts>& exchange, const JobNeeds& needs);
Finding JudgePeer(const std::string& peer, const absl::StatusOr<ExchangeFacts>& exchange, const JobNeeds& needs);

}  // namespace rubato

#endif  // RUBATO_CLI_DOCTOR_JUDGE_H_
