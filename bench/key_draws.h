#ifndef RUBATO_BENCH_KEY_DRAWS_H_
#define RUBATO_BENCH_KEY_DRAWS_H_

#include <cstdint>
#include <vector>

#include "common/key_hash.h"
#include "common/random.h"

namespace rubato::bench {

// Numbers from 0 to n - 1, the k-th in proportion to 1 / (k + 1)^s, s > 1; by the inverse of the integral, with
// rejection (Devroye 1986, chapter X.6).
class Zipf {
 public:
  Zipf(int64_t n, double s, uint64_t seed) : n_(n), s_(s), random_(seed) {}

  int64_t Next();

 private:
  const int64_t n_;
  const double s_;
  Random random_;
};

// Keys of features are large numbers anywhere.
inline uint64_t KeyAt(int64_t i) { return StreamId("key", static_cast<uint64_t>(i)); }

// In the order of their hashes, each once.
void SortByHash(const KeyHash& hash, std::vector<uint64_t>& keys);

}  // namespace rubato::bench

#endif  // RUBATO_BENCH_KEY_DRAWS_H_
