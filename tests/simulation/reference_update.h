#ifndef RUBATO_TESTS_SIMULATION_REFERENCE_UPDATE_H_
#define RUBATO_TESTS_SIMULATION_REFERENCE_UPDATE_H_

#include <cstdint>
#include <vector>

#include "proto/job_config.pb.h"
#include "proto/update_log.pb.h"
#include "tests/simulation/scenario.h"

namespace rubato::simulation {

// What an update has made of a chunk's weights, which are one number here, and whether it told that members had pushed
// with different hyperparameters.
struct UpdateOutcome {
  double value = 0;
  bool disagreement = false;
};

// What it must make of them.
struct ReferenceUpdate {
  UpdateOutcome due;
  // Nobody has pushed a gradient; some have, and others have not.
  bool of_nothing = false;
  bool partly_absent = false;
  // The hyperparameters are those of another member than the first, which says nothing of the group.
  bool by_later_member = false;
};

// From who contributed what to an update of the chunk, in whatever order, under a plan with that factor on the learning
// rate. Shares no code with the rules.
ReferenceUpdate UpdateByReference(const Scenario& scenario, uint32_t chunk, double before, double learning_rate_scale,
                                  std::vector<v1::UpdateRecord> contributions);

}  // namespace rubato::simulation

#endif  // RUBATO_TESTS_SIMULATION_REFERENCE_UPDATE_H_
