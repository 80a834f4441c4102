#ifndef RUBATO_COMMON_SHARED_MEMORY_ARENA_H_
#define RUBATO_COMMON_SHARED_MEMORY_ARENA_H_

#include <cstddef>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "common/array_alignment.h"
#include "common/mutex.h"
#include "common/shared_memory/region.h"

namespace rubato {

// Hands out parts of a shared region of this process's own, one after another. A part is never given back by itself:
// all of them live as long as the arena, so whoever uses one holds the arena. Thread-safe.
//
//   RUBATO_ASSIGN_OR_RETURN(std::shared_ptr<SharedArena> arena, SharedArena::Create("server 0", bytes));
//   void* part = arena->Allocate(length * sizeof(float));
//   auto buffer = part == nullptr ? FloatBuffer::Allocate(length)
//                                 : FloatBuffer::Wrap(static_cast<float*>(part), length, arena);
class SharedArena {
 public:
  // Every part starts at a multiple of it and takes up a multiple of it; large ones of what ArrayAlignment says.
  static constexpr size_t kAlignment = ArrayAlignment(0);

  // Fails as SharedRegion::Create does.
  static absl::StatusOr<std::shared_ptr<SharedArena>> Create(const std::string& name, size_t bytes);

  // Hands out what comes after the first `used` bytes of a region, which have a use already. InvalidArgument: it has
  // fewer.
  static absl::StatusOr<std::shared_ptr<SharedArena>> Wrap(std::shared_ptr<SharedRegion> region, size_t used);

  // What parts of `bytes` bytes each need of an arena, all together. The caller sees to it that this fits a size_t.
  static size_t BytesFor(size_t parts, size_t bytes);

  // `bytes` zeros that belong to the caller alone, or null when that many are not left.
  void* Allocate(size_t bytes) ABSL_LOCKS_EXCLUDED(mu_);

  const SharedRegion& region() const { return *region_; }
  // To be offered to peers.
  const std::shared_ptr<SharedRegion>& shared_region() const { return region_; }
  // Bytes that Allocate has not handed out yet.
  size_t bytes_left() const ABSL_LOCKS_EXCLUDED(mu_);

 private:
  explicit SharedArena(std::shared_ptr<SharedRegion> region, size_t used = 0)
      : region_(std::move(region)), used_(used) {}

  const std::shared_ptr<SharedRegion> region_;
  mutable Mutex mu_;
  // A multiple of kAlignment, or all of the region.
  size_t used_ ABSL_GUARDED_BY(mu_);
};

}  // namespace rubato

#endif  // RUBATO_COMMON_SHARED_MEMORY_ARENA_H_
