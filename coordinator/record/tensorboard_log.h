#ifndef RUBATO_COORDINATOR_RECORD_TENSORBOARD_LOG_H_
#define RUBATO_COORDINATOR_RECORD_TENSORBOARD_LOG_H_

#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/event_file/event_file_writer.h"
#include "proto/coordinator.pb.h"
#include "proto/job_config.pb.h"
#include "proto/run_record.pb.h"

namespace rubato::coordinator {

// The run record once more, as event files for TensorBoard in <run directory>/tensorboard: scalars over steps, plans
// and members as text, the job's config, and what workers report of their tensors. Not thread-safe.
class TensorboardLog {
 public:
  // Begins a file with the job's config. Unavailable: an I/O error.
  static absl::StatusOr<std::unique_ptr<TensorboardLog>> Open(const v1::JobConfig& config, absl::Time now);

  // Unavailable: an I/O error.
  absl::Status OnLine(absl::Time now, const v1::RunRecordLine& line);
  // Statistics that contradict themselves are left out. Unavailable: an I/O error.
  absl::Status OnTensors(absl::Time now, const v1::TensorReport& report);

 private:
  explicit TensorboardLog(std::unique_ptr<EventFileWriter> writer) : writer_(std::move(writer)) {}
  absl::Status Append(absl::Time now, tensorflow::Event event);

  std::unique_ptr<EventFileWriter> writer_;
  // The step of the line before: events that belong to no step have this one.
  int64_t last_step_ = 0;
};

// The event of a line of the run record; nothing in it if the line has nothing to show. Pure.
tensorflow::Event EventOfLine(const v1::RunRecordLine& line, int64_t last_step);
// Norm, and histogram, of each tensor. Pure.
tensorflow::Event EventOfTensors(const v1::TensorReport& report);

}  // namespace rubato::coordinator

#endif  // RUBATO_COORDINATOR_RECORD_TENSORBOARD_LOG_H_
