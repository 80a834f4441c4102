#ifndef RUBATO_CLI_REPLAY_RECORDED_SOURCE_H_
#define RUBATO_CLI_REPLAY_RECORDED_SOURCE_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cli/replay/recorded_run.h"
#include "proto/job_config.pb.h"
#include "worker/data/prefetcher.h"
#include "worker/training/batch_source.h"

namespace rubato {

// The batches that a member's steps had: with DYNAMIC dispatch those that the record names, with STATIC those that the
// recorded plans give it. Used by the trainer's thread.
class RecordedSource : public worker::BatchSource {
 public:
  struct Options {
    // All outlive the object.
    const v1::JobConfig* config = nullptr;
    const RecordedRun::Member* member = nullptr;
    int64_t train_examples = 0;
    worker::Prefetcher* prefetcher = nullptr;
    // STATIC dispatch: what reads the examples that a plan gives the member. Null with DYNAMIC.
    worker::BatchSource* by_plan = nullptr;
    // Is told when the step that Get is asked for has no batch.
    std::function<void()> on_empty;
  };

  explicit RecordedSource(Options options) : options_(std::move(options)) {}

  absl::StatusOr<Next> Get(const worker::Parameters::Step& step) override;
  void Begun() override;
  void Stopped() override {}

 private:
  // DataLoss: the shard has no such examples.
  absl::StatusOr<worker::ExampleRange> RangeOf(const RecordedRun::Step& step) const;
  absl::Status ReadAhead();
  absl::StatusOr<Next> GetRecorded(const worker::Parameters::Step& step);

  const Options options_;
  // Indices of the member's steps: of the one to begin, and of the first whose batch is not asked for.
  size_t next_ = 0;
  size_t asked_ = 0;
  std::optional<worker::Batch> batch_;
};

}  // namespace rubato

#endif  // RUBATO_CLI_REPLAY_RECORDED_SOURCE_H_
