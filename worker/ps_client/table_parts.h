#ifndef RUBATO_WORKER_PS_CLIENT_TABLE_PARTS_H_
#define RUBATO_WORKER_PS_CLIENT_TABLE_PARTS_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "common/key_hash.h"
#include "common/model_spec.h"
#include "worker/ps_client/batching.h"

namespace rubato::worker {

// Which of all keys travel in one message: runs of them.
struct KeyPart {
  struct Run {
    size_t begin = 0;
    size_t count = 0;
  };
  std::vector<Run> runs;
  // Of all runs together.
  size_t count = 0;

  // Copies what an array with `each` bytes for every key has of this part to `out`, one after another.
  void Gather(const void* all, size_t each, void* out) const;
};

// A table's shards by the message that they travel in. Pure.
struct TableParts {
  KeyHash hash;
  uint32_t shards = 1;
  int64_t dimension = 0;
  // Of gradients and of rows.
  v1::Codec push = v1::NONE, pull = v1::NONE;
  // The batches, and by shard the position of its own among them.
  std::vector<int> batches;
  std::vector<size_t> part_of_shard;

  // By batch. The keys are in the order of their hashes.
  std::vector<KeyPart> Split(const std::vector<uint64_t>& keys) const;
};

// Of a job's tables, in the model's order. `seed` is the job's.
std::vector<TableParts> PartsOfTables(const std::vector<TableSpec>& tables, uint64_t seed, const Batching& batching);

}  // namespace rubato::worker

#endif  // RUBATO_WORKER_PS_CLIENT_TABLE_PARTS_H_
