#ifndef RUBATO_COMMON_STORAGE_PART_QUEUE_H_
#define RUBATO_COMMON_STORAGE_PART_QUEUE_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "proto/coordinator.pb.h"
#include "proto/parameter_server.pb.h"

namespace rubato {

// A task's part of a checkpoint that is still to be written.
struct PendingPart {
  // Of its directory in the checkpoint directory.
  std::string name;
  // Id 0: the checkpoint is of no cut.
  v1::Cut cut;
  // Writes it, and returns its bytes once all of it is on the disk. `cancelled` is asked now and then; Cancelled if it
  // says yes. Absent: the task keeps nothing, so there is nothing to write.
  std::function<absl::StatusOr<int64_t>(const std::function<bool()>& cancelled)> write;
};

// Which of a task's parts is written next, and what became of them. Bounded: of cuts the newest alone waits, and of
// other checkpoints the one that was asked for last. What is being written is finished, and what failed is tried again
// after pauses that double, until it is replaced. Pure; not thread-safe; owned by a PartWriter.
class PartQueue {
 public:
  struct Options {
    // The pause after the first failure, and the longest.
    absl::Duration retry_min = absl::Milliseconds(500);
    absl::Duration retry_max = absl::Seconds(10);
  };
  // One of both, or nothing.
  struct Work {
    // To be written.
    std::shared_ptr<const PendingPart> part;
    // To be kept, with all others removed.
    std::optional<std::vector<std::string>> keep;
  };
  // What the end of a write means.
  enum class Result {
    kWritten,
    // It had failed before.
    kWrittenAtLast,
    // It will be tried again.
    kFailed,
    kFailedAgain,
    // It failed, and something newer has taken its place.
    kReplaced,
  };

  explicit PartQueue(Options options) : options_(options) {}

  // The task captures this cut from now on; older ones that wait are given up. Cuts that are not newer than the last
  // one change nothing. InvalidArgument: its name is none that a cut can have; the cut's part will be dropped.
  absl::Status BeginCut(const v1::Cut& cut);
  // The part of the cut that was begun last. Of another one it is dropped.
  void AddCut(std::shared_ptr<const PendingPart> part);
  // Of no cut. Changes nothing if one of that name waits or is being written; otherwise takes the place of one that
  // waits.
  void AddCheckpoint(std::shared_ptr<const PendingPart> part);
  // The checkpoints to keep; replaces an earlier list that waits.
  void Keep(std::vector<std::string> names) { keep_ = std::move(names); }

  // What to do now. Its part is being written from now on. REQUIRES: no part is being written.
  Work Next(absl::Time now);
  // When Next has something; InfiniteFuture: not before something is added.
  absl::Time due() const;
  // The part was written, with its bytes, or was not.
  Result OnWritten(const absl::StatusOr<int64_t>& bytes, absl::Time now);

  // Of the last cut that was begun; id 0: there was none.
  const v1::CutProgress& progress() const { return progress_; }

 private:
  // What waits, or is being written and not replaced.
  struct Slot {
    std::shared_ptr<const PendingPart> part;
    absl::Time due = absl::InfinitePast();
    absl::Duration pause = absl::ZeroDuration();  // Over zero: it has failed.
  };

  bool IsWriting(const Slot& slot) const { return slot.part != nullptr && slot.part == writing_; }

  const Options options_;
  Slot cut_;
  Slot checkpoint_;
  std::shared_ptr<const PendingPart> writing_;
  std::optional<std::vector<std::string>> keep_;
  // The last cut that was begun.
  std::string cut_name_;
  bool cut_refused_ = false;
  v1::CutProgress progress_;
};

}  // namespace rubato

#endif  // RUBATO_COMMON_STORAGE_PART_QUEUE_H_
