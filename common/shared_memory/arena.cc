#include "common/shared_memory/arena.h"

#include <algorithm>
#include <utility>

#include "common/status.h"

namespace rubato {
namespace {

// A part of no bytes has an address of its own, too.
size_t RoundUp(size_t bytes) {
  return (std::max<size_t>(bytes, 1) + SharedArena::kAlignment - 1) / SharedArena::kAlignment * SharedArena::kAlignment;
}

}  // namespace

absl::StatusOr<std::shared_ptr<SharedArena>> SharedArena::Create(const std::string& name, size_t bytes) {
  RUBATO_ASSIGN_OR_RETURN(std::shared_ptr<SharedRegion> region, SharedRegion::Create(name, bytes));
  return std::shared_ptr<SharedArena>(new SharedArena(std::move(region)));
}

size_t SharedArena::BytesFor(size_t parts, size_t bytes) { return parts * RoundUp(bytes); }

void* SharedArena::Allocate(size_t bytes) {
  MutexLock lock(mu_);
  const size_t left = region_->size() - used_;
  if (left == 0 || bytes > left) return nullptr;
  void* part = region_->mutable_data() + used_;
  used_ += std::min(RoundUp(bytes), left);
  return part;
}

size_t SharedArena::bytes_left() const {
  MutexLock lock(mu_);
  return region_->size() - used_;
}

}  // namespace rubato
