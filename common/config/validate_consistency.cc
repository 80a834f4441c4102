#include <algorithm>
#include <limits>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/config/compression.h"
#include "common/config/limits.h"
#include "common/config/local_sgd.h"
#include "common/config/planned_momentum.h"
#include "common/config/validate_parts.h"
#include "common/optimizer_traits.h"

namespace rubato {
namespace {

constexpr int64_t kMaxSyncEvery = int64_t{1} << 20;
// Examples that a worker holds for one step.
constexpr int64_t kMaxExamplesPerStep = std::numeric_limits<int32_t>::max();

std::string ModeText(v1::Mode mode) {
  return v1::Mode_IsValid(mode) ? v1::Mode_Name(mode) : absl::StrCat(static_cast<int>(mode));
}

void CheckMode(absl::string_view path, v1::Mode mode, ErrorList* errors) {
  if (mode == v1::MODE_UNSPECIFIED || !v1::Mode_IsValid(mode)) errors->Add(path, ModeText(mode), "SYNC, SSP, ASYNC");
}

void CheckBound(absl::string_view path, v1::Mode mode, int64_t bound, ErrorList* errors) {
  if (mode == v1::SSP) {
    if (bound < 1 || bound > kMaxStalenessBound) {
      errors->Add(path, absl::StrCat(bound), absl::StrCat("1 to ", kMaxStalenessBound, " if the mode is SSP"));
    }
  } else if (bound != 0) {
    errors->Add(path, absl::StrCat(bound), "absent unless the mode is SSP");
  }
}

void CheckPoint(const std::string& path, const v1::ScheduledSwitch& entry, ErrorList* errors) {
  switch (entry.when_case()) {
    case v1::ScheduledSwitch::kAtStep:
      if (entry.at_step() < 1) errors->Add(path + ".at_step", absl::StrCat(entry.at_step()), "1 or more");
      break;
    case v1::ScheduledSwitch::kAtEpoch:
      errors->CheckNumber(path + ".at_epoch", entry.at_epoch(), entry.at_epoch() > 0, "a number > 0");
      break;
    case v1::ScheduledSwitch::kAtSeconds:
      errors->CheckNumber(path + ".at_seconds", entry.at_seconds(), entry.at_seconds() > 0, "a number > 0");
      break;
    case v1::ScheduledSwitch::WHEN_NOT_SET:
      errors->Add(path, "without a point", "exactly one of at_step, at_epoch, at_seconds");
      break;
  }
}

// Of the plan in `mode` that begins at `path`.
void CheckQuorum(const std::string& path, v1::Mode mode, uint32_t quorum, const v1::JobConfig& config,
                 ErrorList* errors) {
  if (quorum == 0) return;
  if (quorum > config.cluster().workers()) {
    errors->Add(path, absl::StrCat(quorum), absl::StrCat("0 to cluster.workers, ", config.cluster().workers()));
  }
  if (mode != v1::SYNC) {
    errors->Add(path, absl::StrCat(quorum),
                "absent unless the mode is SYNC; a scheduled switch to SYNC has a quorum of its own");
  }
  if (config.data().dispatch() == v1::DataConfig::STATIC) {
    errors->Add(path, absl::StrCat(quorum), "absent if data.dispatch is STATIC");
  }
}

// Of a scheduled switch.
void CheckMomentum(const std::string& path, double momentum, const v1::JobConfig& config, ErrorList* errors) {
  if (const std::string why = WhyNoPlannedMomentum(config); !why.empty()) {
    errors->Add(path, NumberText(momentum), absl::StrCat("absent, because ", why));
  }
  const NumberRange& range = optimizer::kMomentum.range;
  errors->CheckNumber(path, momentum, range.holds(momentum), range.text);
}

void ValidateScheduledSwitches(const v1::JobConfig& config, ErrorList* errors) {
  const v1::ConsistencyConfig& consistency = config.consistency();
  std::set<std::pair<int, double>> points;
  for (int i = 0; i < consistency.schedule_size(); ++i) {
    const v1::ScheduledSwitch& entry = consistency.schedule(i);
    const std::string path = absl::StrCat("consistency.schedule[", i, "]");
    CheckPoint(path, entry, errors);
    CheckMode(path + ".mode", entry.mode(), errors);
    CheckBound(path + ".staleness_bound", entry.mode(), entry.staleness_bound(), errors);
    CheckQuorum(path + ".quorum", entry.mode(), entry.quorum(), config, errors);
    if (entry.has_learning_rate_scale()) {
      errors->CheckNumber(path + ".learning_rate_scale", entry.learning_rate_scale(), entry.learning_rate_scale() > 0,
                          "a number > 0");
    }
    if (entry.has_momentum()) CheckMomentum(path + ".momentum", entry.momentum(), config, errors);
    if (entry.has_compress() && !CompressesPushes(config)) {
      errors->Add(path + ".compress", entry.compress() ? "true" : "false",
                  "absent if compression.push encodes nothing");
    }
    // At most one of the three is not zero.
    const double point = static_cast<double>(entry.at_step()) + entry.at_epoch() + entry.at_seconds();
    if (entry.when_case() != v1::ScheduledSwitch::WHEN_NOT_SET && !points.insert({entry.when_case(), point}).second) {
      errors->Add(path, NumberText(point), "a point that no earlier entry of the schedule has");
    }
  }
}

// Every mode of the job is SYNC.
void CheckSyncAlone(const v1::ConsistencyConfig& consistency, const char* allowed, ErrorList* errors) {
  if (consistency.mode() == v1::SSP || consistency.mode() == v1::ASYNC) {
    errors->Add("consistency.mode", ModeText(consistency.mode()), allowed);
  }
  for (int i = 0; i < consistency.schedule_size(); ++i) {
    const v1::Mode mode = consistency.schedule(i).mode();
    if (mode == v1::SSP || mode == v1::ASYNC) {
      errors->Add(absl::StrCat("consistency.schedule[", i, "].mode"), ModeText(mode), allowed);
    }
  }
}

void CheckLocalSgdMode(const std::string& path, v1::Mode mode, const v1::JobConfig& config, ErrorList* errors) {
  if (mode != v1::SSP || !TrainsLocally(config)) return;
  errors->Add(path, ModeText(mode), "SYNC, ASYNC if " + WhyLocal(config));
}

void ValidateScheduledSyncEvery(const v1::JobConfig& config, ErrorList* errors) {
  for (int i = 0; i < config.consistency().schedule_size(); ++i) {
    const v1::ScheduledSwitch& entry = config.consistency().schedule(i);
    const std::string path = absl::StrCat("consistency.schedule[", i, "]");
    CheckLocalSgdMode(path + ".mode", entry.mode(), config, errors);
    if (!entry.has_sync_every()) continue;
    CheckSyncEvery(path + ".sync_every", entry.sync_every(), config, errors);
    if (config.data().dispatch() == v1::DataConfig::STATIC) {
      errors->Add(path + ".sync_every", absl::StrCat(entry.sync_every()), "absent if data.dispatch is STATIC");
    }
  }
}

}  // namespace

void CheckSyncEvery(const std::string& path, int64_t sync_every, const v1::JobConfig& config, ErrorList* errors) {
  errors->CheckInteger(path, sync_every, 1, kMaxSyncEvery);
  const int64_t batch = config.training().batch_size();
  if (sync_every <= 1 || sync_every > kMaxSyncEvery || batch < 1 || sync_every <= kMaxExamplesPerStep / batch) return;
  errors->Add(path, absl::StrCat(sync_every),
              absl::StrCat("1 to ", std::max<int64_t>(1, kMaxExamplesPerStep / batch), " if training.batch_size is ",
                           batch, " (at most 2^31-1 examples a step)"));
}

void ValidateConsistency(const v1::JobConfig& config, ErrorList* errors) {
  const v1::ConsistencyConfig& consistency = config.consistency();
  CheckMode("consistency.mode", consistency.mode(), errors);
  CheckBound("consistency.staleness_bound", consistency.mode(), consistency.staleness_bound(), errors);
  CheckQuorum("consistency.quorum", consistency.mode(), consistency.quorum(), config, errors);
  ValidatePolicy(config, errors);
  ValidateScheduledSwitches(config, errors);
  if (config.data().dispatch() == v1::DataConfig::STATIC) {
    CheckSyncAlone(consistency, "SYNC if data.dispatch is STATIC", errors);
  }
  // The mean takes the weights' place: in other modes it would be of one worker alone.
  if (config.optimizer().algorithm() == v1::OptimizerConfig::MEAN) {
    CheckSyncAlone(consistency, "SYNC if optimizer.algorithm is MEAN", errors);
  }
  CheckSyncEvery("consistency.sync_every", consistency.sync_every(), config, errors);
  CheckLocalSgdMode("consistency.mode", consistency.mode(), config, errors);
  ValidateScheduledSyncEvery(config, errors);
  ValidateCompensation(config, errors);
  if (consistency.on_non_finite() != v1::ConsistencyConfig::SKIP_STEP &&
      consistency.on_non_finite() != v1::ConsistencyConfig::STOP_JOB) {
    errors->Add("consistency.on_non_finite", absl::StrCat(static_cast<int>(consistency.on_non_finite())),
                "SKIP_STEP, STOP_JOB");
  }
}

}  // namespace rubato
