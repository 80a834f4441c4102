#include "cli/command/watch_outcome.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "common/proto_enum.h"
#include "common/storage/file.h"

namespace rubato {
namespace {

absl::Status Failed(const std::string& error) { return absl::AbortedError(absl::StrCat("the job failed: ", error)); }

// `weights`: empty if there is no checkpoint of the stop.
absl::Status Stopped(const std::string& reason, const std::string& weights) {
  return absl::AbortedError(absl::StrCat("the job was stopped: ", reason, weights.empty() ? "" : "\n",
                                         weights.empty() ? "" : WayOn(weights)));
}

}  // namespace

absl::Status WatchOutcome(const v1::JobStatus& status) {
  const v1::Stop& end = status.end();
  switch (end.kind()) {
    case v1::Stop::DONE:
      return absl::OkStatus();
    case v1::Stop::STOPPED:
      return Stopped(end.error(), end.checkpoint().empty() ? "" : JoinPath(status.run_directory(), end.checkpoint()));
    case v1::Stop::FAILED:
    case v1::Stop::KIND_UNSPECIFIED:
      RUBATO_NO_VALUE_OF(v1::Stop_Kind_Stop_Kind) : break;
  }
  // A coordinator that does not say what kind of end it is says at least this.
  if (status.phase() == v1::JobStatus::DONE) return absl::OkStatus();
  return Failed(status.error());
}

absl::Status WatchOutcome(const RunEnding& ending) {
  if (ending.ok) return absl::OkStatus();
  return ending.stopped ? Stopped(ending.error, ending.weights) : Failed(ending.error);
}

}  // namespace rubato
