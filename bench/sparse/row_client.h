#ifndef RUBATO_BENCH_SPARSE_ROW_CLIENT_H_
#define RUBATO_BENCH_SPARSE_ROW_CLIENT_H_

#include <cstdint>
#include <vector>

#include "absl/status/status.h"

namespace rubato::bench {

// The table that every subject keeps: rows of `dimension` float32, which begin at 0 and are updated by AdaGrad.
struct SparseSetup {
  int dimension = 16;
  // Of our server alone: cluster.partitions_per_server, the table's parts, whether weights, gradients and rows are
  // bf16, and whether the client shares memory with it.
  int partitions = 1;
  int shards = 64;
  bool bf16 = false;
  bool shared_memory = false;
};

inline constexpr float kLearningRate = 0.01f;
inline constexpr float kEpsilon = 1e-8f;
// Of the job, with which keys are hashed.
inline constexpr uint64_t kJobSeed = 1;

// A client of one subject's table. Not thread-safe.
class RowClient {
 public:
  virtual ~RowClient() = default;

  // Updates the rows of `pushed` by their gradients, of which there are at least `dimension` for each key, and then
  // brings those of `asked` to rows(). Keys of a call are in the order of their hashes, each once; none is allowed.
  virtual absl::Status Exchange(const std::vector<uint64_t>& pushed, const std::vector<float>& gradients,
                                const std::vector<uint64_t>& asked) = 0;
  // Of the last call, one after another.
  virtual const float* rows() = 0;

  // Of requests and answers until now: keys, gradients and rows, and what a protocol of text puts around them.
  virtual int64_t payload_bytes() = 0;
};

}  // namespace rubato::bench

#endif  // RUBATO_BENCH_SPARSE_ROW_CLIENT_H_
