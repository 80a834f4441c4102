#include "worker/ps_client/tensor_statistics.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <limits>

#include "kernels/optimizer/all_finite.h"
#include "kernels/optimizer/isa.h"

namespace rubato::worker {
namespace {

// Elements that are worked on together.
constexpr size_t kBlock = 4096;
// Independent sums, so that an addition need not wait for the one before; also what the compiler makes vectors of.
constexpr size_t kLanes = 16;
// Independent counts, so that equal elements that follow each other, as zeros do, need not wait either.
constexpr size_t kCountLanes = 4;

// Calls `use` with all elements that are finite, in their order, at most kBlock at a time.
template <typename Use>
void ForFinite(absl::Span<const float> elements, const Use& use) {
  std::array<float, kBlock> finite;
  for (; !elements.empty(); elements.remove_prefix(std::min(kBlock, elements.size()))) {
    const absl::Span<const float> block = elements.first(std::min(kBlock, elements.size()));
    if (AllFinite(block.data(), static_cast<int64_t>(block.size()))) {
      use(block.data(), block.size());
      continue;
    }
    const auto end =
        std::copy_if(block.begin(), block.end(), finite.begin(), [](float element) { return std::isfinite(element); });
    use(finite.data(), static_cast<size_t>(end - finite.begin()));
  }
}

// Of the finite elements.
struct Moments {
  Moments() {
    min.fill(std::numeric_limits<float>::infinity());
    max.fill(-std::numeric_limits<float>::infinity());
  }

  int64_t count = 0;
  std::array<double, kLanes> sum = {};
  std::array<double, kLanes> sum_squares = {};
  std::array<float, kLanes> min;
  std::array<float, kLanes> max;
};

RUBATO_KERNEL_BODY void AddTo(float element, size_t lane, Moments* moments) {
  const double value = element;
  moments->sum[lane] += value;
  moments->sum_squares[lane] += value * value;
  moments->min[lane] = element < moments->min[lane] ? element : moments->min[lane];
  moments->max[lane] = element > moments->max[lane] ? element : moments->max[lane];
}

RUBATO_KERNEL_BODY void AddMoments(const float* elements, size_t n, Moments* moments) {
  Moments sums = *moments;  // Where the compiler sees that the elements are elsewhere.
  size_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    for (size_t lane = 0; lane < kLanes; ++lane) AddTo(elements[i + lane], lane, &sums);
  }
  for (; i < n; ++i) AddTo(elements[i], 0, &sums);
  sums.count += static_cast<int64_t>(n);
  *moments = sums;
}

// The range of the elements; the parts are counted from 0.
struct Range {
  double min;
  double parts_per_unit;
};

using Counts = std::array<int64_t, kStatisticsParts>;

// n <= kBlock.
RUBATO_KERNEL_BODY void CountParts(const float* elements, size_t n, const Range& range, Counts* counts) {
  const double min = range.min;
  const double scale = range.parts_per_unit;
  std::array<uint8_t, kBlock> parts;
  for (size_t i = 0; i < n; ++i) {
    // The largest element is in the last part.
    parts[i] = static_cast<uint8_t>(std::min(static_cast<int>((elements[i] - min) * scale), kStatisticsParts - 1));
  }
  std::array<std::array<uint32_t, kStatisticsParts>, kCountLanes> lanes = {};
  size_t i = 0;
  for (; i + kCountLanes <= n; i += kCountLanes) {
    for (size_t lane = 0; lane < kCountLanes; ++lane) ++lanes[lane][parts[i + lane]];
  }
  for (; i < n; ++i) ++lanes[0][parts[i]];
  for (const auto& lane : lanes) {
    for (int part = 0; part < kStatisticsParts; ++part) (*counts)[part] += lane[part];
  }
}

using AddMomentsFunction = void(const float* elements, size_t n, Moments* moments);

void AddMomentsBaseline(const float* elements, size_t n, Moments* moments) { AddMoments(elements, n, moments); }
RUBATO_TARGET_SSE42 void AddMomentsSse42(const float* elements, size_t n, Moments* moments) {
  AddMoments(elements, n, moments);
}
RUBATO_TARGET_AVX2 void AddMomentsAvx2(const float* elements, size_t n, Moments* moments) {
  AddMoments(elements, n, moments);
}
RUBATO_TARGET_AVX512 void AddMomentsAvx512(const float* elements, size_t n, Moments* moments) {
  AddMoments(elements, n, moments);
}

using CountPartsFunction = void(const float* elements, size_t n, const Range& range, Counts* counts);

void CountPartsBaseline(const float* elements, size_t n, const Range& range, Counts* counts) {
  CountParts(elements, n, range, counts);
}
RUBATO_TARGET_SSE42 void CountPartsSse42(const float* elements, size_t n, const Range& range, Counts* counts) {
  CountParts(elements, n, range, counts);
}
RUBATO_TARGET_AVX2 void CountPartsAvx2(const float* elements, size_t n, const Range& range, Counts* counts) {
  CountParts(elements, n, range, counts);
}
RUBATO_TARGET_AVX512 void CountPartsAvx512(const float* elements, size_t n, const Range& range, Counts* counts) {
  CountParts(elements, n, range, counts);
}

double Sum(const std::array<double, kLanes>& lanes) {
  double sum = 0;
  for (double lane : lanes) sum += lane;
  return sum;
}

}  // namespace

v1::TensorStatistics DescribeTensorOn(Isa isa, absl::Span<const float> elements) {
  AddMomentsFunction* const add_moments =
      ForIsa(isa, AddMomentsBaseline, AddMomentsSse42, AddMomentsAvx2, AddMomentsAvx512);
  Moments moments;
  ForFinite(elements, [&](const float* block, size_t n) { add_moments(block, n, &moments); });
  v1::TensorStatistics statistics;
  statistics.set_elements(static_cast<int64_t>(elements.size()));
  statistics.set_non_finite(statistics.elements() - moments.count);
  if (moments.count == 0) return statistics;
  const double min = *std::min_element(moments.min.begin(), moments.min.end());
  const double max = *std::max_element(moments.max.begin(), moments.max.end());
  statistics.set_min(min);
  statistics.set_max(max);
  statistics.set_sum(Sum(moments.sum));
  statistics.set_sum_squares(Sum(moments.sum_squares));
  if (max == min) {
    statistics.add_counts(moments.count);
    return statistics;
  }
  CountPartsFunction* const count_parts =
      ForIsa(isa, CountPartsBaseline, CountPartsSse42, CountPartsAvx2, CountPartsAvx512);
  const Range range = {min, kStatisticsParts / (max - min)};
  Counts counts = {};
  ForFinite(elements, [&](const float* block, size_t n) { count_parts(block, n, range, &counts); });
  for (int64_t count : counts) statistics.add_counts(count);
  return statistics;
}

v1::TensorStatistics DescribeTensor(absl::Span<const float> elements) {
  static const Isa best = BestIsa();
  return DescribeTensorOn(best, elements);
}

}  // namespace rubato::worker
