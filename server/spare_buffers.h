#ifndef RUBATO_SERVER_SPARE_BUFFERS_H_
#define RUBATO_SERVER_SPARE_BUFFERS_H_

#include <cstddef>
#include <utility>
#include <vector>

#include "common/float_buffer.h"

namespace rubato::server {

// Buffers of a chunk that somebody may still read, and that are used again once nobody does. Not thread-safe.
class SpareBuffers {
 public:
  // The youngest from now on.
  void Add(FloatBuffer::Ptr buffer) {
    buffers_.insert(buffers_.begin() + static_cast<std::ptrdiff_t>(oldest_), std::move(buffer));
    oldest_ = (oldest_ + 1) % buffers_.size();
  }

  // Puts `held`, which somebody reads, in the place of one that nobody reads any more. Returns that one; null when
  // there is none. A look at one that another of a hundred workers has is a miss of the cache, so those are looked at
  // first that are likely to be free: the youngest, which is still in the caches, where few workers push in turns, and
  // the oldest where all do; then inwards from both ends.
  FloatBuffer::Ptr Exchange(FloatBuffer::Ptr held) {
    const size_t size = buffers_.size();
    for (size_t i = 0; i < (size + 1) / 2; ++i) {
      const size_t youngest = (oldest_ + size - 1) % size;
      FloatBuffer::Ptr& young = buffers_[(youngest + size - i) % size];
      if (young.use_count() == 1) {
        std::swap(young, buffers_[youngest]);
        return std::exchange(buffers_[youngest], std::move(held));
      }
      FloatBuffer::Ptr& old = buffers_[(oldest_ + i) % size];
      if (old.use_count() == 1) {
        std::swap(old, buffers_[oldest_]);
        FloatBuffer::Ptr free = std::exchange(buffers_[oldest_], std::move(held));
        oldest_ = (oldest_ + 1) % size;
        return free;
      }
    }
    Add(std::move(held));
    return nullptr;
  }

  size_t size() const { return buffers_.size(); }

 private:
  // In about the order in which they came, from the oldest to the end, and then from the front.
  std::vector<FloatBuffer::Ptr> buffers_;
  size_t oldest_ = 0;
};

}  // namespace rubato::server

#endif  // RUBATO_SERVER_SPARE_BUFFERS_H_
