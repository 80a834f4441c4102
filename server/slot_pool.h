#ifndef RUBATO_SERVER_SLOT_POOL_H_
#define RUBATO_SERVER_SLOT_POOL_H_

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/time/time.h"
#include "common/float_buffer.h"
#include "common/mutex.h"

namespace rubato::server {

// The arrays of a server's optimizer slots. An update of a chunk that a checkpoint still holds writes to other arrays,
// and those that the checkpoint is done with come back here. So that a checkpoint does not need a second copy of all
// slots, an update may wait for the disk: until an array comes back, and for kLongestWait at most of each checkpoint;
// then there is one more array for good. Large arrays lie in blocks of memory that the system is asked to make of large
// pages, which take a disk that reads them half the kernel's work. Thread-safe.
class SlotPool : public std::enable_shared_from_this<SlotPool> {
 public:
  // Of all updates together, while one checkpoint is written. If the disk takes longer, training has waited once, and
  // the arrays made then are there for the checkpoints after it.
  static constexpr absl::Duration kLongestWait = absl::Milliseconds(400);

  static std::shared_ptr<SlotPool> Create() { return std::shared_ptr<SlotPool>(new SlotPool()); }

  // An array of `size` floats of any values, which comes back when nobody holds it.
  FloatBuffer::Ptr Take(int64_t size);
  // Makes arrays that are there when they are needed.
  void Reserve(int64_t size, int64_t count);
  // A checkpoint that holds slots is being written, and lets go of them one by one; or it is not any more.
  void BeginReturns();
  void EndReturns();

  // Of all arrays, held or not.
  int64_t bytes();

 private:
  // Memory that arrays are cut from.
  struct Block {
    struct Free {
      void operator()(char* memory) const { std::free(memory); }
    };
    std::unique_ptr<char, Free> memory;
    size_t bytes = 0;
    size_t used = 0;
  };

  SlotPool() = default;
  std::unique_ptr<FloatBuffer> Make(int64_t size) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // So many bytes at a disk's block. Null: there is no memory.
  char* Cut(size_t bytes) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void Return(std::unique_ptr<FloatBuffer> array);

  Mutex mu_;
  CondVar returned_;
  // They stay as long as the pool. The last one has room.
  std::vector<Block> blocks_ ABSL_GUARDED_BY(mu_);
  // By size.
  absl::flat_hash_map<int64_t, std::vector<std::unique_ptr<FloatBuffer>>> free_ ABSL_GUARDED_BY(mu_);
  int64_t bytes_ ABSL_GUARDED_BY(mu_) = 0;
  // What is left of kLongestWait; zero if nothing comes back.
  absl::Duration wait_left_ ABSL_GUARDED_BY(mu_);
};

}  // namespace rubato::server

#endif  // RUBATO_SERVER_SLOT_POOL_H_
