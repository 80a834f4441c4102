#ifndef RUBATO_CLI_REPLAY_WEIGHT_COMPARISON_H_
#define RUBATO_CLI_REPLAY_WEIGHT_COMPARISON_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"

namespace rubato {

// Of a run's weights and those of its replay.
struct WeightComparison {
  // Weights of tensors, and of rows of tables that are in either.
  int64_t elements = 0;
  int64_t different = 0;
  // Rows of tables that are in either.
  int64_t rows = 0;
  // The first that differs: "conv0.weight[17] is 0.25, and was 0.5 in the run", "words[key 17][3] is ...", or
  // "words[key 17] is not there, and was in the run".
  std::string first_difference;
};

// Compares two checkpoints bit by bit: tensors, and then tables, whose rows are in the order of their keys. A row that
// only one of them has differs in all its weights. DataLoss: they are not of the same model. Errors of ReadCheckpoint.
absl::StatusOr<WeightComparison> CompareWeights(const std::string& recorded, const std::string& replayed);

}  // namespace rubato

#endif  // RUBATO_CLI_REPLAY_WEIGHT_COMPARISON_H_
