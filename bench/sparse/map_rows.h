#ifndef RUBATO_BENCH_SPARSE_MAP_ROWS_H_
#define RUBATO_BENCH_SPARSE_MAP_ROWS_H_

#include <cstdint>
#include <vector>

#include "absl/container/flat_hash_map.h"

namespace rubato::bench {

// A table as it is written in an afternoon: absl::flat_hash_map to the numbers of rows, which lie in one array.
class MapRows {
 public:
  // `prefetches`: keys and rows that come next are fetched ahead.
  MapRows(int dimension, bool prefetches) : dimension_(dimension), prefetches_(prefetches) {}

  // AdaGrad; rows that are not there begin at 0.
  void Update(const uint64_t* keys, int64_t count, const float* gradients);
  // Zeros for rows that are not there.
  void Lookup(const uint64_t* keys, int64_t count, float* weights);

 private:
  static constexpr int64_t kAhead = 16;
  static constexpr uint32_t kNone = UINT32_MAX;

  // The numbers of the keys' rows, with `find(key)`.
  template <typename Find>
  void FindAll(const uint64_t* keys, int64_t count, const Find& find);
  // Calls `use(i, row)` for each of the numbers; null: it has none.
  template <typename Use>
  void UseAll(int64_t floats, const Use& use);

  const int64_t dimension_;
  const bool prefetches_;
  absl::flat_hash_map<uint64_t, uint32_t> numbers_;
  // Of each row the weights, then their sums of squares.
  std::vector<float> rows_;
  std::vector<uint32_t> found_;
};

}  // namespace rubato::bench

#endif  // RUBATO_BENCH_SPARSE_MAP_ROWS_H_
