#ifndef RUBATO_COMMON_CONFIG_LIMITS_H_
#define RUBATO_COMMON_CONFIG_LIMITS_H_

#include <cstdint>

namespace rubato {

// The largest staleness bound of SSP, in steps.
inline constexpr int64_t kMaxStalenessBound = int64_t{1} << 20;

// The largest batch.
inline constexpr int64_t kMaxBatch = int64_t{1} << 20;

// The largest chunk, in bytes.
inline constexpr uint64_t kMaxChunkBytes = uint64_t{64} << 20;

}  // namespace rubato

#endif  // RUBATO_COMMON_CONFIG_LIMITS_H_
