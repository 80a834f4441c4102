#ifndef RUBATO_SERVER_RULES_PUSH_DEDUPER_H_
#define RUBATO_SERVER_RULES_PUSH_DEDUPER_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "server/rules/worker_rows.h"
#include "server/rules/worker_state.h"

namespace rubato::server {

// Remembers, for one chunk, the last step of each worker that is done, so that a repeated push is recognised, and what
// it was applied to.
// One number per worker suffices because a worker sends a chunk's next push only after its last one was acknowledged,
// and steps only grow. Takes as long however many workers there are, but for a worker's first push. Pure; not
// thread-safe.
class PushDeduper {
 public:
  struct Watermark {
    uint32_t worker;
    uint64_t incarnation;
    int64_t step;
  };

  // Keeps what is done in `workers`.
  explicit PushDeduper(ChunkColumn<WorkerOnChunk> workers = {}) : workers_(std::move(workers)) {}

  // Whether this push was recorded before.
  bool Seen(uint32_t worker, uint64_t incarnation, int64_t step) const;

  // `step` is done, on top of version `applied_to`. A new incarnation of a worker takes the place of its old one. Steps
  // at or under the watermark leave it unchanged.
  void Record(uint32_t worker, uint64_t incarnation, int64_t step, int64_t applied_to);

  // -1 when nothing was recorded.
  int64_t LastStep(uint32_t worker, uint64_t incarnation) const;
  // Of the worker's last step; -1 when that is another one than `step`.
  int64_t AppliedTo(uint32_t worker, uint64_t incarnation, int64_t step) const;

  // In order of worker index.
  std::vector<Watermark> Watermarks() const;

  // For tests that visit all states: appends all that what comes later depends on.
  void AppendState(std::string* state) const;

 private:
  // Null when nothing was recorded.
  const WorkerOnChunk::Done* Find(uint32_t worker, uint64_t incarnation) const;

  ChunkColumn<WorkerOnChunk> workers_;
};

}  // namespace rubato::server

#endif  // RUBATO_SERVER_RULES_PUSH_DEDUPER_H_
