#include <limits>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/config/limits.h"
#include "common/config/local_sgd.h"
#include "common/config/validate_parts.h"

namespace rubato {
namespace {

using Consistency = v1::ConsistencyConfig;

constexpr int64_t kWindowStepsMax = std::numeric_limits<int32_t>::max();
constexpr int64_t kCountMax = 1000;

void CheckName(Consistency::Policy policy, ErrorList* errors) {
  if (policy != Consistency::POLICY_UNSPECIFIED && Consistency::Policy_IsValid(policy)) return;
  const google::protobuf::EnumDescriptor* all = Consistency::Policy_descriptor();
  std::vector<std::string> names;
  for (int i = 1; i < all->value_count(); ++i) names.push_back(all->value(i)->name());
  errors->Add("consistency.policy", absl::StrCat(static_cast<int>(policy)), absl::StrJoin(names, ", "));
}

// A message of settings that only some policies have.
void CheckAbsent(const std::string& path, bool is_there, const std::string& policies, ErrorList* errors) {
  if (is_there) errors->Add(path, "given", absl::StrCat("absent unless consistency.policy is ", policies));
}

void CheckPace(const v1::PolicyPace& pace, ErrorList* errors) {
  errors->CheckInteger("consistency.policy_pace.window_steps", pace.window_steps(), 1, kWindowStepsMax);
  errors->CheckNumber("consistency.policy_pace.window_seconds", pace.window_seconds(), pace.window_seconds() > 0,
                      "a number > 0");
  errors->CheckInteger("consistency.policy_pace.windows_agreeing", pace.windows_agreeing(), 1, kCountMax);
  errors->CheckInteger("consistency.policy_pace.windows_of_rest", pace.windows_of_rest(), 0, kCountMax);
  errors->CheckInteger("consistency.policy_pace.changes_max", pace.changes_max(), 1, kCountMax);
}

void CheckGain(const std::string& path, double gain, ErrorList* errors) {
  errors->CheckNumber(path, gain, gain > 0, "a number > 0");
}

void CheckQuorumPolicy(const v1::JobConfig& config, ErrorList* errors) {
  const v1::QuorumPolicy& policy = config.consistency().quorum_policy();
  const double share = policy.share_min();
  errors->CheckNumber("consistency.quorum_policy.share_min", share, share > 0 && share <= 1, "over 0, up to 1");
  CheckGain("consistency.quorum_policy.gain_min", policy.gain_min(), errors);
  if (policy.has_noise_scale() && config.training().batch_size() == 0) {
    errors->Add("consistency.quorum_policy.noise_scale", NumberText(policy.noise_scale()),
                "absent where training.batch_size is");
  } else if (policy.has_noise_scale()) {
    errors->CheckNumber("consistency.quorum_policy.noise_scale", policy.noise_scale(), policy.noise_scale() > 0,
                        "a number > 0, or absent");
  }
}

void CheckSyncThenAsync(const v1::JobConfig& config, ErrorList* errors) {
  const std::string path = "consistency.sync_then_async";
  const v1::SyncThenAsyncPolicy& policy = config.consistency().sync_then_async();
  errors->CheckNumber(path + ".share", policy.share(), policy.share() >= 0 && policy.share() <= 1, "0 to 1");
  CheckGain(path + ".gain_min", policy.gain_min(), errors);
  CheckGain(path + ".cost_max", policy.cost_max(), errors);
  const int64_t bound = policy.staleness_bound();
  if (policy.then() != v1::ASYNC && policy.then() != v1::SSP) {
    errors->Add(path + ".then", absl::StrCat(static_cast<int>(policy.then())), "ASYNC, SSP");
  } else if (policy.then() == v1::SSP && (bound < 1 || bound > kMaxStalenessBound)) {
    errors->Add(path + ".staleness_bound", absl::StrCat(bound),
                absl::StrCat("1 to ", kMaxStalenessBound, " where `then` is SSP"));
  } else if (policy.then() == v1::ASYNC && bound != 0) {
    errors->Add(path + ".staleness_bound", absl::StrCat(bound), "absent unless `then` is SSP");
  }
  if (policy.then() == v1::SSP && BatchesPerStep(config) > 1) {
    errors->Add(path + ".then", "SSP",
                absl::StrCat("ASYNC where consistency.sync_every is ", config.consistency().sync_every()));
  }
  if (config.optimizer().algorithm() == v1::OptimizerConfig::MEAN) {
    errors->Add("consistency.policy", "SYNC_THEN_ASYNC", "another one where optimizer.algorithm is MEAN");
  }
  if (config.training().epochs() == 0 && config.training().max_steps() == 0) {
    errors->Add("consistency.policy", "SYNC_THEN_ASYNC",
                "another one where neither training.epochs nor max_steps is given");
  }
}

// What holds for each policy that measures: it begins in SYNC, and what it changes to must be allowed.
void CheckBeginning(const v1::JobConfig& config, ErrorList* errors) {
  const Consistency& consistency = config.consistency();
  const std::string policy = Consistency::Policy_Name(consistency.policy());
  if (consistency.mode() != v1::SYNC) {
    errors->Add("consistency.mode", v1::Mode_IsValid(consistency.mode()) ? v1::Mode_Name(consistency.mode()) : "",
                absl::StrCat("SYNC where consistency.policy is ", policy));
  }
  if (consistency.schedule_size() > 0) {
    errors->Add("consistency.schedule", absl::StrCat(consistency.schedule_size(), " entries"),
                absl::StrCat("none where consistency.policy is ", policy));
  }
  if (config.data().dispatch() == v1::DataConfig::STATIC) {
    errors->Add("consistency.policy", policy, "SCHEDULE where data.dispatch is STATIC");
  }
}

}  // namespace

void ValidatePolicy(const v1::JobConfig& config, ErrorList* errors) {
  const Consistency& consistency = config.consistency();
  CheckName(consistency.policy(), errors);
  const bool quorum = consistency.policy() == Consistency::QUORUM;
  const bool sync_then_async = consistency.policy() == Consistency::SYNC_THEN_ASYNC;
  const bool measures = quorum || sync_then_async;
  if (!measures) {
    CheckAbsent("consistency.policy_pace", consistency.has_policy_pace(), "QUORUM or SYNC_THEN_ASYNC", errors);
  }
  if (!quorum) CheckAbsent("consistency.quorum_policy", consistency.has_quorum_policy(), "QUORUM", errors);
  if (!sync_then_async) {
    CheckAbsent("consistency.sync_then_async", consistency.has_sync_then_async(), "SYNC_THEN_ASYNC", errors);
  }
  if (!measures) return;
  CheckBeginning(config, errors);
  CheckPace(consistency.policy_pace(), errors);
  if (quorum) CheckQuorumPolicy(config, errors);
  if (sync_then_async) CheckSyncThenAsync(config, errors);
}

}  // namespace rubato
