#ifndef RUBATO_COMMON_TABLE_KEYS_H_
#define RUBATO_COMMON_TABLE_KEYS_H_

#include <bit>
#include <cstdint>

#include "common/key_hash.h"
#include "common/random.h"
#include "proto/coordinator.pb.h"

namespace rubato {

// What the keys of a job's table are hashed with: as secret as the job's seed. Workers and servers agree on it.
inline uint64_t SecretOfTable(uint64_t seed, int table) {
  return Random(seed, StreamId("table keys", static_cast<uint64_t>(table))).Next64();
}
inline KeyHash HashOfTable(uint64_t seed, int table) { return KeyHash(SecretOfTable(seed, table)); }

// What the initial weights of its rows are drawn from.
inline uint64_t SeedOfTable(uint64_t seed, int table) {
  return Random(seed, StreamId("table rows", static_cast<uint64_t>(table))).Next64();
}

// Whether a chunk is a shard of a table. Those come after all chunks of tensors.
inline bool IsShard(const v1::ChunkPlacement& placement) { return placement.length() == 0; }

// Which of its shards, a power of two, a hash belongs to: its first bits.
inline uint32_t ShardOfHash(uint64_t hash, uint32_t shards) {
  return static_cast<uint32_t>(hash >> 32 >> (32 - std::countr_zero(shards)));
}

}  // namespace rubato

#endif  // RUBATO_COMMON_TABLE_KEYS_H_
