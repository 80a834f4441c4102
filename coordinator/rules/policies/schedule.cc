// The mode changes that the config lists, each once, when the job has come to its point.
#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "coordinator/rules/learning_rate_rule.h"
#include "coordinator/rules/policies/policies.h"

namespace rubato::coordinator {
namespace {

bool IsDue(const v1::ScheduledSwitch& entry, const JobSnapshot& job) {
  switch (entry.when_case()) {
    case v1::ScheduledSwitch::kAtStep:
      return job.step >= entry.at_step();
    case v1::ScheduledSwitch::kAtEpoch:
      return job.epoch >= entry.at_epoch();
    case v1::ScheduledSwitch::kAtSeconds:
      return job.seconds >= entry.at_seconds();
    case v1::ScheduledSwitch::WHEN_NOT_SET:
      break;
  }
  return false;
}

std::string WhenText(const v1::ScheduledSwitch& entry) {
  switch (entry.when_case()) {
    case v1::ScheduledSwitch::kAtStep:
      return absl::StrCat("step ", entry.at_step());
    case v1::ScheduledSwitch::kAtEpoch:
      return absl::StrCat("epoch ", entry.at_epoch());
    case v1::ScheduledSwitch::kAtSeconds:
      return absl::StrCat(entry.at_seconds(), " s");
    case v1::ScheduledSwitch::WHEN_NOT_SET:
      break;
  }
  return "no point";
}

class SchedulePolicy final : public ModePolicy {
 public:
  explicit SchedulePolicy(const v1::JobConfig& config)
      : config_(config),
        schedule_(config.consistency().schedule().begin(), config.consistency().schedule().end()),
        done_(schedule_.size(), kOpen) {}

  // Of several entries that are due, the last one in the schedule.
  std::optional<PlanChange> Decide(const JobSnapshot& job) override {
    std::optional<PlanChange> due;
    for (size_t i = 0; i < schedule_.size(); ++i) {
      const v1::ScheduledSwitch& entry = schedule_[i];
      if (done_[i] == kDone || !IsDue(entry, job)) continue;
      done_[i] = kDone;
      due.emplace();
      due->mode = entry.mode();
      due->staleness_bound = entry.staleness_bound();
      due->quorum = entry.quorum();
      due->learning_rate_scale = entry.has_learning_rate_scale()
                                     ? entry.learning_rate_scale()
                                     : LearningRateRule(config_, entry.mode(), entry.quorum());
      due->sync_every = static_cast<uint32_t>(entry.sync_every());
      if (entry.has_momentum()) due->momentum = entry.momentum();
      if (entry.has_compress()) due->compress = entry.compress();
      due->reason = absl::StrCat("schedule: ", WhenText(entry));
    }
    return due;
  }

  // A character for each entry.
  std::string Memory() const override { return done_; }
  absl::Status Restore(absl::string_view memory) override {
    if (memory.empty()) {
      done_.assign(schedule_.size(), kOpen);
      return absl::OkStatus();
    }
    const bool known = std::all_of(memory.begin(), memory.end(), [](char c) { return c == kOpen || c == kDone; });
    if (!known || memory.size() != schedule_.size()) {
      return absl::InvalidArgumentError(absl::StrCat("the memory of policy SCHEDULE: ", memory.size(),
                                                     " bytes that do not fit the config's schedule of ",
                                                     schedule_.size(), " entries"));
    }
    done_ = std::string(memory);
    return absl::OkStatus();
  }

 private:
  static constexpr char kOpen = '.';
  static constexpr char kDone = 'x';

  const v1::JobConfig config_;
  const std::vector<v1::ScheduledSwitch> schedule_;
  std::string done_;
};

}  // namespace

std::unique_ptr<ModePolicy> MakeSchedulePolicy(const v1::JobConfig& config) {
  return std::make_unique<SchedulePolicy>(config);
}

}  // namespace rubato::coordinator
