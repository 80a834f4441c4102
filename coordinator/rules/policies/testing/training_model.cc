#include "coordinator/rules/policies/testing/training_model.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <memory>
#include <optional>

#include "common/config/batch_sizes.h"
#include "common/config/defaults.h"
#include "common/config/local_sgd.h"
#include "common/gradient_noise/gradient_meter.h"
#include "common/learning_rate_schedule.h"
#include "common/metrics/step_count.h"
#include "common/random.h"
#include "coordinator/rules/gradient_noise.h"
#include "coordinator/rules/policies/policies.h"

namespace rubato::coordinator {
namespace {

constexpr int kDimensions = 16;
constexpr double kHeartbeatSeconds = 0.25;
constexpr double kNever = std::numeric_limits<double>::infinity();

using Vector = std::array<double, kDimensions>;

double Eigenvalue(int i) { return std::pow(0.01, static_cast<double>(i) / (kDimensions - 1)); }

v1::JobConfig ConfigOf(const TrainingScenario& scenario, const v1::ConsistencyConfig& consistency) {
  v1::JobConfig config;
  config.mutable_cluster()->set_workers(scenario.workers);
  config.mutable_training()->set_batch_size(scenario.batch);
  config.mutable_training()->set_max_steps(scenario.max_steps);
  config.mutable_training()->set_epochs(scenario.epochs);
  config.mutable_optimizer()->set_algorithm(v1::OptimizerConfig::SGD);
  config.mutable_optimizer()->set_learning_rate(scenario.learning_rate);
  *config.mutable_optimizer()->mutable_schedule() = scenario.schedule;
  *config.mutable_consistency() = consistency;
  FillDefaults(&config);
  return config;
}

struct Worker {
  int64_t step = 0;
  // When its step is computed; never: it waits.
  double until = kNever;
  double began = 0;
  // When its last step was over.
  double over = 0;
  // Those that it computes with, how many updates they have, and for how many examples.
  Vector weights;
  int64_t version = 0;
  int64_t batch = 0;
  int64_t batches = 1;
  v1::WorkerProgress progress;
};

class Training {
 public:
  Training(const TrainingScenario& scenario, const v1::ConsistencyConfig& consistency, uint64_t seed)
      : scenario_(scenario),
        config_(ConfigOf(scenario, consistency)),
        policy_(std::move(MakeModePolicy(config_)).value()),
        noise_(seed, StreamId("training model")),
        workers_(scenario.workers) {
    weights_.fill(1);
    const v1::ConsistencyConfig& first = config_.consistency();
    PlanChange change;
    change.mode = first.mode();
    change.staleness_bound = first.staleness_bound();
    change.quorum = first.quorum();
    change.sync_every = static_cast<uint32_t>(first.sync_every());
    SetPlan(change);
  }

  TrainingOutcome Run() {
    for (uint32_t index = 0; index < scenario_.workers; ++index) Begin(index, 0);
    double next_look = 0;
    while (step_ < scenario_.max_steps && !UsedUp() && std::isfinite(Loss())) {
      const auto next = std::min_element(workers_.begin(), workers_.end(),
                                         [](const Worker& a, const Worker& b) { return a.until < b.until; });
      if (next->until == kNever) std::abort();  // Everybody waits: the model is wrong.
      for (; next_look <= next->until; next_look += kHeartbeatSeconds) Look(next_look);
      Computed(static_cast<uint32_t>(next - workers_.begin()), next->until);
      if (outcome_.seconds_to_target == kNever && Loss() <= scenario_.target_loss) outcome_.seconds_to_target = now_;
    }
    outcome_.seconds = now_;
    outcome_.final_loss = Loss();
    return outcome_;
  }

 private:
  void SetPlan(const PlanChange& change) {
    plan_.set_generation(plan_.generation() + 1);
    plan_.set_mode(change.mode);
    plan_.set_staleness_bound(change.staleness_bound);
    plan_.set_quorum(change.quorum);
    plan_.set_learning_rate_scale(change.learning_rate_scale);
    plan_.clear_members();
    plan_.clear_decided_members();
    plan_.clear_batch_sizes();
    for (uint32_t index = 0; index < scenario_.workers; ++index) {
      plan_.add_members()->set_index(index);
      plan_.add_decided_members(index);
    }
    for (const auto& [index, examples] : change.batch_sizes) plan_.add_batch_sizes(examples);
    if (change.sync_every > 0) plan_.set_sync_every(change.sync_every);
    for (uint32_t index = 0; index < scenario_.workers; ++index) {
      workers_[index].step = step_;
      workers_[index].batch = BatchSize(config_, plan_, index);
      workers_[index].batches = BatchesPerStep(config_, plan_);
      workers_[index].progress.set_generation(plan_.generation());
    }
  }

  double Loss() const {
    double loss = 0;
    for (int i = 0; i < kDimensions; ++i) loss += Eigenvalue(i) * weights_[i] * weights_[i] / 2;
    return loss;
  }

  double Epoch() const { return examples_trained_ / static_cast<double>(scenario_.epoch_examples); }
  bool UsedUp() const { return scenario_.epochs > 0 && Epoch() >= static_cast<double>(scenario_.epochs); }

  // What the policy sees a few times a second, and what it wants.
  void Look(double now) {
    JobSnapshot job;
    job.step = step_;
    job.epoch = Epoch();
    job.seconds = now;
    job.plan = plan_;
    for (uint32_t index = 0; index < scenario_.workers; ++index) {
      const v1::WorkerProgress& progress = workers_[index].progress;
      job.workers.push_back({.index = index,
                             .step = workers_[index].step,
                             .generation = progress.generation(),
                             .mean_step_seconds = progress.mean_step_seconds(),
                             .work_seconds = {progress.work_seconds().begin(), progress.work_seconds().end()},
                             .work_rate = WorkRate(progress)});
    }
    job.pushes = pushes_;
    job.staleness_sum = staleness_sum_;
    job.training_loss = Loss();
    noise_seen_.OnHeartbeat(v1::TaskId(), meter_.moments());
    job.gradients = noise_seen_.sums();
    std::optional<PlanChange> change = policy_->Decide(job);
    if (!change.has_value()) return;
    outcome_.changes.push_back(*change);
    change_ = std::move(change);
  }

  void Begin(uint32_t index, double now) {
    Worker& worker = workers_[index];
    worker.began = now;
    worker.weights = weights_;
    worker.version = version_;
    const double part = static_cast<double>(worker.batch) / static_cast<double>(scenario_.batch);
    double seconds = 0;
    for (int64_t batch = 0; batch < worker.batches; ++batch) {
      seconds += scenario_.step_seconds(index, worker.step * worker.batches + batch);
    }
    worker.until = now + seconds * (scenario_.fixed_share + (1 - scenario_.fixed_share) * part);
  }

  // By how much the worker's batches move the weights that it began its step with.
  Vector Move(const Worker& worker) {
    Vector moved = {};
    const double deviation = scenario_.noise / std::sqrt(static_cast<double>(worker.batch));
    const double rate =
        scenario_.learning_rate * plan_.learning_rate_scale() * ScheduleFactor(scenario_.schedule, Epoch(), 0);
    const double curvature = 1 + (&worker - workers_.data()) % 2 * 2 * scenario_.difference - scenario_.difference;
    const double minimum = (curvature > 1 ? 1 : -1) * scenario_.distance / curvature;
    for (int64_t batch = 0; batch < worker.batches; ++batch) {
      for (int i = 0; i < kDimensions; ++i) {
        const double slope = curvature * Eigenvalue(i) * (worker.weights[i] - moved[i] - minimum);
        moved[i] += rate * (slope + deviation * noise_.Normal());
      }
    }
    examples_trained_ += Examples(worker);
    return moved;
  }

  static double Examples(const Worker& worker) { return static_cast<double>(worker.batch * worker.batches); }

  void Apply(const Vector& move) {
    ++version_;
    for (int i = 0; i < kDimensions; ++i) weights_[i] -= move[i];
  }

  void Computed(uint32_t index, double now) {
    now_ = now;
    Worker& worker = workers_[index];
    worker.until = kNever;
    const double work = now - worker.began;
    CountStep(now - worker.over, now - worker.over - work, worker.batch * worker.batches, &worker.progress);
    worker.over = now;
    if (plan_.mode() == v1::SYNC) {
      PushTogether(worker);
    } else {
      CountPush(worker);
      Apply(Move(worker));
      ++worker.step;
      step_ = std::max(step_, worker.step);
    }
    if (change_.has_value()) return ChangePlan();
    for (uint32_t other = 0; other < scenario_.workers; ++other) {
      if (workers_[other].until == kNever && MayBegin(workers_[other])) Begin(other, now + scenario_.overhead_seconds);
    }
  }

  // SYNC. Whoever comes too late is moved to the step that the others are at.
  void PushTogether(Worker& worker) {
    if (worker.step < step_) {
      worker.step = step_;
      return;
    }
    CountPush(worker);
    const Vector move = Move(worker);
    const double examples = Examples(worker);
    for (int i = 0; i < kDimensions; ++i) sum_[i] += examples * move[i];
    examples_ += examples;
    ++worker.step;
    moves_.push_back({.worker = static_cast<uint32_t>(&worker - workers_.data()), .examples = examples, .move = move});
    const size_t wanted = plan_.quorum() > 0 ? plan_.quorum() : scenario_.workers;
    if (moves_.size() < wanted) return;
    for (double& sum : sum_) sum /= examples_;
    if (IsMeasuredStep(step_, worker.batches)) Measure();
    Apply(sum_);
    Forget();
    ++step_;
  }

  void Forget() {
    sum_.fill(0);
    examples_ = 0;
    moves_.clear();
  }

  // As the servers would measure it.
  void Measure() {
    MeasuredUpdate update = {.generation = plan_.generation()};
    for (double sum : sum_) update.mean_square += sum * sum;
    std::vector<std::array<float, kDimensions>> sketches(moves_.size());
    for (size_t k = 0; k < moves_.size(); ++k) {
      MeasuredUpdate::Gradient gradient = {.worker = moves_[k].worker,
                                           .examples = static_cast<uint64_t>(moves_[k].examples)};
      for (double value : moves_[k].move) gradient.square += value * value;
      std::copy(moves_[k].move.begin(), moves_[k].move.end(), sketches[k].begin());
      gradient.sketch = sketches[k];
      update.gradients.push_back(gradient);
    }
    meter_.Add(update);
  }

  void CountPush(const Worker& worker) {
    ++pushes_;
    staleness_sum_ += static_cast<double>(version_ - worker.version);
  }

  bool MayBegin(const Worker& worker) const {
    if (plan_.mode() == v1::ASYNC) return true;
    if (plan_.mode() == v1::SYNC) return worker.step <= step_;
    const auto slowest = std::min_element(workers_.begin(), workers_.end(),
                                          [](const Worker& a, const Worker& b) { return a.step < b.step; });
    return worker.step <= slowest->step + plan_.staleness_bound();
  }

  // A change waits for the steps that are begun: later than in a job, which only does so on its way into SYNC.
  void ChangePlan() {
    const bool busy = std::any_of(workers_.begin(), workers_.end(), [](const Worker& w) { return w.until < kNever; });
    if (busy) return;
    Forget();
    SetPlan(*change_);
    change_.reset();
    for (uint32_t index = 0; index < scenario_.workers; ++index) Begin(index, now_ + scenario_.overhead_seconds);
  }

  const TrainingScenario& scenario_;
  const v1::JobConfig config_;
  const std::unique_ptr<ModePolicy> policy_;
  Random noise_;
  std::vector<Worker> workers_;
  Vector weights_;
  v1::Plan plan_;
  std::optional<PlanChange> change_;
  // SYNC: of the step that is collected.
  Vector sum_ = {};
  double examples_ = 0;
  struct Contribution {
    uint32_t worker;
    double examples;
    Vector move;
  };
  std::vector<Contribution> moves_;
  GradientMeter meter_{1};
  GradientNoise noise_seen_{1};
  // Updates made.
  int64_t version_ = 0;
  double pushes_ = 0;
  double staleness_sum_ = 0;
  // SYNC: the step that is collected; otherwise the furthest worker's.
  int64_t step_ = 0;
  double now_ = 0;
  double examples_trained_ = 0;
  TrainingOutcome outcome_;
};

}  // namespace

TrainingOutcome Train(const TrainingScenario& scenario, const v1::ConsistencyConfig& consistency, uint64_t seed) {
  return Training(scenario, consistency, seed).Run();
}

}  // namespace rubato::coordinator
