#ifndef RUBATO_WORKER_TRAINING_BATCH_SOURCE_H_
#define RUBATO_WORKER_TRAINING_BATCH_SOURCE_H_

#include <vector>

#include "absl/status/statusor.h"
#include "proto/checkpoint.pb.h"
#include "worker/data/prefetcher.h"
#include "worker/ps_client/parameters.h"

namespace rubato::worker {

// Which examples a step computes: a batch of at most ExamplesPerStep (common/config/local_sgd.h). Used by the trainer
// thread.
class BatchSource {
 public:
  enum class Kind {
    kBatch,
    // Nothing for this step: contribute an empty gradient.
    kEmpty,
    // The job needs nothing more of this worker.
    kDone,
  };
  struct Next {
    Kind kind = Kind::kDone;
    // kBatch: valid until the next call of Get or Done.
    const Batch* batch = nullptr;
    // Position in epochs of the batch's beginning, for learning-rate schedules.
    double epoch = 0;
    // By how much that position moves with each example of the batch, for schedules that are followed inside it.
    double epochs_per_example = 0;
  };

  virtual ~BatchSource() = default;

  // What to compute for `step`. Asked again, for the same or another step, before Begun(), it gives the same examples
  // (or, if they depend on the step, that step's). Errors: what the reader reports.
  virtual absl::StatusOr<Next> Get(const Parameters::Step& step) = 0;

  // Which shards the worker holds, and how far it is in each: the first example that no step has begun with yet. Before
  // Begun(), the step that Get was last asked for has not. Empty if the plan gives out the data.
  virtual std::vector<v1::ShardPosition> Positions() { return {}; }

  // The step that Get was last asked for has begun and will be pushed; everything that was pushed before is
  // acknowledged.
  virtual void Begun() = 0;

  // After Begun: the batch that Get will give next if nothing changes until then, to be prepared for; null if it is
  // not known or not read yet. Valid until the next call of Get.
  virtual const Batch* Upcoming() { return nullptr; }

  // This worker begins no further step, and everything that it has pushed is acknowledged.
  virtual void Stopped() = 0;
};

}  // namespace rubato::worker

#endif  // RUBATO_WORKER_TRAINING_BATCH_SOURCE_H_
