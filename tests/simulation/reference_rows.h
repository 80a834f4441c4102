#ifndef RUBATO_TESTS_SIMULATION_REFERENCE_ROWS_H_
#define RUBATO_TESTS_SIMULATION_REFERENCE_ROWS_H_

#include <cstdint>
#include <vector>

#include "proto/update_log.pb.h"
#include "tests/simulation/chunk_state.h"
#include "tests/simulation/scenario.h"

namespace rubato::simulation {

// What must be true of the rows of the job's table: the same float32 operations as the servers', one row after another
// in a map. Shares no code with the servers' tables.

// The chunk that a key's row is in.
uint32_t ShardChunkOf(const Scenario& scenario, uint64_t key);

// The weights of a row that no push has brought.
std::vector<float> InitialRow(const Scenario& scenario, uint64_t key);

struct RowsUpdate {
  // Several contributions have the same key.
  bool has_key_of_several = false;
  bool has_expired = false;
  // A row was removed for there being too many.
  bool has_row_too_many = false;
  // A key was not pushed often enough to have a row; and one was, after it was not.
  bool has_key_without_row = false;
  bool has_admitted = false;
};

// Updates a shard's rows with who contributed what, in whatever order, under a plan with that factor on the learning
// rate, counts the pushes of keys without a row, and removes rows that have expired or are too many.
RowsUpdate UpdateRowsByReference(const Scenario& scenario, uint32_t chunk, double learning_rate_scale,
                                 std::vector<v1::UpdateRecord> contributions, Rows* rows, PushCounts* counts);

}  // namespace rubato::simulation

#endif  // RUBATO_TESTS_SIMULATION_REFERENCE_ROWS_H_
