#ifndef RUBATO_COORDINATOR_RULES_JOB_STATE_H_
#define RUBATO_COORDINATOR_RULES_JOB_STATE_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/time/time.h"
#include "coordinator/rules/evaluation_schedule.h"
#include "coordinator/rules/job_progress.h"
#include "coordinator/rules/job_snapshot.h"
#include "coordinator/rules/membership.h"
#include "coordinator/rules/plan_maker.h"
#include "coordinator/rules/shard_dispatcher.h"
#include "proto/coordinator.pb.h"
#include "proto/job_config.pb.h"

namespace rubato::coordinator {

struct JobOptions {
  // Complete and valid (common/config).
  v1::JobConfig config;
  uint64_t config_fingerprint = 0;
  // Random and not 0; names the job on the data path unless Recover finds a started one.
  uint64_t job_fingerprint = 0;
  // When the coordinator started.
  absl::Time start;
};

// What the parts of the coordinator share: one job as it is now. What one of them alone needs is its own.
struct JobState {
  JobState(const JobOptions& options, std::vector<v1::ChunkPlacement> placed_chunks);

  // All tasks were there: with plan 1 comes who works on what. From here on a lost server ends the job.
  void Place(int64_t examples);

  bool Ended() const { return phase == v1::JobStatus::DONE || phase == v1::JobStatus::FAILED; }
  bool IsStatic() const { return config.data().dispatch() == v1::DataConfig::STATIC; }
  // Since training began, 0 before.
  double Seconds(absl::Time now) const { return training_began ? absl::ToDoubleSeconds(now - training_start) : 0; }
  // Epochs trained, and those that the config asks for.
  double Epoch() const;
  double EpochsTotal() const;
  // Estimated, -1 when unknown.
  double SecondsLeft() const;
  JobSnapshot Snapshot(absl::Time now) const;
  // The directive that tells a task of servers, chunks and the plan.
  v1::Directive Describe() const;

  const v1::JobConfig config;
  const uint64_t config_fingerprint;
  const absl::Time start;
  uint64_t job_fingerprint;
  std::vector<v1::ChunkPlacement> chunks;

  v1::JobStatus::Phase phase = v1::JobStatus::STARTING;
  // Ended(): how, as tasks are told.
  v1::Stop end;

  Membership membership;
  // Of the workers that are there; 0 while there is none.
  int64_t train_examples = 0;
  // Place was called: plan_maker is present, and with DYNAMIC dispatch dispatcher.
  bool placed = false;
  std::optional<PlanMaker> plan_maker;
  std::optional<ShardDispatcher> dispatcher;
  // The plan that all servers hold; generation 0 before plan 1 does.
  v1::Plan held_plan;

  // TRAINING began (and may have ended).
  bool training_began = false;
  absl::Time training_start;
  absl::Time training_end = absl::InfiniteFuture();
  JobProgress progress;
  EvaluationSchedule evaluations;
  // For operators.
  v1::JobCounts counts;
};

}  // namespace rubato::coordinator

#endif  // RUBATO_COORDINATOR_RULES_JOB_STATE_H_
