#include "kernels/optimizer/all_finite.h"

#include <algorithm>

#include "kernels/optimizer/isa.h"

namespace rubato {
namespace {

using UnalignedWord __attribute__((aligned(1), may_alias)) = uint32_t;

// Long enough that looking at the result between blocks costs nothing.
constexpr int64_t kBlock = 256;

// What has just arrived is in no near cache, and a processor looks ahead within a page of 4 KiB only. So this many
// words ahead are asked for.
constexpr int64_t kAhead = 1024;
constexpr int64_t kLine = 16;

RUBATO_KERNEL_BODY bool Run(const void* data, int64_t n) {
  constexpr uint32_t kExponent = 0x7f800000u;
  const UnalignedWord* words = static_cast<const UnalignedWord*>(data);
  for (int64_t begin = 0; begin < n; begin += kBlock) {
    const int64_t end = std::min(n, begin + kBlock);
    for (int64_t i = begin + kAhead; i < std::min(n, end + kAhead); i += kLine) __builtin_prefetch(words + i);
    uint32_t found = 0;
    for (int64_t i = begin; i < end; ++i) found |= (words[i] & kExponent) == kExponent ? 1u : 0u;
    if (found != 0) return false;
  }
  return true;
}

bool RunBaseline(const void* data, int64_t n) { return Run(data, n); }
RUBATO_TARGET_SSE42 bool RunSse42(const void* data, int64_t n) { return Run(data, n); }
RUBATO_TARGET_AVX2 bool RunAvx2(const void* data, int64_t n) { return Run(data, n); }
RUBATO_TARGET_AVX512 bool RunAvx512(const void* data, int64_t n) { return Run(data, n); }

}  // namespace

bool AllFiniteOn(Isa isa, const void* data, int64_t n) {
  return ForIsa(isa, RunBaseline, RunSse42, RunAvx2, RunAvx512)(data, n);
}

bool AllFinite(const void* data, int64_t n) {
  static const Isa best = BestIsa();
  return AllFiniteOn(best, data, n);
}

bool AllFinite(absl::Span<const ByteSpan> pieces) {
  constexpr size_t kElement = sizeof(float);
  // The beginning of an element that goes on in the next piece.
  uint8_t cut[kElement];
  size_t cut_bytes = 0;
  for (ByteSpan piece : pieces) {
    if (cut_bytes > 0) {
      const size_t taken = std::min(kElement - cut_bytes, piece.size());
      std::copy_n(piece.data(), taken, cut + cut_bytes);
      cut_bytes += taken;
      piece.remove_prefix(taken);
      if (cut_bytes < kElement) continue;
      if (!AllFinite(cut, 1)) return false;
    }
    if (!AllFinite(piece.data(), static_cast<int64_t>(piece.size() / kElement))) return false;
    cut_bytes = piece.size() % kElement;
    std::copy_n(piece.end() - cut_bytes, cut_bytes, cut);
  }
  return true;
}

}  // namespace rubato
