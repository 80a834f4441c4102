#include "kernels/cuda/memory_pool.h"

#include <algorithm>
#include <utility>

namespace rubato::cuda {
namespace {

constexpr int64_t kGranularity = 256;

}  // namespace

struct MemoryPool::Block::Shared {
  struct Unused {
    void* address;
    Accesses accesses;
  };

  explicit Shared(Source source) : source(std::move(source)) {}
  ~Shared() { Trim(); }

  void Trim() ABSL_NO_THREAD_SAFETY_ANALYSIS {
    for (const auto& [bytes, block] : unused) source.free(block.address);
    unused.clear();
  }

  const Source source;
  Mutex mu;
  std::multimap<int64_t, Unused> unused ABSL_GUARDED_BY(mu);  // By size.
  bool closed ABSL_GUARDED_BY(mu) = false;
};

MemoryPool::Block::~Block() {
  MutexLock lock(shared_->mu);
  if (shared_->closed) {
    shared_->source.free(address_);
  } else {
    shared_->unused.insert({bytes_, {address_, accesses_}});
  }
}

MemoryPool::MemoryPool(Source source) : shared_(std::make_shared<Block::Shared>(std::move(source))) {}

MemoryPool::~MemoryPool() {
  MutexLock lock(shared_->mu);
  shared_->closed = true;
  shared_->Trim();
}

absl::StatusOr<std::unique_ptr<MemoryPool::Block>> MemoryPool::Allocate(int64_t bytes) {
  const int64_t rounded = std::max<int64_t>(1, (bytes + kGranularity - 1) / kGranularity) * kGranularity;
  MutexLock lock(shared_->mu);
  auto found = shared_->unused.lower_bound(rounded);
  // A block that is much larger is left for somebody who needs it.
  if (found != shared_->unused.end() && found->first <= rounded + rounded / 4) {
    std::unique_ptr<Block> block(new Block(shared_, found->second.address, found->first, found->second.accesses));
    shared_->unused.erase(found);
    return block;
  }
  absl::StatusOr<void*> memory = shared_->source.allocate(rounded);
  if (!memory.ok() && !shared_->unused.empty()) {
    shared_->Trim();
    memory = shared_->source.allocate(rounded);
  }
  if (!memory.ok()) return memory.status();
  return std::unique_ptr<Block>(new Block(shared_, *memory, rounded, Accesses()));
}

int64_t MemoryPool::unused_bytes() const {
  MutexLock lock(shared_->mu);
  int64_t sum = 0;
  for (const auto& [bytes, block] : shared_->unused) sum += bytes;
  return sum;
}

}  // namespace rubato::cuda
