#ifndef RUBATO_COORDINATOR_RULES_JOB_STATE_H_
#define RUBATO_COORDINATOR_RULES_JOB_STATE_H_

#include <cstdint>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "coordinator/rules/evaluation_schedule.h"
#include "coordinator/rules/gradient_noise.h"
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
  // When the coordinator started, or was made anew for a rollback.
  absl::Time start;
  // Whether Recover goes on with a job that has failed or was stopped.
  bool resume_ended = false;
  // Of the core before this one in the same process.
  v1::JobCounts counts = {};
  // Names the present boot of the machine.
  std::string boot_id = {};
};

// What the parts of the coordinator share: one job as it is now. What one of them alone needs is its own.
struct JobState {
  JobState(const JobOptions& options, std::vector<v1::ChunkPlacement> placed_chunks);

  // Says who works on what, when the tasks are there. From here on the job goes back to its last checkpoint when a
  // server is lost. InvalidArgument: it goes on from a checkpoint that is of other data.
  absl::Status Place(std::vector<uint32_t> with_servers, int64_t examples);
  // A rollback, as the journal says: what was known of tasks, plan and data is over.
  void GoBack(const v1::JournalTerm& term);
  // A complete one; of the older ones checkpoint.keep are kept.
  void AddCut(const v1::CutRecord& cut);
  uint64_t LastGeneration() const { return std::max(last_generation, plan_maker ? plan_maker->last_generation() : 0); }

  bool Ended() const { return phase == v1::JobStatus::DONE || phase == v1::JobStatus::FAILED; }
  bool IsStatic() const { return config.data().dispatch() == v1::DataConfig::STATIC; }
  // The workers are clients, which have data of their own: nobody knows how many examples there are.
  bool IsOwn() const { return config.data().dispatch() == v1::DataConfig::OWN; }
  // A client's job that is placed and begins with nothing: a worker assigns its weights before training begins.
  bool AwaitsWeights() const {
    return config.model().has_manifest() && config.training().start_from().empty() && placed && !restore &&
           !training_began && !Ended();
  }
  // Who: the one that was named and is still there, otherwise the worker with the lowest index. Nothing: nobody is
  // there, or nothing is to be assigned.
  std::optional<v1::TaskId> InitialWeightsFrom() const;
  // Since training began, 0 before.
  double Seconds(absl::Time now) const {
    return training_start == absl::InfiniteFuture() ? 0 : absl::ToDoubleSeconds(now - training_start);
  }
  // Epochs trained, and those that the config asks for; 0 if nobody knows what an epoch is.
  double Epoch() const;
  double EpochsTotal() const;
  // Estimated, -1 when unknown.
  double SecondsLeft() const;
  JobSnapshot Snapshot(absl::Time now) const;
  // Ends an interval of progress.
  JobProgress::Interval TakeInterval(absl::Time now);
  // Of the gradients of the plan that holds now; empty if it is not SYNC of several workers.
  v1::GradientNoise RecentGradientNoise() const;
  // The directive that tells a task of servers, chunks and the plan; workers learn of the plan when training begins.
  v1::Directive Describe(bool with_plan = true) const;

  const v1::JobConfig config;
  const uint64_t config_fingerprint;
  const bool resume_ended;
  const std::string boot_id;
  const absl::Time start;
  uint64_t job_fingerprint;
  std::vector<v1::ChunkPlacement> chunks;

  // Grows with every start of the coordinator and every rollback; the one in which the job began or went back last.
  uint64_t term = 1;
  uint64_t rollback_term = 1;
  // Of the last rollback.
  std::string rollback_reason;
  // What the job goes on from; absent: it began with its first step.
  std::optional<v1::CutRecord> restore;
  // Complete ones, in order.
  std::vector<v1::CutRecord> cuts;
  // The highest id of a cut and, as far as the journal says, generation that was used.
  uint64_t last_cut = 0;
  uint64_t last_generation = 0;
  // Somebody has asked for the end: what tasks are told.
  std::optional<std::string> stop_requested;
  // A rollback has begun: another core takes the place of this one, which does nothing more.
  bool replaced = false;

  v1::JobStatus::Phase phase = v1::JobStatus::STARTING;
  // Ended(): how, as tasks are told.
  v1::Stop end;

  Membership membership;
  // Of the workers that are there; 0 while there is none. A client's job: of its config.
  int64_t train_examples = 0;
  // Place was called: plan_maker is present, and with DYNAMIC dispatch dispatcher.
  bool placed = false;
  // Indices of those that hold chunks.
  std::vector<uint32_t> servers;
  std::optional<PlanMaker> plan_maker;
  std::optional<ShardDispatcher> dispatcher;
  // The worker that tasks were told of as the one that assigns the weights.
  std::optional<v1::TaskId> assigner;
  // Of workers that are gone and whose shards are not returned, by incarnation: the furthest that a server has said.
  std::map<uint64_t, v1::LostWorker> reached;
  // Workers that have done their part and wait, by index and incarnation, while they are connected: they are no
  // members, and are told when the job ends or goes back.
  std::map<std::pair<uint32_t, uint64_t>, v1::TaskId> done_workers;
  // The plan that all servers hold; generation 0 before plan 1 does.
  v1::Plan held_plan;

  // TRAINING began (and may have ended).
  bool training_began = false;
  // InfiniteFuture before it began first.
  absl::Time training_start = absl::InfiniteFuture();
  absl::Time training_end = absl::InfiniteFuture();
  JobProgress progress;
  GradientNoise gradient_noise;
  EvaluationSchedule evaluations;
  // For operators.
  v1::JobCounts counts;
};

}  // namespace rubato::coordinator

#endif  // RUBATO_COORDINATOR_RULES_JOB_STATE_H_
