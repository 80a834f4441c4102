#include "bench/sparse/map_rows.h"

#include <cmath>
#include <cstring>

#include "bench/sparse/row_client.h"

namespace rubato::bench {

template <typename Find>
void MapRows::FindAll(const uint64_t* keys, int64_t count, const Find& find) {
  found_.resize(count);
  for (int64_t i = 0; i < count; ++i) {
    if (prefetches_ && i + kAhead < count) numbers_.prefetch(keys[i + kAhead]);
    found_[i] = find(keys[i]);
  }
}

template <typename Use>
void MapRows::UseAll(int64_t floats, const Use& use) {
  const auto row = [&](size_t i) {
    return found_[i] == kNone ? nullptr : rows_.data() + 2 * dimension_ * int64_t{found_[i]};
  };
  for (size_t i = 0; i < found_.size(); ++i) {
    if (prefetches_ && i + kAhead < found_.size()) {
      const float* const next = row(i + kAhead);
      for (int64_t at = 0; next != nullptr && at < floats; at += 16) __builtin_prefetch(next + at);
    }
    use(i, row(i));
  }
}

void MapRows::Update(const uint64_t* keys, int64_t count, const float* gradients) {
  FindAll(keys, count, [&](uint64_t key) {
    return numbers_.try_emplace(key, static_cast<uint32_t>(numbers_.size())).first->second;
  });
  rows_.resize(2 * dimension_ * numbers_.size());
  UseAll(2 * dimension_, [&](size_t i, float* row) {
    const float* __restrict g = gradients + dimension_ * i;
    float* __restrict weights = row;
    float* __restrict sums = row + dimension_;
    for (int64_t j = 0; j < dimension_; ++j) {
      sums[j] += g[j] * g[j];
      weights[j] -= kLearningRate * g[j] / (std::sqrt(sums[j]) + kEpsilon);
    }
  });
}

void MapRows::Lookup(const uint64_t* keys, int64_t count, float* weights) {
  FindAll(keys, count, [&](uint64_t key) {
    const auto found = numbers_.find(key);
    return found == numbers_.end() ? kNone : found->second;
  });
  const size_t bytes = sizeof(float) * dimension_;
  UseAll(dimension_, [&](size_t i, const float* row) {
    float* const to = weights + dimension_ * i;
    if (row == nullptr) {
      std::memset(to, 0, bytes);
    } else {
      std::memcpy(to, row, bytes);
    }
  });
}

}  // namespace rubato::bench
