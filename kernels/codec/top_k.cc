#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <memory>
#include <numeric>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/codec_traits.h"
#include "kernels/codec/implementation.h"
#include "kernels/codec/layout.h"
#include "kernels/codec/top_k_loops.h"
#include "kernels/optimizer/all_finite.h"

// TOP_K: uint32 count, the indices, the values of the elements of largest magnitude.

namespace rubato::codec {
namespace {

int64_t Bytes(int64_t count) { return 4 + 8 * count; }

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

// Takes up to 8 n bytes meanwhile, and time linear in n whatever the values.
void Encode(const Encoding& e) {
  const int64_t count = TopKCount(e.fraction, e.n);
  StoreU32(static_cast<uint32_t>(count), e.out);
  if (count == 0) return;
  const Passes& passes = PassesOn(e.isa);
  const uint32_t least = GuessThreshold(e.values, e.residual, e.n, count);
  // Not filled in: only what is used takes memory.
  const std::unique_ptr<uint32_t[]> indices(new uint32_t[e.n + 2]);
  Found found = passes.collect(e.values, e.residual, e.n, least, indices.get());
  if (found.count < count) {
    std::iota(indices.get(), indices.get() + e.n, 0u);
    found.count = e.n;
  }
  KeepLargest(e.values, e.residual, found.count, count, indices.get());
  for (int64_t i = 0; i < count; ++i) {
    StoreU32(indices[i], e.out + 4 + 4 * i);
    const float sum = e.values[indices[i]] + e.residual[indices[i]];
    // Which NaN comes of a NaN depends on the processor.
    StoreFloat(std::isnan(sum) ? std::numeric_limits<float>::quiet_NaN() : sum, e.out + 4 + 4 * (count + i));
  }
  if (found.finite) {
    passes.add(e.values, e.n, e.residual);
    for (int64_t i = 0; i < count; ++i) e.residual[indices[i]] = 0;
  }
}

void Decode(const uint8_t* data, int64_t begin, int64_t count, float* out) {
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

bool AllSentFinite(const uint8_t* data, int64_t) {
  const int64_t sent = LoadU32(data);
  return AllFinite(data + 4 + 4 * sent, sent);
}

absl::Status Invalid(absl::string_view message) { return absl::InvalidArgumentError(message); }

absl::Status Check(const uint8_t* data, int64_t bytes, int64_t n) {
  if (bytes < Bytes(0)) {
    return Invalid(absl::StrCat("encoded_bytes: ", bytes, " where TOP_K takes 4 or more"));
  }
  const int64_t sent = LoadU32(data);
  if (sent > n) return Invalid(absl::StrCat("payload: ", sent, " elements where the chunk has ", n));
  if (bytes != Bytes(sent)) {
    return Invalid(
        absl::StrCat("encoded_bytes: ", bytes, " where TOP_K takes ", Bytes(sent), " for ", sent, " elements"));
  }
  int64_t before = -1;
  for (int64_t i = 0; i < sent; ++i) {
    const int64_t index = LoadU32(data + 4 + 4 * i);
    if (index <= before) {
      return Invalid(absl::StrCat("payload: index ", index, " at ", i, " is not above the one before, ", before));
    }
    if (index >= n) return Invalid(absl::StrCat("payload: index ", index, " at ", i, " where the chunk has ", n));
    before = index;
  }
  return absl::OkStatus();
}

// Encode's passes are compiled for each instruction set, and the rest follows single elements.
constexpr Loops kLoops = {Encode, Decode, AllSentFinite};

}  // namespace

constinit const Implementation kTopK = {kLoops, kLoops, kLoops, kLoops, Check};

}  // namespace rubato::codec
