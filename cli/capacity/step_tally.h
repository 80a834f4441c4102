#ifndef RUBATO_CLI_CAPACITY_STEP_TALLY_H_
#define RUBATO_CLI_CAPACITY_STEP_TALLY_H_

#include <cstdint>
#include <vector>

#include "cli/capacity/event_queue.h"
#include "cli/capacity/exchange.h"
#include "cli/capacity/step_observer.h"

namespace rubato::capacity {

// Counts the steps of all workers, and says when there are enough. Steps are counted in rounds, of as many steps as
// there are workers: the first ones warm up and are left out, the others are batches of some rounds each, whose rates
// differ by chance; there are enough when the mean rate is known well (batch means, Law and Kelton). Not thread-safe.
class StepTally : public StepObserver {
 public:
  struct Options {
    // Outlives it.
    const EventQueue* queue = nullptr;
    int64_t workers = 1;
    int64_t warm_up_rounds = 10;
    // Rounds to measure. 0: as many as it takes, 30 to 1000, and no more than `steps_max` steps.
    int64_t rounds = 0;
    int64_t steps_max = 400'000;
  };
  // The half of a 95 % interval, as a part of the mean, that is good enough.
  static constexpr double kGoodEnough = 0.01;

  explicit StepTally(const Options& options);

  void OnStep(uint32_t worker, const StepParts& parts, int64_t staleness) override;

  bool warm() const { return warm_at_ >= 0; }
  bool done() const;

  // Of what was measured: at least one batch.
  int64_t steps() const { return static_cast<int64_t>(seconds_.size()); }
  SimTime warm_at() const { return warm_at_; }
  // Steps of all workers in a second of virtual time, and the half of its 95 % interval; infinite with one batch.
  double rate() const;
  double rate_error() const;
  const StepParts& parts() const { return parts_; }
  // Of a step, the time within which `part` of all are, 0 to 1.
  double StepQuantile(double part) const;
  double staleness_mean() const;
  int64_t StalenessQuantile(double part) const;

 private:
  int64_t RoundsPerBatch() const;

  const Options options_;
  int64_t counted_ = 0;  // Steps, those to warm up included.
  SimTime warm_at_ = -1;
  SimTime batch_begun_ = 0;
  std::vector<double> rates_;
  StepParts parts_;
  std::vector<float> seconds_;
  // By staleness, the last one takes all above.
  std::vector<int64_t> staleness_;
};

}  // namespace rubato::capacity

#endif  // RUBATO_CLI_CAPACITY_STEP_TALLY_H_
