#include "coordinator/rules/job_state.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "common/config/local_sgd.h"
#include "common/metrics/step_count.h"

namespace rubato::coordinator {
namespace {

double WaitingShare(const v1::WorkerProgress& progress) {
  const double all = progress.data_seconds_total() + progress.compute_seconds_total() + progress.push_seconds_total() +
                     progress.pull_wait_seconds_total();
  return all > 0 ? progress.pull_wait_seconds_total() / all : 0;
}

}  // namespace

JobState::JobState(const JobOptions& options, std::vector<v1::ChunkPlacement> placed_chunks)
    : config(options.config),
      config_fingerprint(options.config_fingerprint),
      resume_ended(options.resume_ended),
      boot_id(options.boot_id),
      start(options.start),
      job_fingerprint(options.job_fingerprint),
      chunks(std::move(placed_chunks)),
      membership(absl::Seconds(config.cluster().lease_seconds())),
      gradient_noise(chunks.size()),
      evaluations(config.cluster().evaluators() > 0 ? config.evaluation().every_epochs() : 0),
      counts(options.counts) {
  train_examples = config.data().client().train_examples();
}

absl::Status JobState::Place(std::vector<uint32_t> with_servers, int64_t examples) {
  placed = true;
  train_examples = examples;
  servers = std::move(with_servers);
  std::sort(servers.begin(), servers.end());
  PlanMaker::Options options = {.servers = servers, .last_generation = last_generation};
  if (restore) {
    options.first_step = restore->plan().first_step();
    options.first_example = restore->plan().first_example();
  }
  if (!cuts.empty()) options.last_cut_step = cuts.back().plan().first_step();
  if (IsStatic()) {
    options.static_batch = ExamplesPerStep(config);
    options.train_examples = examples;
  } else if (!IsOwn()) {
    dispatcher.emplace(ShardDispatcher::Options{
        .train_examples = examples,
        .shard_examples = std::max<int64_t>(config.data().shard_examples(), 1),
        .epochs = config.training().epochs(),
    });
  }
  plan_maker.emplace(options);
  return dispatcher && restore ? dispatcher->RestoreCut(restore->shards()) : absl::OkStatus();
}

void JobState::GoBack(const v1::JournalTerm& term) {
  const v1::JournalTerm::Rollback& rollback = term.rollback();
  restore.reset();
  if (rollback.has_cut()) restore = rollback.cut();
  while (!cuts.empty() && cuts.back().cut().id() > rollback.cut().cut().id()) cuts.pop_back();
  job_fingerprint = rollback.job_fingerprint();
  rollback_term = term.term();
  rollback_reason = rollback.reason();
  last_generation = rollback.last_generation();
  last_cut = rollback.last_cut();
  counts.set_rollbacks_total(rollback.rollbacks_total());

  phase = v1::JobStatus::STARTING;
  end.Clear();
  membership.Outdate();
  placed = false;
  servers.clear();
  plan_maker.reset();
  dispatcher.reset();
  assigner.reset();
  reached.clear();
  held_plan.Clear();
  training_began = false;
  training_end = absl::InfiniteFuture();
  training_start = rollback.training_start_unix_seconds() == 0
                       ? absl::InfiniteFuture()
                       : absl::UnixEpoch() + absl::Seconds(rollback.training_start_unix_seconds());
  ProgressTotals base;
  base.step = rollback.cut().plan().first_step();
  base.epoch = rollback.cut().epoch();
  base.examples = rollback.cut().examples();
  progress = JobProgress(base);
  evaluations.GoBack(rollback.cut().epoch());
}

void JobState::AddCut(const v1::CutRecord& cut) {
  last_cut = std::max(last_cut, cut.cut().id());
  cuts.push_back(cut);
  if (cuts.size() > config.checkpoint().keep()) cuts.erase(cuts.begin());
}

double JobState::EpochsTotal() const {
  const v1::TrainingConfig& training = config.training();
  double total =
      training.epochs() > 0 ? static_cast<double>(training.epochs()) : std::numeric_limits<double>::infinity();
  if (training.max_steps() > 0 && train_examples > 0) {
    const double steps = static_cast<double>(training.max_steps()) * config.cluster().workers();
    const auto examples = static_cast<double>(ExamplesPerStep(config));
    // Clients need not say how many examples they take at a time.
    if (examples > 0) total = std::min(total, steps * examples / static_cast<double>(train_examples));
  }
  return config.model().has_manifest() && std::isinf(total) ? 0 : total;
}

double JobState::Epoch() const {
  const ProgressTotals totals = progress.Totals();
  // Clients with data of their own say it as they like.
  if (IsOwn()) return totals.epoch;
  if (train_examples == 0) return 0;
  if (IsStatic()) return totals.epoch;
  double epoch = static_cast<double>(totals.examples) / static_cast<double>(train_examples);
  // What a worker has computed and not pushed before it was lost counts here, and again when another does it.
  if (config.training().epochs() > 0) epoch = std::min(epoch, static_cast<double>(config.training().epochs()));
  return epoch;
}

double JobState::SecondsLeft() const {
  const double rate = progress.ExamplesPerSecond();
  if (phase != v1::JobStatus::TRAINING || rate <= 0 || train_examples == 0 || EpochsTotal() == 0) return -1;
  return std::max(0.0, (EpochsTotal() - Epoch()) * static_cast<double>(train_examples) / rate);
}

JobProgress::Interval JobState::TakeInterval(absl::Time now) {
  JobProgress::Interval interval = progress.TakeInterval(now);
  interval.gradient_noise = RecentGradientNoise();
  return interval;
}

v1::GradientNoise JobState::RecentGradientNoise() const {
  const bool is_measured = held_plan.mode() == v1::SYNC && held_plan.members_size() > 1;
  return is_measured ? gradient_noise.Recent() : v1::GradientNoise();
}

JobSnapshot JobState::Snapshot(absl::Time now) const {
  JobSnapshot snapshot;
  const ProgressTotals totals = progress.Totals();
  snapshot.step = totals.step;
  snapshot.epoch = Epoch();
  snapshot.seconds = Seconds(now);
  snapshot.plan = held_plan;
  for (const Member* worker : membership.Alive(v1::TaskId::WORKER)) {
    const v1::WorkerProgress& last = worker->progress;
    snapshot.workers.push_back({.index = worker->id.index(),
                                .step = last.step(),
                                .generation = last.generation(),
                                .mean_step_seconds = last.mean_step_seconds(),
                                .work_seconds = {last.work_seconds().begin(), last.work_seconds().end()},
                                .work_rate = WorkRate(last),
                                .waiting_share = WaitingShare(last),
                                .waiting_seconds = last.waiting_seconds()});
  }
  snapshot.examples_per_second = progress.ExamplesPerSecond();
  snapshot.waiting_share = totals.WaitingShare();
  snapshot.mean_staleness = totals.StalenessMean();
  snapshot.pushes = totals.StalenessCount();
  snapshot.staleness_sum = totals.StalenessSum();
  snapshot.gradients = gradient_noise.sums();
  if (const JobProgress::Interval& last = progress.last_interval(); last.measured) {
    snapshot.training_loss = last.loss;
    snapshot.training_accuracy = last.accuracy;
  }
  if (const v1::EvaluationResult* result = evaluations.last_result()) {
    snapshot.evaluation = {.loss = result->loss(), .accuracy = result->accuracy()};
  }
  return snapshot;
}

std::optional<v1::TaskId> JobState::InitialWeightsFrom() const {
  if (!AwaitsWeights()) return std::nullopt;
  if (assigner && membership.FindAlive(*assigner) != nullptr) return assigner;
  const std::vector<const Member*> workers = membership.Alive(v1::TaskId::WORKER);
  if (workers.empty()) return std::nullopt;
  const auto lowest = std::min_element(workers.begin(), workers.end(),
                                       [](const Member* a, const Member* b) { return a->id.index() < b->id.index(); });
  return (*lowest)->id;
}

v1::Directive JobState::Describe(bool with_plan) const {
  v1::Directive directive;
  v1::JobDescription* job = directive.mutable_job();
  job->set_fingerprint(job_fingerprint);
  for (const Member* server : membership.Alive(v1::TaskId::SERVER)) {
    if (!std::binary_search(servers.begin(), servers.end(), server->id.index())) continue;
    v1::ServerInfo* info = job->add_servers();
    *info->mutable_task() = server->id;
    info->set_address(server->address);
    if (server->info.has_shared_memory()) *info->mutable_shared_memory() = server->info.shared_memory();
  }
  job->mutable_chunks()->Add(chunks.begin(), chunks.end());
  if (restore) {
    *job->mutable_restore() = restore->cut();
    *job->mutable_restore_servers() = restore->servers();
  }
  job->set_term(term);
  job->set_rollback_term(rollback_term);
  if (with_plan && held_plan.generation() != 0) *job->mutable_plan() = held_plan;
  if (const std::optional<v1::TaskId> worker = InitialWeightsFrom()) *job->mutable_initial_weights_from() = *worker;
  return directive;
}

}  // namespace rubato::coordinator
