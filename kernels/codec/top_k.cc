#include "kernels/codec/top_k.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <memory>
#include <numeric>
#include <vector>

#include "kernels/codec/layout.h"
#include "kernels/codec/top_k_loops.h"

namespace rubato::codec {
namespace {

// The passes over all elements, for one instruction set.
struct Passes {
  Found (*collect)(const float* values, const float* residual, int64_t n, uint32_t least, uint32_t* indices);
  void (*add)(const float* values, int64_t n, float* residual);
};

#define RUBATO_TOP_K_PASSES(NAME, TARGET)                                                              \
  TARGET Found Collect##NAME(const float* values, const float* residual, int64_t n, uint32_t least,    \
                             uint32_t* indices) {                                                      \
    return Collect(values, residual, n, least, indices);                                               \
  }                                                                                                    \
  TARGET void Add##NAME(const float* values, int64_t n, float* residual) { Add(values, n, residual); } \
  constexpr Passes k##NAME = {Collect##NAME, Add##NAME};

RUBATO_TOP_K_PASSES(Baseline, )
RUBATO_TOP_K_PASSES(Sse42, RUBATO_TARGET_SSE42)
RUBATO_TOP_K_PASSES(Avx2, RUBATO_TARGET_AVX2)
RUBATO_TOP_K_PASSES(Avx512, RUBATO_TARGET_AVX512)

#undef RUBATO_TOP_K_PASSES

const Passes& PassesOn(Isa isa) { return *ForIsa(isa, &kBaseline, &kSse42, &kAvx2, &kAvx512); }

// A magnitude, as bits, that a little more than `count` of the n elements are likely to reach, from a sample. It makes
// the search fast and has no influence on its result.
uint32_t GuessThreshold(const float* values, const float* residual, int64_t n, int64_t count) {
  constexpr int64_t kSample = 2048;
  if (n < 4 * kSample) return 0;
  const double expected = static_cast<double>(count) / static_cast<double>(n) * kSample;
  // Four standard deviations, and some for small counts.
  const int64_t rank = static_cast<int64_t>(expected + 4 * std::sqrt(expected) + 8);
  if (rank >= kSample) return 0;
  std::vector<uint32_t> sample(kSample);
  for (int64_t i = 0; i < kSample; ++i) {
    // Multiples of the golden ratio, modulo 1: evenly spread, and not along a matrix's columns.
    const uint64_t share = static_cast<uint32_t>(i * 2654435769u);
    const int64_t at = static_cast<int64_t>(share * static_cast<uint64_t>(n) >> 32);
    sample[i] = Magnitude(values[at] + residual[at]);
  }
  std::nth_element(sample.begin(), sample.begin() + rank, sample.end(), std::greater<uint32_t>());
  return sample[rank];
}

// The largest `count` of some magnitudes: all above `threshold`, and as many that equal it as are needed.
struct Cut {
  uint32_t threshold;
  int64_t equal;
};

// A radix selection, from the highest bits down. 0 < count <= n.
Cut FindCut(const uint32_t* magnitudes, int64_t n, int64_t count) {
  constexpr int kShifts[] = {20, 10, 0};
  constexpr uint32_t kDigits = 1 << 11;
  uint32_t prefix = 0, prefix_mask = 0;
  int64_t needed = count;
  for (int shift : kShifts) {
    const uint32_t digit_mask = shift == 20 ? kDigits - 1 : kDigits / 2 - 1;
    std::vector<int64_t> with_digit(kDigits, 0);
    for (int64_t i = 0; i < n; ++i) {
      if ((magnitudes[i] & prefix_mask) == prefix) ++with_digit[(magnitudes[i] >> shift) & digit_mask];
    }
    uint32_t digit = digit_mask;
    for (; with_digit[digit] < needed; --digit) needed -= with_digit[digit];
    prefix |= digit << shift;
    prefix_mask |= digit_mask << shift;
  }
  return {prefix, needed};
}

// Moves the `count` of n indices with the largest magnitudes of values + residual to the front, in their order. Without
// branches, as about every other one is taken.
void KeepLargest(const float* values, const float* residual, int64_t n, int64_t count, uint32_t* indices) {
  const std::unique_ptr<uint32_t[]> magnitudes(new uint32_t[n]);
  for (int64_t i = 0; i < n; ++i) magnitudes[i] = Magnitude(values[indices[i]] + residual[indices[i]]);
  Cut cut = FindCut(magnitudes.get(), n, count);
  int64_t taken = 0;
  for (int64_t i = 0; i < n; ++i) {
    indices[taken] = indices[i];
    const bool equal = magnitudes[i] == cut.threshold && cut.equal > 0;
    cut.equal -= equal ? 1 : 0;
    taken += magnitudes[i] > cut.threshold || equal ? 1 : 0;
  }
}

}  // namespace

int64_t EncodeTopK(Isa isa, int64_t count, const float* values, int64_t n, float* residual, uint8_t* out) {
  StoreU32(static_cast<uint32_t>(count), out);
  if (count == 0) return TopKBytes(0);
  const Passes& passes = PassesOn(isa);
  const uint32_t least = GuessThreshold(values, residual, n, count);
  // Not filled in: only what is used takes memory.
  const std::unique_ptr<uint32_t[]> indices(new uint32_t[n + 2]);
  Found found = passes.collect(values, residual, n, least, indices.get());
  if (found.count < count) {
    std::iota(indices.get(), indices.get() + n, 0u);
    found.count = n;
  }
  KeepLargest(values, residual, found.count, count, indices.get());
  for (int64_t i = 0; i < count; ++i) {
    StoreU32(indices[i], out + 4 + 4 * i);
    const float sum = values[indices[i]] + residual[indices[i]];
    // Which NaN comes of a NaN depends on the processor.
    StoreFloat(std::isnan(sum) ? std::numeric_limits<float>::quiet_NaN() : sum, out + 4 + 4 * (count + i));
  }
  if (found.finite) {
    passes.add(values, n, residual);
    for (int64_t i = 0; i < count; ++i) residual[indices[i]] = 0;
  }
  return TopKBytes(count);
}

void DecodeTopK(const uint8_t* data, int64_t begin, int64_t count, float* out) {
  std::memset(out, 0, sizeof(float) * count);
  const int64_t sent = LoadU32(data);
  const UnalignedU32* indices = reinterpret_cast<const UnalignedU32*>(data + 4);
  const UnalignedFloat* values = reinterpret_cast<const UnalignedFloat*>(data + 4 + 4 * sent);
  // The first index from `begin` on. By hand, because the library's search forgets that these lie at any address.
  int64_t i = 0;
  for (int64_t end = sent; i < end;) {
    const int64_t middle = i + (end - i) / 2;
    if (indices[middle] < begin) {
      i = middle + 1;
    } else {
      end = middle;
    }
  }
  for (; i < sent && indices[i] < begin + count; ++i) out[indices[i] - begin] = values[i];
}

}  // namespace rubato::codec
