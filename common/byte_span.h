#ifndef RUBATO_COMMON_BYTE_SPAN_H_
#define RUBATO_COMMON_BYTE_SPAN_H_

#include <cstddef>
#include <cstdint>

#include "absl/types/span.h"

namespace rubato {

// Bytes that somebody else keeps alive, at any address and of any length, also none: a piece of a message, of shared
// memory or of an array.
using ByteSpan = absl::Span<const uint8_t>;

// The bytes of `count` float32.
inline ByteSpan BytesOf(const float* values, int64_t count) {
  return {reinterpret_cast<const uint8_t*>(values), static_cast<size_t>(count) * sizeof(float)};
}

}  // namespace rubato

#endif  // RUBATO_COMMON_BYTE_SPAN_H_
