#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>

#include "kernels/codec/block_loops.h"
#include "kernels/codec/implementation.h"
#include "kernels/codec/layout.h"
#include "kernels/codec/philox_words.h"

// INT8, per block: float32 scale, then one byte an element, rounded up or down at random.

namespace rubato::codec {
namespace {

constexpr int64_t kBlockBytes = 4 + kBlock;

// The largest scale that a sender writes: 127 times the next float32 is infinite.
constexpr float kMaxScale = 8454659 * 0x1p98f;
static_assert(kMaxScale * 127 <= std::numeric_limits<float>::max());

// Rounds `block` to steps. The arithmetic is in 65536ths of a step: a draw of 16 bits is added and the fraction cut
// off, so the expected value is exactly what was rounded. Element 64 w + 32 h + l takes half h of word w of the group's
// block l.
RUBATO_KERNEL_BODY void RoundToSteps(const float* __restrict block, float parts_per_unit, const PhiloxWords& random,
                                     int8_t* __restrict steps) {
  constexpr int kMostParts = 127 << 16;
  for (int part = 0; part < 8; ++part) {
    const float* __restrict values = block + 32 * part;
    const uint32_t* __restrict words = random.words[part / 2];
    const int shift = 16 * (part % 2);
    for (int l = 0; l < 32; ++l) {
      const float scaled = values[l] * parts_per_unit;
      // To the nearest; the product may have been rounded past the largest step.
      const int nearest = static_cast<int>(scaled + std::copysign(0.5f, scaled));
      const int parts = std::max(std::min(nearest, kMostParts), -kMostParts);
      steps[32 * part + l] = static_cast<int8_t>((parts + static_cast<int>((words[l] >> shift) & 0xffffu)) >> 16);
    }
  }
}

// One block: scale, then kBlock steps.
RUBATO_KERNEL_BODY void EncodeBlock(PhiloxWordsFunction fill, const float* block, uint64_t seed, uint64_t stream,
                                    uint64_t index, uint8_t* out) {
  // Below this 127 * 2^16 / largest could be infinite; such elements become zero.
  constexpr float kSmallest = 0x1p-105f;
  const uint32_t largest_bits = LargestMagnitude(block, kBlock);
  const float largest = std::bit_cast<float>(largest_bits);
  if (largest_bits >= kInfinityBits || largest < kSmallest) {
    const bool finite = largest_bits < kInfinityBits;
    StoreFloat(finite ? 0 : std::numeric_limits<float>::quiet_NaN(), out);
    std::memset(out + 4, 0, kBlock);
    return;
  }
  PhiloxWords random;
  fill(seed, stream, index, random);
  StoreFloat(std::min(largest / 127, kMaxScale), out);
  RoundToSteps(block, (127 << 16) / largest, random, reinterpret_cast<int8_t*>(out + 4));
}

RUBATO_KERNEL_BODY void EncodeAll(PhiloxWordsFunction fill, const float* values, int64_t n, uint64_t seed,
                                  uint64_t stream, uint8_t* out) {
  int64_t index = 0;
  for (; (index + 1) * kBlock <= n; ++index) {
    EncodeBlock(fill, values + index * kBlock, seed, stream, index, out + index * kBlockBytes);
  }
  const int64_t rest = n - index * kBlock;
  if (rest == 0) return;
  float block[kBlock] = {};
  uint8_t encoded[kBlockBytes];
  std::memcpy(block, values + index * kBlock, sizeof(float) * rest);
  EncodeBlock(fill, block, seed, stream, index, encoded);
  std::memcpy(out + index * kBlockBytes, encoded, 4 + rest);
}

// `data` is where the range's first block begins.
RUBATO_KERNEL_BODY void DecodeAll(const uint8_t* __restrict data, int64_t count, float* __restrict out) {
  for (int64_t begin = 0; begin < count; begin += kBlock) {
    const float scale = LoadFloat(data);
    const int8_t* __restrict steps = reinterpret_cast<const int8_t*>(data + 4);
    float* __restrict block = out + begin;
    if (count - begin >= kBlock) {
      for (int i = 0; i < kBlock; ++i) block[i] = scale * steps[i];
    } else {
      for (int64_t i = 0; i < count - begin; ++i) block[i] = scale * steps[i];
    }
    data += kBlockBytes;
  }
}

RUBATO_KERNEL_BODY void Encode(const Encoding& e) {
  EncodeAll(PhiloxWordsOn(e.isa), e.values, e.n, e.seed, e.stream, e.out);
}

RUBATO_KERNEL_BODY void Decode(const uint8_t* data, int64_t begin, int64_t count, float* out) {
  DecodeAll(data + begin / kBlock * kBlockBytes, count, out);
}

// Scales that cannot overflow are looked at alone; a sender makes no others.
RUBATO_KERNEL_BODY bool AllFinite(const uint8_t* data, int64_t n) {
  for (int64_t begin = 0; begin < n; begin += kBlock, data += kBlockBytes) {
    const float scale = LoadFloat(data);
    if (Magnitude(scale) >= kInfinityBits) return false;
    if (std::abs(scale) <= kMaxScale / 2) continue;
    const int64_t count = std::min(kBlock, n - begin);
    const int8_t* steps = reinterpret_cast<const int8_t*>(data + 4);
    for (int64_t i = 0; i < count; ++i) {
      if (Magnitude(scale * steps[i]) >= kInfinityBits) return false;
    }
  }
  return true;
}

RUBATO_CODEC_LOOPS

}  // namespace

constinit const Implementation kInt8 = {kBaseline, kSse42, kAvx2, kAvx512};

}  // namespace rubato::codec
