#ifndef RUBATO_CLI_PREDICT_STORED_ROWS_H_
#define RUBATO_CLI_PREDICT_STORED_ROWS_H_

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/key_hash.h"
#include "common/model_spec.h"
#include "server/tables/table.h"
#include "worker/data/prefetcher.h"

namespace rubato {

// The rows of a checkpoint's tables in memory, as an evaluator would have them from the servers: a key that is not
// there has its initial weights, and stays away.
class StoredRows {
 public:
  // `seed` is the job's. None of a model without tables. Errors of ReadCheckpointTables; FailedPrecondition: the tables
  // are not those of the model; ResourceExhausted: one is over 64 GiB.
  static absl::StatusOr<StoredRows> Read(const std::string& directory, const ModelSpec& spec, uint64_t seed);

  // Writes a batch's inputs as the model takes them: its features, and behind them its rows.
  absl::Status AddTo(const worker::Batch& batch, std::vector<float>* inputs) const;

 private:
  explicit StoredRows(ModelSpec spec) : spec_(std::move(spec)) {}

  ModelSpec spec_;
  // By table.
  std::vector<KeyHash> hashes_;
  std::vector<std::unique_ptr<const server::Table>> tables_;
};

}  // namespace rubato

#endif  // RUBATO_CLI_PREDICT_STORED_ROWS_H_
