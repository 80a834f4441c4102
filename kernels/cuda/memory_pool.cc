#include "kernels/cuda/memory_pool.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace rubato::cuda {
namespace {

constexpr int64_t kGranularity = 256;

}  // namespace

struct MemoryPool::Block::Shared {
  struct Unused {
    void* address;
    Accesses accesses;
  };
  struct Reserve {
    char* address;
    int64_t bytes, given;
  };

  explicit Shared(Source source) : source(std::move(source)) {}
  ~Shared() {
    Trim();
    for (const Reserve& reserve : reserves) source.free(reserve.address);
  }

  bool IsReserved(void* address) ABSL_NO_THREAD_SAFETY_ANALYSIS {
    return std::any_of(reserves.begin(), reserves.end(), [&](const Reserve& reserve) {
      return address >= reserve.address && address < reserve.address + reserve.bytes;
    });
  }

  // Gives back what did not come from a reserve.
  void Trim() ABSL_NO_THREAD_SAFETY_ANALYSIS {
    for (auto block = unused.begin(); block != unused.end();) {
      if (IsReserved(block->second.address)) {
        ++block;
        continue;
      }
      source.free(block->second.address);
      block = unused.erase(block);
    }
  }

  absl::StatusOr<void*> Ask(int64_t bytes) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu) {
    absl::StatusOr<void*> memory = source.allocate(bytes);
    if (memory.ok() || unused.empty()) return memory;
    Trim();
    return source.allocate(bytes);
  }

  // From a reserve, or null.
  void* Take(int64_t bytes) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu) {
    for (Reserve& reserve : reserves) {
      if (reserve.bytes - reserve.given < bytes) continue;
      reserve.given += bytes;
      return reserve.address + reserve.given - bytes;
    }
    return nullptr;
  }

  const Source source;
  Mutex mu;
  std::multimap<int64_t, Unused> unused ABSL_GUARDED_BY(mu);  // By size.
  std::vector<Reserve> reserves ABSL_GUARDED_BY(mu);
  bool closed ABSL_GUARDED_BY(mu) = false;
};

MemoryPool::Block::~Block() {
  MutexLock lock(shared_->mu);
  if (!shared_->closed) {
    shared_->unused.insert({bytes_, {address_, accesses_}});
  } else if (!shared_->IsReserved(address_)) {
    shared_->source.free(address_);
  }
}

MemoryPool::MemoryPool(Source source) : shared_(std::make_shared<Block::Shared>(std::move(source))) {}

MemoryPool::~MemoryPool() {
  MutexLock lock(shared_->mu);
  shared_->closed = true;
  shared_->Trim();
}

absl::Status MemoryPool::Reserve(int64_t bytes) {
  if (bytes == 0) return absl::OkStatus();
  MutexLock lock(shared_->mu);
  absl::StatusOr<void*> memory = shared_->Ask(bytes);
  if (memory.ok()) shared_->reserves.push_back({static_cast<char*>(*memory), bytes, 0});
  return memory.status();
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
  absl::StatusOr<void*> memory = shared_->Take(rounded);
  if (*memory == nullptr) memory = shared_->Ask(rounded);
  if (!memory.ok()) return memory.status();
  return std::unique_ptr<Block>(new Block(shared_, *memory, rounded, Accesses()));
}

int64_t MemoryPool::unused_bytes() const {
  MutexLock lock(shared_->mu);
  int64_t sum = 0;
  for (const auto& [bytes, block] : shared_->unused) sum += bytes;
  for (const auto& reserve : shared_->reserves) sum += reserve.bytes - reserve.given;
  return sum;
}

}  // namespace rubato::cuda
