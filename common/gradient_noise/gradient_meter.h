#ifndef RUBATO_COMMON_GRADIENT_NOISE_GRADIENT_METER_H_
#define RUBATO_COMMON_GRADIENT_NOISE_GRADIENT_METER_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/types/span.h"
#include "proto/coordinator.pb.h"

namespace rubato {

// Of how many batches of a worker one is measured: it costs the servers another pass over the gradients.
inline constexpr int64_t kBatchesPerMeasurement = 8;

// Whether SYNC step `step` is measured, in which workers compute so many batches: every eighth, or in local SGD each
// one that has an eighth batch.
bool IsMeasuredStep(int64_t step, int64_t batches);

// What two or more gradients are that made an update of a chunk.
struct MeasuredUpdate {
  struct Gradient {
    uint32_t worker = 0;
    // 1 or more.
    uint64_t examples = 0;
    // Of its norm.
    double square = 0;
    // A projection to fewer dimensions that keeps the expected value of products of two gradients, the same for all of
    // the chunk's.
    absl::Span<const float> sketch;
  };

  uint32_t chunk = 0;
  // Of the plan.
  uint64_t generation = 0;
  // Of the norm of the mean, weighted by examples.
  double mean_square = 0;
  std::vector<Gradient> gradients;
};

// Adds up what gradients say of each other.
//
// A worker's gradient differs from the others' because its examples do: by chance, which is other examples in each
// step, and, if workers have data of their own kind, for good. The variance of a step tells nothing of which it is. So
// the differences are averaged over a few measured steps, as sketches, and the averages of one such block multiplied
// with those of the one after the next: chance is independent there, also that of moves with momentum, and what is left
// is what lasts.
//
// Pure; not thread-safe.
class GradientMeter {
 public:
  // Of so many chunks, whose updates are all given to it.
  explicit GradientMeter(size_t chunks) : chunks_(static_cast<int64_t>(chunks)) {}

  // One that is not finite counts for nothing.
  void Add(const MeasuredUpdate& update);

  const v1::GradientMoments& moments() const { return moments_; }

 private:
  // Measured steps in a block.
  static constexpr int64_t kBlock = 4;
  // From a block to the one that it is compared with.
  static constexpr int64_t kDistance = 2;

  struct Place {
    uint64_t generation = 0;
    int64_t updates = 0;
  };
  // Sums over the updates of kBlock measured steps.
  struct Block {
    struct Worker {
      int64_t updates = 0;
      std::vector<double> sketch;
    };
    int64_t updates = 0;
    double spread = 0;
    std::map<uint32_t, Worker> workers;
  };

  void AddToBlock(const MeasuredUpdate& update, double spread);
  // With a block before; nothing if other workers made it.
  static std::optional<double> LastingSpread(const Block& before, const Block& now);

  int64_t chunks_;
  v1::GradientMoments moments_;
  // By chunk: which of the generation's measured updates comes next.
  absl::flat_hash_map<uint32_t, Place> places_;
  // Those of the newest generation, by number: the last two complete ones and what follows them.
  uint64_t generation_ = 0;
  std::map<int64_t, Block> blocks_;
};

void AddMoments(const v1::GradientMoments& from, v1::GradientMoments* to);

}  // namespace rubato

#endif  // RUBATO_COMMON_GRADIENT_NOISE_GRADIENT_METER_H_
