#ifndef RUBATO_TESTS_SIMULATION_CHUNK_GROUPS_H_
#define RUBATO_TESTS_SIMULATION_CHUNK_GROUPS_H_

#include <cstdint>
#include <vector>

#include "common/random.h"
#include "proto/coordinator.pb.h"

namespace rubato::simulation {

// Chunks of one partition that travel together: of tensors, or shards of the table.
struct ChunkGroup {
  uint32_t server = 0;
  uint32_t partition = 0;
  std::vector<uint32_t> chunks;
};

// All chunks in random groups, in random order. Real workers agree on theirs; the rules hold per chunk, so here each
// worker may have its own.
std::vector<ChunkGroup> GroupChunks(const std::vector<v1::ChunkPlacement>& chunks, Random& random);

}  // namespace rubato::simulation

#endif  // RUBATO_TESTS_SIMULATION_CHUNK_GROUPS_H_
