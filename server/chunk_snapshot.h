#ifndef RUBATO_SERVER_CHUNK_SNAPSHOT_H_
#define RUBATO_SERVER_CHUNK_SNAPSHOT_H_

#include <vector>

#include "common/float_buffer.h"
#include "proto/checkpoint.pb.h"

namespace rubato::server {

// A chunk as it was at one moment; the arrays are not written as long as they are held.
struct ChunkSnapshot {
  // Without values_at and slots_at.
  v1::ChunkRecord record;
  FloatBuffer::Ptr weights;
  std::vector<FloatBuffer::Ptr> slots;
};

}  // namespace rubato::server

#endif  // RUBATO_SERVER_CHUNK_SNAPSHOT_H_
