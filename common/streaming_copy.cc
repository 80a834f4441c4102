#include "common/streaming_copy.h"

#include <cstring>

#if defined(__x86_64__)
#include <emmintrin.h>

#include <algorithm>
#include <cstdint>
#endif

namespace rubato {

#if defined(__x86_64__)

void StreamingCopy(void* to, const void* from, size_t bytes) {
  auto* out = static_cast<char*>(to);
  const auto* in = static_cast<const char*>(from);
  constexpr size_t kLine = 64;
  const size_t head = std::min(bytes, -reinterpret_cast<uintptr_t>(out) % kLine);
  std::memcpy(out, in, head);
  size_t done = head;
  for (; done + kLine <= bytes; done += kLine) {
    const auto* line = reinterpret_cast<const __m128i*>(in + done);
    auto* place = reinterpret_cast<__m128i*>(out + done);
    const __m128i a = _mm_loadu_si128(line), b = _mm_loadu_si128(line + 1);
    const __m128i c = _mm_loadu_si128(line + 2), d = _mm_loadu_si128(line + 3);
    _mm_stream_si128(place, a);
    _mm_stream_si128(place + 1, b);
    _mm_stream_si128(place + 2, c);
    _mm_stream_si128(place + 3, d);
  }
  std::memcpy(out + done, in + done, bytes - done);
}

void FinishStreamingCopies() { _mm_sfence(); }

#else

void StreamingCopy(void* to, const void* from, size_t bytes) { std::memcpy(to, from, bytes); }

void FinishStreamingCopies() {}

#endif

}  // namespace rubato
