#include "coordinator/rules/policies/measured_steps.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <utility>
#include <vector>

#include "coordinator/rules/policies/parts/ssp_replay.h"
#include "coordinator/rules/policies/parts/step_order.h"

namespace rubato::coordinator {
namespace {

// Of a step without examples.
constexpr double kLeastSeconds = 1e-6;

}  // namespace

std::optional<std::vector<const JobSnapshot::Worker*>> MembersAtWork(const JobSnapshot& job) {
  std::vector<const JobSnapshot::Worker*> members;
  for (const v1::TaskId& member : job.plan.members()) {
    const auto worker = std::find_if(job.workers.begin(), job.workers.end(),
                                     [&](const JobSnapshot::Worker& w) { return w.index == member.index(); });
    if (worker == job.workers.end() || worker->generation != job.plan.generation()) return std::nullopt;
    members.push_back(&*worker);
  }
  return members;
}

int64_t BoundOf(v1::Mode mode, int64_t staleness_bound) {
  if (mode == v1::SYNC) return 0;
  return mode == v1::SSP ? staleness_bound : kNoBound;
}

std::optional<WorkToReplay> MeasureWork(const JobSnapshot& job) {
  const std::optional<std::vector<const JobSnapshot::Worker*>> members = MembersAtWork(job);
  if (!members.has_value() || members->empty()) return std::nullopt;
  size_t count = members->front()->work_seconds.size();
  for (const JobSnapshot::Worker* member : *members) count = std::min(count, member->work_seconds.size());
  if (count < kStepsToJudge) return std::nullopt;
  WorkToReplay work = {.seconds = {}, .bound = BoundOf(job.plan.mode(), job.plan.staleness_bound())};
  double step_seconds = 0;
  for (const JobSnapshot::Worker* member : *members) {
    const std::vector<double>& all = member->work_seconds;
    std::vector<double>& latest = work.seconds.emplace_back(all.end() - static_cast<std::ptrdiff_t>(count), all.end());
    for (double& seconds : latest) seconds = std::max(seconds, kLeastSeconds);
    step_seconds += member->mean_step_seconds / static_cast<double>(members->size());
  }
  const double steps_per_second = SspStepsPerSecond(work.seconds, 0, work.bound);
  work.overhead = std::max(0.0, step_seconds - static_cast<double>(members->size()) / steps_per_second);
  return work;
}

WorkToReplay WorkHistory::Add(uint64_t generation, WorkToReplay work) {
  if (generation != std::exchange(generation_, generation)) kept_.clear();
  // An amendment takes members away.
  if (!kept_.empty() && kept_.front().seconds.size() != work.seconds.size()) kept_.clear();
  kept_.push_back(std::move(work));
  if (kept_.size() > windows_) kept_.pop_front();
  WorkToReplay all = kept_.front();
  for (size_t i = 1; i < kept_.size(); ++i) {
    for (size_t member = 0; member < all.seconds.size(); ++member) {
      const std::vector<double>& more = kept_[i].seconds[member];
      all.seconds[member].insert(all.seconds[member].end(), more.begin(), more.end());
    }
    all.overhead += kept_[i].overhead;
  }
  all.overhead /= static_cast<double>(kept_.size());
  return all;
}

double TrainedShare(const v1::TrainingConfig& training, const JobSnapshot& job) {
  const double epochs = training.epochs() > 0 ? job.epoch / static_cast<double>(training.epochs()) : 0;
  const double steps =
      training.max_steps() > 0 ? static_cast<double>(job.step) / static_cast<double>(training.max_steps()) : 0;
  return std::max(epochs, steps);
}

std::optional<MeasuredSteps> MeasureSyncSteps(const JobSnapshot& job) {
  const std::optional<std::vector<const JobSnapshot::Worker*>> members = MembersAtWork(job);
  if (!members.has_value()) return std::nullopt;
  std::vector<std::vector<double>> seconds;
  double fastest = std::numeric_limits<double>::infinity();
  for (const JobSnapshot::Worker* member : *members) {
    seconds.push_back(member->work_seconds);
    fastest = std::min(fastest, member->mean_step_seconds);
  }
  MeasuredSteps steps = {.until = MeanStepOrder(seconds), .means = MeanSteps(seconds)};
  if (steps.until.empty()) return std::nullopt;
  steps.quorum = job.plan.quorum() == 0 ? steps.members() : std::min<size_t>(job.plan.quorum(), steps.members());
  steps.overhead = std::max(0.0, fastest - steps.until[steps.quorum - 1]);
  return steps;
}

double BatchSeconds(const MeasuredSteps& steps, int64_t now, int64_t batches) {
  const double times = static_cast<double>(batches) / static_cast<double>(now);
  const double slowest = *std::max_element(steps.means.begin(), steps.means.end());
  const double by_chance = std::max(0.0, steps.until.back() - slowest);
  return (times * slowest + std::sqrt(times) * by_chance + steps.overhead) / static_cast<double>(batches);
}

}  // namespace rubato::coordinator
