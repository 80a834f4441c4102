#ifndef RUBATO_TESTS_SIMULATION_CHUNK_STATE_H_
#define RUBATO_TESTS_SIMULATION_CHUNK_STATE_H_

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace rubato::simulation {

// A worker's incarnation and its step.
using PushId = std::pair<uint64_t, int64_t>;

// Rows of a table by their keys: weights, what the optimizer keeps of them, and the bits of the step of their last
// update, if rows are removed.
using Rows = std::map<uint64_t, std::vector<float>>;

// How often keys that have no row were pushed, as a table counts that: for each part of the hashes the pushes since its
// counters were halved, and then the counters. Without the parts in which all are 0.
using PushCounts = std::map<uint64_t, std::vector<uint32_t>>;

// Stands for a chunk's weights: which pushes were applied to them since the job began, in which order, and what became
// of one number. A shard of a table has its rows instead of the number, and counts pushes.
struct ChunkState {
  int64_t version = 0;
  std::vector<PushId> pushes;
  double value = 0;
  Rows rows = {};
  PushCounts counts = {};

  bool operator==(const ChunkState&) const = default;
};

// How one differs from what is due, as in "version 3 of 4 pushes; due are 3 of 5".
std::string Difference(const ChunkState& state, const ChunkState& due);

}  // namespace rubato::simulation

#endif  // RUBATO_TESTS_SIMULATION_CHUNK_STATE_H_
