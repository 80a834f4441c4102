#ifndef RUBATO_COORDINATOR_RULES_POLICIES_PARTS_DRIFT_H_
#define RUBATO_COORDINATOR_RULES_POLICIES_PARTS_DRIFT_H_

#include <cstdint>
#include <optional>

#include "coordinator/rules/gradient_noise.h"

namespace rubato::coordinator {

// Whether a worker's batches between two exchanges lead it away from the others: by chance its moves differ from theirs
// as the root of the number of batches, but by what lasts of the differences, since its data differ, as the number
// itself (client drift: Karimireddy and others 2020, "SCAFFOLD: stochastic controlled averaging for federated
// learning"). Pure; not thread-safe.
class Drift {
 public:
  // Each time that the policy looks at the job, which is in SYNC, in a plan with so many batches in a step.
  void Note(uint64_t generation, const GradientNoise::Sums& gradients, int64_t batches);

  // Were there so many batches in a step, how many times as large the lasting part of the moves' variance would be as
  // that of chance. What the present plan has shown, or, until it has, the one before; absent if none has.
  std::optional<double> Ratio(int64_t batches) const;

 private:
  uint64_t generation_ = 0;
  // When the plan was first seen.
  GradientNoise::Sums before_;
  // With one batch in a step.
  std::optional<double> ratio_;
};

}  // namespace rubato::coordinator

#endif  // RUBATO_COORDINATOR_RULES_POLICIES_PARTS_DRIFT_H_
