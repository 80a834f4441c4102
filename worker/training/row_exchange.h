#ifndef RUBATO_WORKER_TRAINING_ROW_EXCHANGE_H_
#define RUBATO_WORKER_TRAINING_ROW_EXCHANGE_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "common/model_spec.h"
#include "worker/data/prefetcher.h"
#include "worker/data/table_keys_of_batch.h"
#include "worker/ps_client/parameters.h"

namespace rubato::worker {

// A trainer's rows of tables: which a step needs, where they are in the model's input, and the gradients that go back.
// Used by the trainer's thread; does nothing if the model has no tables.
//
//   rows.Ask(batch);                                             // At the latest now.
//   RUBATO_ASSIGN_OR_RETURN(const bool there, rows.Await());
//   inputs = rows.Compose(batch);                                // Forward; the step begins; backward.
//   rows.Begun();
//   rows.Ask(*upcoming);                                         // If it is known, before Push.
//   rows.Push(input_gradient, pushed);
class RowExchange {
 public:
  // Both outlive it. `seed` is the job's.
  RowExchange(const ModelSpec* spec, uint64_t seed, Parameters* parameters)
      : spec_(spec), parameters_(parameters), hashes_(HashesOfTables(*spec, seed)) {}

  bool empty() const { return spec_->tables.empty(); }

  // The step to begin next computes this batch. Asked for once, however often it is called.
  void Ask(const Batch& batch);
  // As Parameters::AwaitRows, of all tables.
  absl::StatusOr<bool> Await();
  // What a model with tables takes, [examples, input]: the batch's inputs with the rows behind them. Valid until the
  // next call.
  const float* Compose(const Batch& batch);
  // The step has begun.
  void Begun();
  // The gradient of what Compose gave, on the host.
  void Push(const float* input_gradient, const Parameters::Pushed& pushed);
  // Of a step that contributes nothing.
  void PushNothing(const Parameters::Pushed& pushed);

 private:
  // Which batch the keys are of; no examples: of none.
  struct Wanted {
    int64_t epoch = -1, begin = 0, end = 0;
    std::vector<TableKeysOfBatch> tables;
  };

  const ModelSpec* const spec_;
  Parameters* const parameters_;
  const std::vector<KeyHash> hashes_;
  // Of the step that begins next, and of the one that is computed.
  Wanted next_, current_;
  std::vector<float> inputs_;
};

}  // namespace rubato::worker

#endif  // RUBATO_WORKER_TRAINING_ROW_EXCHANGE_H_
