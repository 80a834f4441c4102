#include "common/shared_memory/arena.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/status.h"

namespace rubato {
namespace {

// What a part takes up. One of no bytes has an address of its own, too.
size_t Room(size_t bytes) { return RoundUpTo(std::max<size_t>(bytes, 1), ArrayAlignment(bytes)); }

}  // namespace

absl::StatusOr<std::shared_ptr<SharedArena>> SharedArena::Create(const std::string& name, size_t bytes) {
  RUBATO_ASSIGN_OR_RETURN(std::shared_ptr<SharedRegion> region, SharedRegion::Create(name, bytes));
  return std::shared_ptr<SharedArena>(new SharedArena(std::move(region)));
}

absl::StatusOr<std::shared_ptr<SharedArena>> SharedArena::Wrap(std::shared_ptr<SharedRegion> region, size_t used) {
  if (used > region->size()) {
    return absl::InvalidArgumentError(
        absl::StrCat(used, " bytes of shared memory are in use, and it has ", region->size()));
  }
  const size_t begin = std::min(RoundUpTo(used, kAlignment), region->size());
  return std::shared_ptr<SharedArena>(new SharedArena(std::move(region), begin));
}

size_t SharedArena::BytesFor(size_t parts, size_t bytes) {
  // Small parts among large ones may leave each of these a gap before it.
  return parts * (Room(bytes) + ArrayAlignment(bytes) - kAlignment);
}

void* SharedArena::Allocate(size_t bytes) {
  MutexLock lock(mu_);
  const size_t begin = RoundUpTo(used_, ArrayAlignment(bytes));
  if (begin >= region_->size() || bytes > region_->size() - begin) return nullptr;
  void* part = region_->mutable_data() + begin;
  used_ = begin + std::min(Room(bytes), region_->size() - begin);
  return part;
}

size_t SharedArena::bytes_left() const {
  MutexLock lock(mu_);
  return region_->size() - used_;
}

}  // namespace rubato
