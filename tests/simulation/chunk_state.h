#ifndef RUBATO_TESTS_SIMULATION_CHUNK_STATE_H_
#define RUBATO_TESTS_SIMULATION_CHUNK_STATE_H_

#include <cstdint>
#include <utility>
#include <vector>

namespace rubato::simulation {

// A worker's incarnation and its step.
using PushId = std::pair<uint64_t, int64_t>;

// Stands for a chunk's weights: which pushes were applied to them since the job began, in which order, and what became
// of one number.
struct ChunkState {
  int64_t version = 0;
  std::vector<PushId> pushes;
  double value = 0;

  bool operator==(const ChunkState&) const = default;
};

}  // namespace rubato::simulation

#endif  // RUBATO_TESTS_SIMULATION_CHUNK_STATE_H_
