#include "kernels/optimizer/gradient_norms.h"

#include <algorithm>
#include <tuple>

#include "common/random.h"
#include "kernels/optimizer/gradient_reader.h"
#include "kernels/optimizer/reduce_loops.h"

namespace rubato {
namespace {

// One random sign for each 64 elements of a block (splitmix64).
constexpr int kSketch = static_cast<int>(std::tuple_size_v<GradientSketch>);
constexpr int kSigns = static_cast<int>(update_loops::kBlock) / kSketch;
static_assert(update_loops::kBlock % kSketch == 0);

uint64_t SignBits(uint64_t stream, int64_t block) {
  return MixBits(stream + static_cast<uint64_t>(block + 1) * 0x9e3779b97f4a7c15u);
}

RUBATO_KERNEL_BODY void AddToSketch(const void* data, int n, const float* signs, float* __restrict sketch) {
  const UnalignedFloat* d = static_cast<const UnalignedFloat*>(data);
  for (int part = 0; part * kSketch < n; ++part) {
    const UnalignedFloat* __restrict from = d + part * kSketch;
    const float sign = signs[part];
    const int length = std::min(kSketch, n - part * kSketch);
    for (int i = 0; i < length; ++i) sketch[i] += sign * from[i];
  }
}

// One call of MeasureNorms.
struct Call {
  const EncodedGradient* contributions;
  int count;
  GradientReader* readers;
  int64_t n;
  uint64_t stream;
  GradientNorms* norms;
};

RUBATO_KERNEL_BODY void Run(const Call& call) {
  alignas(64) float sum[update_loops::kBlock];
  alignas(64) float scratch[update_loops::kBlock];
  float signs[kSigns];
  for (int64_t offset = 0; offset < call.n; offset += update_loops::kBlock) {
    const int length = static_cast<int>(std::min(update_loops::kBlock, call.n - offset));
    const uint64_t bits = SignBits(call.stream, offset / update_loops::kBlock);
    for (int part = 0; part < kSigns; ++part) signs[part] = (bits >> part & 1) != 0 ? -1.0f : 1.0f;
    for (int k = 0; k < call.count; ++k) {
      const void* data = call.readers[k].Next(length, scratch);
      call.norms->squares[k] += update_loops::SumOfSquares(data, length);
      AddToSketch(data, length, signs, call.norms->sketches[k].data());
      const float weight = call.contributions[k].weight;
      k == 0 ? update_loops::AddOne<false>(data, weight, length, sum)
             : update_loops::AddOne<true>(data, weight, length, sum);
    }
    if (call.count > 0) call.norms->sum_square += update_loops::SumOfSquares(sum, length);
  }
}

void RunBaseline(const Call& call) { Run(call); }
RUBATO_TARGET_SSE42 void RunSse42(const Call& call) { Run(call); }
RUBATO_TARGET_AVX2 void RunAvx2(const Call& call) { Run(call); }
RUBATO_TARGET_AVX512 void RunAvx512(const Call& call) { Run(call); }

}  // namespace

GradientNorms MeasureNormsOn(Isa isa, const EncodedGradient* contributions, int count, int64_t n, uint64_t stream) {
  std::vector<GradientReader> readers;
  readers.reserve(count);
  for (int k = 0; k < count; ++k) readers.emplace_back(isa, contributions[k], n);
  GradientNorms norms;
  norms.squares.resize(count);
  norms.sketches.resize(count);
  ForIsa(isa, RunBaseline, RunSse42, RunAvx2, RunAvx512)({contributions, count, readers.data(), n, stream, &norms});
  return norms;
}

GradientNorms MeasureNorms(const EncodedGradient* contributions, int count, int64_t n, uint64_t stream) {
  static const Isa isa = BestIsa();
  return MeasureNormsOn(isa, contributions, count, n, stream);
}

}  // namespace rubato
