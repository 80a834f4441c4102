#ifndef RUBATO_SERVER_RULES_WORKER_ROWS_H_
#define RUBATO_SERVER_RULES_WORKER_ROWS_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "absl/types/span.h"

namespace rubato::server {

// Something for each worker and each of some chunks: a row for each worker, with an entry for each chunk. A request is
// of one worker and of neighbouring chunks, so what it needs lies side by side. By chunk and then by worker it would be
// some lines of memory for each chunk, which with a thousand workers are in no cache. Entries stay where they are. Not
// thread-safe.
template <typename Entry>
class WorkerRows {
 public:
  explicit WorkerRows(size_t chunks) : chunks_(chunks) {}

  // `chunk`: which of them. Null if the worker has no row.
  Entry* Find(uint32_t worker, size_t chunk) const {
    return worker < rows_.size() && rows_[worker] != nullptr ? &rows_[worker][chunk] : nullptr;
  }

  // Makes the worker's row, with entries as they are made, if it has none. Takes memory for all workers before it, so
  // `worker` is one of a plan, whose indices CheckPlan bounds.
  Entry& Of(uint32_t worker, size_t chunk) {
    if (worker >= rows_.size()) rows_.resize(worker + size_t{1});
    if (rows_[worker] == nullptr) rows_[worker] = std::make_unique<Entry[]>(chunks_);
    return rows_[worker][chunk];
  }

  // Empty if the worker has none.
  absl::Span<const Entry> Row(uint32_t worker) const {
    const Entry* const first = Find(worker, 0);
    return {first, first == nullptr ? 0 : chunks_};
  }

  // No worker with this index or a higher one has a row.
  uint32_t end() const { return static_cast<uint32_t>(rows_.size()); }

 private:
  const size_t chunks_;
  // By worker's index.
  std::vector<std::unique_ptr<Entry[]>> rows_;
};

// The entries of one chunk.
template <typename Entry>
class ChunkColumn {
 public:
  // Of a chunk that is alone.
  ChunkColumn() : ChunkColumn(std::make_shared<WorkerRows<Entry>>(1), 0) {}
  // `chunk`: which of the chunks in `rows`, which is not null.
  ChunkColumn(std::shared_ptr<WorkerRows<Entry>> rows, size_t chunk) : rows_(std::move(rows)), chunk_(chunk) {}

  Entry* Find(uint32_t worker) const { return rows_->Find(worker, chunk_); }
  Entry& Of(uint32_t worker) { return rows_->Of(worker, chunk_); }
  uint32_t end() const { return rows_->end(); }

  // Has the entry's memory brought in.
  void Prefetch(uint32_t worker) const {
    const Entry* const entry = Find(worker);
    if (entry == nullptr) return;
    __builtin_prefetch(entry, 1);
    __builtin_prefetch(reinterpret_cast<const char*>(entry + 1) - 1, 1);
  }

 private:
  std::shared_ptr<WorkerRows<Entry>> rows_;
  size_t chunk_;
};

}  // namespace rubato::server

#endif  // RUBATO_SERVER_RULES_WORKER_ROWS_H_
