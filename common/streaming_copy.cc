#include "common/streaming_copy.h"

#include <cstring>

#if defined(__x86_64__)
#include <emmintrin.h>

#include <algorithm>
#include <cstdint>
#endif

namespace rubato {

#if defined(__x86_64__)

namespace {

// By lines of the cache, each written as a whole by `store`, 16 bytes at a time.
template <typename Store>
void CopyLines(void* to, const void* from, size_t bytes, Store store) {
  auto* out = static_cast<char*>(to);
  const auto* in = static_cast<const char*>(from);
  constexpr size_t kLine = 64;
  const size_t head = std::min(bytes, -reinterpret_cast<uintptr_t>(out) % kLine);
  if (head > 0) std::memcpy(out, in, head);
  size_t done = head;
  for (; done + kLine <= bytes; done += kLine) {
    const auto* line = reinterpret_cast<const __m128i*>(in + done);
    auto* place = reinterpret_cast<__m128i*>(out + done);
    const __m128i a = _mm_loadu_si128(line), b = _mm_loadu_si128(line + 1);
    const __m128i c = _mm_loadu_si128(line + 2), d = _mm_loadu_si128(line + 3);
    store(place, a);
    store(place + 1, b);
    store(place + 2, c);
    store(place + 3, d);
  }
  if (done < bytes) std::memcpy(out + done, in + done, bytes - done);
}

}  // namespace

void ColdCopy(void* to, const void* from, size_t bytes) {
  // Intel's string instruction writes lines that it has not read.
  static const bool memcpy_is_faster = __builtin_cpu_is("intel") != 0;
  if (memcpy_is_faster) {
    std::memcpy(to, from, bytes);
    return;
  }
  CopyLines(to, from, bytes, [](__m128i* place, __m128i value) { _mm_store_si128(place, value); });
}

void StreamingCopy(void* to, const void* from, size_t bytes) {
  CopyLines(to, from, bytes, [](__m128i* place, __m128i value) { _mm_stream_si128(place, value); });
}

void FinishStreamingCopies() { _mm_sfence(); }

#else

void ColdCopy(void* to, const void* from, size_t bytes) { std::memcpy(to, from, bytes); }

void StreamingCopy(void* to, const void* from, size_t bytes) { std::memcpy(to, from, bytes); }

void FinishStreamingCopies() {}

#endif

}  // namespace rubato
