#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>
#include <limits>

#include "kernels/codec/block_loops.h"
#include "kernels/codec/implementation.h"
#include "kernels/codec/layout.h"

// ONE_BIT, per block: float32 mean of the elements that are not negative, float32 mean magnitude of those that are,
// then one bit an element, lowest first, padded with zeros to a byte.

namespace rubato::codec {
namespace {

constexpr int64_t kBlockBytes = 8 + kBlock / 8;

// All bits set for an element with a sign, which is what "negative" means here: -0 is. Not a comparison, which
// compilers turn into a branch if the instruction set cannot blend.
RUBATO_KERNEL_BODY uint32_t SignMask(float value) { return static_cast<uint32_t>(std::bit_cast<int32_t>(value) >> 31); }

// Sums of the elements that are not negative and of the magnitudes of those that are, both divided by kBlock so that
// they are finite. In a fixed order, the same for every width of vectors: 32 sums of 8 elements, then pairs.
struct SignSums {
  float positive;
  float negative;
};
RUBATO_KERNEL_BODY SignSums SumBySign(const float* __restrict block) {
  constexpr float kShare = 1.0f / kBlock;
  alignas(64) float positive[32], negative[32];
  for (int l = 0; l < 32; ++l) {
    float up = 0, down = 0;
    for (int group = 0; group < 8; ++group) {
      const float share = block[32 * group + l] * kShare;
      const uint32_t bits = std::bit_cast<uint32_t>(share), sign_mask = SignMask(share);
      up += std::bit_cast<float>(bits & ~sign_mask);
      down += std::bit_cast<float>(bits & sign_mask & kMagnitudeBits);
    }
    positive[l] = up;
    negative[l] = down;
  }
  for (int half = 16; half > 0; half /= 2) {
    for (int l = 0; l < half; ++l) {
      positive[l] += positive[l + half];
      negative[l] += negative[l + half];
    }
  }
  return {positive[0], negative[0]};
}

// The mean of `count` elements whose sum / kBlock is given. Finite.
RUBATO_KERNEL_BODY float MeanOf(float sum_share, int count) {
  if (count == 0) return 0;
  return std::min(sum_share * (static_cast<float>(kBlock) / static_cast<float>(count)),
                  std::numeric_limits<float>::max());
}

// out[i] = bit i of `bits` set ? negative : positive.
RUBATO_KERNEL_BODY void SelectBySign(uint32_t bits, float positive, float negative, float* __restrict out) {
  for (int i = 0; i < kMaskBits; ++i) out[i] = (bits & kMaskTable.bit[i]) != 0 ? negative : positive;
}

// `block` holds values + residual; the `count` first are the chunk's and the others zero. `lost` becomes the block less
// what was written, unless the block is not finite, which is returned.
RUBATO_KERNEL_BODY bool EncodeBlock(const float* __restrict block, int count, float* __restrict lost,
                                    uint8_t* __restrict out) {
  if (LargestMagnitude(block, kBlock) >= kInfinityBits) {
    StoreFloat(std::numeric_limits<float>::quiet_NaN(), out);
    StoreFloat(std::numeric_limits<float>::quiet_NaN(), out + 4);
    std::memset(out + 8, 0, kBlock / 8);
    return false;
  }
  uint32_t signs[kBlock / kMaskBits];
  int negatives = 0;
  for (int group = 0; group < kBlock / kMaskBits; ++group) {
    uint32_t bits = 0;
    const float* __restrict values = block + group * kMaskBits;
    for (int i = 0; i < kMaskBits; ++i) bits |= SignMask(values[i]) & kMaskTable.bit[i];
    signs[group] = bits;
    negatives += std::popcount(bits);
  }
  const SignSums sums = SumBySign(block);
  const float positive = MeanOf(sums.positive, count - negatives), negative = MeanOf(sums.negative, negatives);
  for (int group = 0; group < kBlock / kMaskBits; ++group) {
    float sent[kMaskBits];
    SelectBySign(signs[group], positive, -negative, sent);
    for (int i = 0; i < kMaskBits; ++i) lost[group * kMaskBits + i] = block[group * kMaskBits + i] - sent[i];
  }
  StoreFloat(positive, out);
  StoreFloat(negative, out + 4);
  std::memcpy(out + 8, signs, kBlock / 8);
  return true;
}

RUBATO_KERNEL_BODY void EncodeAll(const float* __restrict values, int64_t n, float* __restrict residual,
                                  uint8_t* __restrict out) {
  alignas(64) float block[kBlock], lost[kBlock];
  for (int64_t begin = 0; begin < n; begin += kBlock, out += kBlockBytes) {
    const int count = static_cast<int>(std::min(kBlock, n - begin));
    if (count == kBlock) {
      for (int i = 0; i < kBlock; ++i) block[i] = values[begin + i] + residual[begin + i];
      if (EncodeBlock(block, count, lost, out)) std::memcpy(residual + begin, lost, sizeof(lost));
      continue;
    }
    uint8_t encoded[kBlockBytes];
    std::memset(block, 0, sizeof(block));
    for (int i = 0; i < count; ++i) block[i] = values[begin + i] + residual[begin + i];
    if (EncodeBlock(block, count, lost, encoded)) std::memcpy(residual + begin, lost, sizeof(float) * count);
    std::memcpy(out, encoded, 8 + (count + 7) / 8);
  }
}

// `data` is where the range's first block begins.
RUBATO_KERNEL_BODY void DecodeAll(const uint8_t* __restrict data, int64_t count, float* __restrict out) {
  for (int64_t begin = 0; begin < count; begin += kBlock, data += kBlockBytes) {
    const float positive = LoadFloat(data), negative = -LoadFloat(data + 4);
    const int64_t end = std::min(count, begin + kBlock);
    int64_t at = begin;
    const uint8_t* signs = data + 8;
    for (; at + kMaskBits <= end; at += kMaskBits, signs += 4) {
      SelectBySign(LoadU32(signs), positive, negative, out + at);
    }
    for (int64_t i = at; i < end; ++i) out[i] = (signs[(i - at) / 8] >> ((i - at) % 8)) & 1 ? negative : positive;
  }
}

RUBATO_KERNEL_BODY void Encode(const Encoding& e) { EncodeAll(e.values, e.n, e.residual, e.out); }

RUBATO_KERNEL_BODY void Decode(const uint8_t* data, int64_t begin, int64_t count, float* out) {
  DecodeAll(data + begin / kBlock * kBlockBytes, count, out);
}

RUBATO_KERNEL_BODY bool AllFinite(const uint8_t* data, int64_t n) {
  for (int64_t begin = 0; begin < n; begin += kBlock, data += kBlockBytes) {
    const uint32_t larger = std::max(LoadU32(data) & kMagnitudeBits, LoadU32(data + 4) & kMagnitudeBits);
    if (larger >= kInfinityBits) return false;
  }
  return true;
}

RUBATO_CODEC_LOOPS

absl::Status Check(const uint8_t* data, int64_t bytes, int64_t n) {
  if (n % 8 == 0 || data[bytes - 1] >> (n % 8) == 0) return absl::OkStatus();
  return absl::InvalidArgumentError("payload: bits after the last element are not zero");
}

}  // namespace

constinit const Implementation kOneBit = {kBaseline, kSse42, kAvx2, kAvx512, Check};

}  // namespace rubato::codec
