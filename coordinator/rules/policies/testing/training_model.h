#ifndef RUBATO_COORDINATOR_RULES_POLICIES_TESTING_TRAINING_MODEL_H_
#define RUBATO_COORDINATOR_RULES_POLICIES_TESTING_TRAINING_MODEL_H_

#include <cstdint>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "coordinator/rules/plan_maker.h"
#include "proto/job_config.pb.h"

namespace rubato::coordinator {

// A job whose training is a model of training, in virtual time: SGD on a quadratic with noisy gradients, by workers
// whose steps take as long as a scenario says, under the rules of SYNC with a quorum, SSP and ASYNC, with a mode policy
// that sees of it what it would see of a job. It says what a policy is worth, not how exact the rules are kept: for
// that there is tests/simulation.
//
// A batch is as long as the plan says (policy BALANCE), and the mean in SYNC is weighted by that. So is a step: of
// several batches, each followed by an update of the worker's own weights (POST_LOCAL).
//
// The loss is sum(lambda_i w_i^2) / 2 with eigenvalues from 1 to 0.01 and w = 1 at first. A worker's gradient is that
// of the weights that it began its step with, plus normal noise of variance noise^2 / batch in each direction.
struct TrainingScenario {
  std::string name;
  uint32_t workers = 8;
  // How long the worker computes in that step, or with several batches in a step in that batch, of `batch`, in seconds.
  // The same for each policy, so that they meet the same stragglers.
  std::function<double(uint32_t worker, int64_t step)> step_seconds;
  // The part of that which does not go with the batch, 0 to 1.
  double fixed_share = 0;
  // The way to the servers and back.
  double overhead_seconds = 0.002;
  int64_t batch = 32;
  double learning_rate = 0.02;
  double noise = 2;
  double target_loss = 0.02;
  // How the workers' data differ: the loss of every other worker is more curved by that part, the rest's less, and
  // their minima lie `distance` over one more and one less to the two sides, so that the minimum of the mean stays 0.
  // Then workers that exchange seldom stop short of it: their batches between two exchanges lead them apart.
  double difference = 0;
  double distance = 0;
  // Of each worker (SYNC: of the job) at most.
  int64_t max_steps = 3000;
  // Of examples that the workers take, if not 0: what ends the training too, and the unit of the schedule.
  int64_t epochs = 0;
  int64_t epoch_examples = 25600;
  v1::LearningRateSchedule schedule;
};

struct TrainingOutcome {
  // Infinite: not reached.
  double seconds_to_target = std::numeric_limits<double>::infinity();
  double seconds = 0;
  double final_loss = 0;
  // What the policy changed.
  std::vector<PlanChange> changes;
};

// Trains under `consistency`, with defaults filled in if they are absent. REQUIRES: a valid config. Pure.
TrainingOutcome Train(const TrainingScenario& scenario, const v1::ConsistencyConfig& consistency, uint64_t seed);

}  // namespace rubato::coordinator

#endif  // RUBATO_COORDINATOR_RULES_POLICIES_TESTING_TRAINING_MODEL_H_
