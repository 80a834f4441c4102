#ifndef RUBATO_COORDINATOR_RULES_JOB_SNAPSHOT_H_
#define RUBATO_COORDINATOR_RULES_JOB_SNAPSHOT_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "coordinator/rules/gradient_noise.h"
#include "proto/parameter_server.pb.h"

namespace rubato::coordinator {

// What the coordinator knows of a training job at one moment, for those who decide on its mode. It comes from the last
// heartbeats, which are up to half a second old.
struct JobSnapshot {
  struct Worker {
    uint32_t index = 0;
    int64_t step = 0;
    // The plan that it works under.
    uint64_t generation = 0;
    // Mean duration of its latest steps, a few dozen; the wait for its first step under a plan is left out. 0 before
    // the first.
    double mean_step_seconds = 0;
    // Durations of its latest steps without the wait for weights, in order; of a few dozen at most.
    std::vector<double> work_seconds;
    // How many examples it computes a second in these steps, without the wait. 0 before the first.
    double work_rate = 0;
    // Part of its time that went into waiting for weights, since its process began: 0 to 1.
    double waiting_share = 0;
    // How long its present step has waited for servers until now; 0 when it does not wait.
    double waiting_seconds = 0;
  };
  struct Evaluation {
    double loss = 0;
    // 0 to 1; what it means for a loss without classes is up to the model.
    double accuracy = 0;
  };

  // Where the job is: the furthest worker's step, epochs trained, seconds since training began.
  int64_t step = 0;
  double epoch = 0;
  double seconds = 0;

  // The plan that all servers hold.
  v1::Plan plan;
  // Those that are alive, in order of index.
  std::vector<Worker> workers;
  // Of all workers together over the last seconds.
  double examples_per_second = 0;

  // Over all workers and steps since training began, those of lost workers included. The share is 0 to 1; staleness is
  // in versions.
  double waiting_share = 0;
  double mean_staleness = 0;
  // What that is the mean of: pushes that were applied, and the sum of their staleness.
  double pushes = 0;
  double staleness_sum = 0;
  // Of the SYNC steps whose gradients were measured, since this coordinator began.
  GradientNoise::Sums gradients;

  // Means over the examples of the last second that had any: of the loss, and the part of them that was classified
  // right. Absent before the first, and after the coordinator has been started again until there are new ones.
  std::optional<double> training_loss;
  std::optional<double> training_accuracy;
  // The last one that succeeded.
  std::optional<Evaluation> evaluation;
};

}  // namespace rubato::coordinator

#endif  // RUBATO_COORDINATOR_RULES_JOB_SNAPSHOT_H_
