#ifndef RUBATO_SERVER_HELD_ANSWERS_H_
#define RUBATO_SERVER_HELD_ANSWERS_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "proto/parameter_server.pb.h"
#include "server/rules/partition.h"

namespace rubato::server {

// Answers of SSP and ASYNC that are not sent before other pushes to the same chunks, which are here already, have been
// applied. All of them then carry the same weights, which are newer, and which the updates in between have changed
// where they are: weights that somebody holds would have been written elsewhere, to memory that is in no cache.
// Answers are about the same chunks if they have the same first chunk. Pure; not thread-safe; owned by a
// PartitionOwner.
class HeldAnswers {
 public:
  // About the same chunks. The first of them waits for as many updates; the memory that is saved is a sixteenth of what
  // it was.
  static constexpr size_t kMost = 16;

  // `reply`: to a request of this task; it carries weights.
  void Hold(const v1::TaskId& task, PartitionReply reply);

  bool empty() const { return held_.empty(); }
  // Whether kMost of those about these chunks are held.
  bool IsFull(uint32_t first_chunk) const;
  // Whether one of them is to this task, and may have one of the chunks.
  bool Concern(const v1::TaskId& task, const std::vector<uint32_t>& chunks) const;

  // Those about the same chunks, or all of them, which are held no longer: in the order in which they came.
  std::vector<PartitionReply> Take(uint32_t first_chunk);
  std::vector<PartitionReply> TakeAll();

 private:
  struct Held {
    v1::TaskId task;
    PartitionReply reply;

    uint32_t first_chunk() const { return reply.chunks.front(); }
  };

  std::vector<Held> held_;
};

}  // namespace rubato::server

#endif  // RUBATO_SERVER_HELD_ANSWERS_H_
