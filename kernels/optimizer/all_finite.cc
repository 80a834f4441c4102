#include "kernels/optimizer/all_finite.h"

#include <algorithm>

#include "kernels/optimizer/isa.h"

namespace rubato {
namespace {

using UnalignedWord = uint32_t __attribute__((aligned(1), may_alias));

// Long enough that looking at the result between blocks costs nothing.
constexpr int64_t kBlock = 4096;

RUBATO_KERNEL_BODY bool Run(const void* data, int64_t n) {
  constexpr uint32_t kExponent = 0x7f800000u;
  const UnalignedWord* words = static_cast<const UnalignedWord*>(data);
  for (int64_t begin = 0; begin < n; begin += kBlock) {
    const int64_t end = std::min(n, begin + kBlock);
    uint32_t found = 0;
    for (int64_t i = begin; i < end; ++i) found |= (words[i] & kExponent) == kExponent ? 1u : 0u;
    if (found != 0) return false;
  }
  return true;
}

bool RunBaseline(const void* data, int64_t n) { return Run(data, n); }
RUBATO_TARGET_AVX2 bool RunAvx2(const void* data, int64_t n) { return Run(data, n); }

}  // namespace

bool AllFinite(const void* data, int64_t n) {
  static const bool avx2 = BestIsa() == Isa::kAvx2;
  return avx2 ? RunAvx2(data, n) : RunBaseline(data, n);
}

}  // namespace rubato
