#include "cli/launch/gpu_count.h"

#include <poll.h>

#include <algorithm>
#include <memory>
#include <optional>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "cli/launch/child_process.h"
#include "common/status.h"
#include "common/storage/file.h"

namespace rubato {
namespace {

constexpr int kLogLines = 5;

}  // namespace

absl::StatusOr<uint32_t> CountGpus(const std::string& worker, const std::string& log_path, absl::Duration timeout,
                                   const Clock& clock, StopSignals* signals) {
  const absl::Time deadline = clock.Now() + timeout;
  RUBATO_ASSIGN_OR_RETURN(const std::unique_ptr<ChildProcess> process,
                          ChildProcess::Start({worker, "--count_gpus"}, log_path));
  std::optional<ExitResult> result;
  while (!(result = process->Poll()).has_value()) {
    const absl::Duration left = deadline - clock.Now();
    if (left <= absl::ZeroDuration()) {
      return absl::DeadlineExceededError(
          absl::StrCat("GPUs were not counted within ", absl::FormatDuration(timeout), " (does nvidia-smi answer?)"));
    }
    if (signals->Take()) return absl::CancelledError("stopped by a signal");
    pollfd events[] = {{process->descriptor(), POLLIN, 0}, {signals->descriptor(), POLLIN, 0}};
    poll(events, 2, static_cast<int>(std::clamp<int64_t>(absl::ToInt64Milliseconds(left), 1, 1000)));
  }
  std::string said = LastLines(log_path, kLogLines);
  absl::StripAsciiWhitespace(&said);
  RUBATO_RETURN_IF_ERROR(RemoveFile(log_path));
  uint32_t gpus = 0;
  if (result->ok() && absl::SimpleAtoi(said, &gpus)) return gpus;
  return absl::AbortedError(absl::StrCat(worker, " --count_gpus ended with ", result->Describe(), ": ", said));
}

}  // namespace rubato
