#ifndef RUBATO_SERVER_CHUNK_SNAPSHOT_H_
#define RUBATO_SERVER_CHUNK_SNAPSHOT_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "common/float_buffer.h"
#include "proto/checkpoint.pb.h"

namespace rubato::server {

// A shard of a table as it was at one moment.
struct ShardSnapshot {
  // Without the places of the arrays.
  v1::ShardRecord record;
  // record.rows() keys, ascending, and record.row_floats() float32 for each. Both are there also without rows.
  std::shared_ptr<const std::vector<uint64_t>> keys;
  std::shared_ptr<const std::vector<float>> rows;
  // Of Table::PushCounts; empty if the table admits every key.
  std::vector<uint64_t> push_counts;
};

// A chunk as it was at one moment; the arrays are not written as long as they are held.
struct ChunkSnapshot {
  // Without values_at and slots_at.
  v1::ChunkRecord record;
  FloatBuffer::Ptr weights;
  std::vector<FloatBuffer::Ptr> slots;
  // Of a table; then there is nothing else.
  std::shared_ptr<const ShardSnapshot> shard;
};

}  // namespace rubato::server

#endif  // RUBATO_SERVER_CHUNK_SNAPSHOT_H_
