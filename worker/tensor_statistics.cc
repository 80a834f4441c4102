#include "worker/tensor_statistics.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <limits>

#include "kernels/optimizer/all_finite.h"

namespace rubato::worker {
namespace {

// Elements that are worked on together.
constexpr size_t kBlock = 4096;
// Independent sums, so that an addition need not wait for the one before; also what the compiler makes vectors of.
constexpr size_t kLanes = 8;
// Independent counts, so that equal elements that follow each other, as zeros do, need not wait either.
constexpr size_t kCountLanes = 4;

// Calls `use` with all elements that are finite, in their order, some at a time.
template <typename Use>
void ForFinite(absl::Span<const float> elements, const Use& use) {
  std::array<float, kBlock> finite;
  for (; !elements.empty(); elements.remove_prefix(std::min(kBlock, elements.size()))) {
    const absl::Span<const float> block = elements.first(std::min(kBlock, elements.size()));
    if (AllFinite(block.data(), static_cast<int64_t>(block.size()))) {
      use(block);
      continue;
    }
    const auto end =
        std::copy_if(block.begin(), block.end(), finite.begin(), [](float element) { return std::isfinite(element); });
    use(absl::MakeConstSpan(finite).first(end - finite.begin()));
  }
}

// Of the finite elements.
struct Moments {
  Moments() {
    min.fill(std::numeric_limits<float>::infinity());
    max.fill(-std::numeric_limits<float>::infinity());
  }
  void Add(float element, size_t lane) {
    const double value = element;
    sum[lane] += value;
    sum_squares[lane] += value * value;
    min[lane] = element < min[lane] ? element : min[lane];
    max[lane] = element > max[lane] ? element : max[lane];
  }

  int64_t count = 0;
  std::array<double, kLanes> sum = {};
  std::array<double, kLanes> sum_squares = {};
  std::array<float, kLanes> min;
  std::array<float, kLanes> max;
};

Moments MomentsOf(absl::Span<const float> elements) {
  Moments moments;
  ForFinite(elements, [&](absl::Span<const float> block) {
    Moments sums = moments;  // Where the compiler sees that `block` is elsewhere.
    size_t i = 0;
    for (; i + kLanes <= block.size(); i += kLanes) {
      for (size_t lane = 0; lane < kLanes; ++lane) sums.Add(block[i + lane], lane);
    }
    for (; i < block.size(); ++i) sums.Add(block[i], 0);
    sums.count += static_cast<int64_t>(block.size());
    moments = sums;
  });
  return moments;
}

// How many finite elements are in each of kStatisticsParts equal parts of [min, min + width], width > 0.
std::array<int64_t, kStatisticsParts> CountParts(absl::Span<const float> elements, double min, double width) {
  const double scale = kStatisticsParts / width;
  // The largest element is in the last part.
  const auto part_of = [=](float element) {
    return std::min(static_cast<int>((element - min) * scale), kStatisticsParts - 1);
  };
  std::array<std::array<int64_t, kStatisticsParts>, kCountLanes> counts = {};
  ForFinite(elements, [&](absl::Span<const float> block) {
    size_t i = 0;
    for (; i + kLanes <= block.size(); i += kLanes) {
      std::array<int, kLanes> parts;
      for (size_t lane = 0; lane < kLanes; ++lane) parts[lane] = part_of(block[i + lane]);
      for (size_t lane = 0; lane < kLanes; ++lane) ++counts[lane % kCountLanes][parts[lane]];
    }
    for (; i < block.size(); ++i) ++counts[0][part_of(block[i])];
  });
  for (size_t lane = 1; lane < kCountLanes; ++lane) {
    for (int part = 0; part < kStatisticsParts; ++part) counts[0][part] += counts[lane][part];
  }
  return counts[0];
}

double Sum(const std::array<double, kLanes>& lanes) {
  double sum = 0;
  for (double lane : lanes) sum += lane;
  return sum;
}

}  // namespace

v1::TensorStatistics DescribeTensor(absl::Span<const float> elements) {
  const Moments moments = MomentsOf(elements);
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
  for (int64_t count : CountParts(elements, min, max - min)) statistics.add_counts(count);
  return statistics;
}

}  // namespace rubato::worker
