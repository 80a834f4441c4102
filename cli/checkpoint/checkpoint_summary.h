#ifndef RUBATO_CLI_CHECKPOINT_CHECKPOINT_SUMMARY_H_
#define RUBATO_CLI_CHECKPOINT_CHECKPOINT_SUMMARY_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/storage/checkpoint.h"

namespace rubato {

// What one checkpoint of a run holds.
struct CheckpointSummary {
  struct Tensor {
    std::string name;
    std::vector<int64_t> shape;
    int64_t elements = 0;
    int64_t chunks = 0;
    int64_t version_min = 0;
    int64_t version_max = 0;
    // Of the optimizer's state for each element.
    int64_t slots = 0;
    // Weights that are NaN or infinite.
    int64_t not_finite = 0;
  };
  struct Table {
    std::string name;
    v1::TableConfig::Algorithm algorithm = v1::TableConfig::ALGORITHM_UNSPECIFIED;
    // Weights in a row.
    int64_t dimension = 0;
    int64_t shards = 0;
    int64_t rows = 0;
    // Of keys, weights and the optimizer's state.
    uint64_t bytes = 0;
    // Of the shards.
    int64_t version_min = 0;
    int64_t version_max = 0;
    int64_t not_finite = 0;
  };

  std::string job;
  v1::Plan plan;
  uint32_t servers = 0;
  // In model order.
  std::vector<Tensor> tensors;
  std::vector<Table> tables;
  // Steps that each worker had applied to every chunk and shard, by its index; of its latest process.
  std::map<uint32_t, int64_t> steps;
  // Of a checkpoint that was cut from a job that trains.
  std::optional<v1::CutRecord> cut;
  // When it was complete.
  absl::Time written = absl::InfinitePast();
  // Bytes of the servers' data files, and of those of workers that had kept something.
  uint64_t server_bytes = 0;
  std::map<uint32_t, uint64_t> worker_bytes;
};

// Reads all of a checkpoint's files and checks them: checksums, sizes, and that each tensor and table is whole. Errors
// as of ReadCheckpoint, with the file's name, and as of ReadCheckpointTables.
absl::StatusOr<CheckpointSummary> SummarizeCheckpoint(const std::string& directory);

// For a person; `name` is the checkpoint's, `now` is for its age.
std::string FormatCheckpoint(const std::string& name, const CheckpointSummary& summary, absl::Time now);

}  // namespace rubato

#endif  // RUBATO_CLI_CHECKPOINT_CHECKPOINT_SUMMARY_H_
