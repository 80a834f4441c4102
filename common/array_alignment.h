#ifndef RUBATO_COMMON_ARRAY_ALIGNMENT_H_
#define RUBATO_COMMON_ARRAY_ALIGNMENT_H_

#include <cstddef>

namespace rubato {

// Arrays begin at a multiple of 64 bytes, a cache line. Large ones begin at a disk's block, which is a page: in memory
// and in the files of checkpoints, so that a disk takes them from where they are.
inline constexpr size_t kLargeArrayBytes = size_t{64} << 10;
inline constexpr size_t kDiskBlock = 4096;

inline constexpr size_t ArrayAlignment(size_t bytes) { return bytes < kLargeArrayBytes ? 64 : kDiskBlock; }

inline constexpr size_t RoundUpTo(size_t bytes, size_t alignment) {
  return (bytes + alignment - 1) / alignment * alignment;
}

}  // namespace rubato

#endif  // RUBATO_COMMON_ARRAY_ALIGNMENT_H_
