#include <algorithm>
#include <limits>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/config/awaited_model.h"
#include "common/config/batch_sizes.h"
#include "common/config/limits.h"
#include "common/config/local_sgd.h"
#include "common/config/validate_parts.h"

namespace rubato {
namespace {

using Consistency = v1::ConsistencyConfig;

constexpr int64_t kWindowStepsMax = std::numeric_limits<int32_t>::max();
constexpr int64_t kCountMax = 1000;
constexpr double kMostBatches = 64;

void CheckName(Consistency::Policy policy, ErrorList* errors) {
  if (policy != Consistency::POLICY_UNSPECIFIED && Consistency::Policy_IsValid(policy)) return;
  const google::protobuf::EnumDescriptor* all = Consistency::Policy_descriptor();
  std::vector<std::string> names;
  for (int i = 1; i < all->value_count(); ++i) names.push_back(all->value(i)->name());
  errors->Add("consistency.policy", absl::StrCat(static_cast<int>(policy)), absl::StrJoin(names, ", "));
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
                "absent if training.batch_size is");
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
                absl::StrCat("1 to ", kMaxStalenessBound, " if `then` is SSP"));
  } else if (policy.then() == v1::ASYNC && bound != 0) {
    errors->Add(path + ".staleness_bound", absl::StrCat(bound), "absent unless `then` is SSP");
  }
  if (policy.then() == v1::SSP && BatchesPerStep(config) > 1) {
    errors->Add(path + ".then", "SSP",
                absl::StrCat("ASYNC if consistency.sync_every is ", config.consistency().sync_every()));
  }
  if (config.optimizer().algorithm() == v1::OptimizerConfig::MEAN) {
    errors->Add("consistency.policy", "SYNC_THEN_ASYNC", "another one if optimizer.algorithm is MEAN");
  }
  if (config.training().epochs() == 0 && config.training().max_steps() == 0) {
    errors->Add("consistency.policy", "SYNC_THEN_ASYNC",
                "another one if neither training.epochs nor max_steps is given");
  }
}

// What BALANCE cannot be combined with: a batch is the plan's alone to size, and every example counts once in a step.
void CheckBalanced(const v1::JobConfig& config, ErrorList* errors) {
  if (IsClientJob(config)) {
    errors->Add("consistency.policy", "BALANCE", "another one if clients batch as they like");
  }
  if (BatchesPerStep(config) > 1) {
    errors->Add("consistency.sync_every", absl::StrCat(config.consistency().sync_every()),
                "1 if consistency.policy is BALANCE");
  }
  if (config.consistency().quorum() != 0) {
    errors->Add("consistency.quorum", absl::StrCat(config.consistency().quorum()),
                "0 if consistency.policy is BALANCE");
  }
}

void CheckBalance(const v1::JobConfig& config, ErrorList* errors) {
  const v1::BalancePolicy& policy = config.consistency().balance();
  CheckGain("consistency.balance.imbalance_min", policy.imbalance_min(), errors);
  const double most = policy.batch_max();
  errors->CheckNumber("consistency.balance.batch_max", most, most > 1 && most <= kMostBatches, "over 1, up to 64");
  if (most > 1 && most <= kMostBatches && LargestBatch(config) > kMaxBatch) {
    errors->Add(
        "consistency.balance.batch_max", NumberText(most),
        absl::StrCat("up to ", kMaxBatch, " examples, if training.batch_size is ", config.training().batch_size()));
  }
  CheckBalanced(config, errors);
}

void CheckStraggler(const v1::JobConfig& config, ErrorList* errors) {
  const v1::StragglerPolicy& policy = config.consistency().straggler();
  const double share = policy.share_min();
  errors->CheckNumber("consistency.straggler.deviations", policy.deviations(), policy.deviations() > 0, "a number > 0");
  CheckGain("consistency.straggler.gain_min", policy.gain_min(), errors);
  errors->CheckNumber("consistency.straggler.share_min", share, share > 0 && share <= 1, "over 0, up to 1");
  if (config.consistency().quorum() != 0) {
    errors->Add("consistency.quorum", absl::StrCat(config.consistency().quorum()),
                "0 if consistency.policy is STRAGGLER");
  }
}

void CheckDssp(const v1::JobConfig& config, ErrorList* errors) {
  const v1::DsspPolicy& policy = config.consistency().dssp();
  const int64_t bound = config.consistency().staleness_bound();
  errors->CheckInteger("consistency.dssp.bound_min", policy.bound_min(), 1, kMaxStalenessBound);
  errors->CheckInteger("consistency.dssp.bound_max", policy.bound_max(), std::max<int64_t>(policy.bound_min(), 1),
                       kMaxStalenessBound);
  CheckGain("consistency.dssp.gain_min", policy.gain_min(), errors);
  if (config.consistency().mode() == v1::SSP && (bound < policy.bound_min() || bound > policy.bound_max())) {
    errors->Add("consistency.staleness_bound", absl::StrCat(bound),
                "consistency.dssp.bound_min to bound_max if consistency.policy is DSSP");
  }
}

void CheckStalenessBudget(const v1::JobConfig& config, ErrorList* errors) {
  const Consistency& consistency = config.consistency();
  const v1::StalenessBudgetPolicy& policy = consistency.staleness_budget();
  const double room = policy.room();
  errors->CheckNumber("consistency.staleness_budget.budget", policy.budget(), policy.budget() > 0, "a number > 0");
  errors->CheckNumber("consistency.staleness_budget.room", room, room > 0 && room < 1, "over 0, under 1");
  errors->CheckInteger("consistency.staleness_budget.bound_max", policy.bound_max(), 1, kMaxStalenessBound);
  CheckGain("consistency.staleness_budget.gain_min", policy.gain_min(), errors);
  if (consistency.mode() == v1::SSP && consistency.staleness_bound() > policy.bound_max()) {
    errors->Add("consistency.staleness_bound", absl::StrCat(consistency.staleness_bound()),
                "up to consistency.staleness_budget.bound_max if consistency.policy is STALENESS_BUDGET");
  }
  if (BatchesPerStep(config) > 1) {
    errors->Add("consistency.sync_every", absl::StrCat(consistency.sync_every()),
                "1 if consistency.policy is STALENESS_BUDGET");
  }
  if (consistency.quorum() != 0) {
    errors->Add("consistency.quorum", absl::StrCat(consistency.quorum()),
                "0 if consistency.policy is STALENESS_BUDGET");
  }
  if (config.optimizer().algorithm() == v1::OptimizerConfig::MEAN) {
    errors->Add("consistency.policy", "STALENESS_BUDGET", "another one if optimizer.algorithm is MEAN");
  }
}

void CheckPostLocal(const v1::JobConfig& config, ErrorList* errors) {
  const std::string path = "consistency.post_local";
  const Consistency& consistency = config.consistency();
  const v1::PostLocalPolicy& policy = consistency.post_local();
  CheckSyncEvery(path + ".sync_every", policy.sync_every(), config, errors);
  if (policy.sync_every() >= 1 && policy.sync_every() <= consistency.sync_every()) {
    errors->Add(path + ".sync_every", absl::StrCat(policy.sync_every()),
                absl::StrCat("more than consistency.sync_every, ", consistency.sync_every()));
  }
  const double factor = policy.rate_factor();
  errors->CheckNumber(path + ".rate_factor", factor, factor > 0 && factor < 1, "over 0, under 1");
  CheckGain(path + ".gain_min", policy.gain_min(), errors);
  CheckGain(path + ".cost_max", policy.cost_max(), errors);
  if (consistency.quorum() != 0) {
    errors->Add("consistency.quorum", absl::StrCat(consistency.quorum()), "0 if consistency.policy is POST_LOCAL");
  }
  if (IsClientJob(config) || config.optimizer().algorithm() == v1::OptimizerConfig::MEAN) {
    errors->Add("consistency.policy", "POST_LOCAL", "another one if workers do not apply the optimizer themselves");
  }
}

void CheckAdaComm(const Consistency& consistency, ErrorList* errors) {
  const std::string path = "consistency.adacomm";
  const v1::AdaCommPolicy& policy = consistency.adacomm();
  const int64_t most = consistency.sync_every();
  if (most < 2) {
    errors->Add("consistency.sync_every", absl::StrCat(most), "2 or more if consistency.policy is ADACOMM");
  } else {
    errors->CheckInteger(path + ".sync_every_min", policy.sync_every_min(), 1, most - 1);
  }
  errors->CheckInteger(path + ".interval_windows", policy.interval_windows(), 1, kCountMax);
  errors->CheckNumber(path + ".decay", policy.decay(), policy.decay() > 0 && policy.decay() < 1, "over 0, under 1");
  CheckGain(path + ".gain_min", policy.gain_min(), errors);
  if (consistency.quorum() != 0) {
    errors->Add("consistency.quorum", absl::StrCat(consistency.quorum()), "0 if consistency.policy is ADACOMM");
  }
}

// The mode that a job with the policy has to begin in; MODE_UNSPECIFIED: any.
v1::Mode FirstMode(Consistency::Policy policy) {
  if (policy == Consistency::STALENESS_BUDGET) return v1::MODE_UNSPECIFIED;
  return policy == Consistency::DSSP ? v1::SSP : v1::SYNC;
}

// What holds for each policy that measures.
void CheckBeginning(const v1::JobConfig& config, ErrorList* errors) {
  const Consistency& consistency = config.consistency();
  const std::string policy = Consistency::Policy_Name(consistency.policy());
  const v1::Mode first = FirstMode(consistency.policy());
  if (first != v1::MODE_UNSPECIFIED && consistency.mode() != first) {
    errors->Add("consistency.mode", v1::Mode_IsValid(consistency.mode()) ? v1::Mode_Name(consistency.mode()) : "",
                absl::StrCat(v1::Mode_Name(first), " if consistency.policy is ", policy));
  }
  if (consistency.schedule_size() > 0) {
    errors->Add("consistency.schedule", absl::StrCat(consistency.schedule_size(), " entries"),
                absl::StrCat("none if consistency.policy is ", policy));
  }
  if (config.data().dispatch() == v1::DataConfig::STATIC) {
    errors->Add("consistency.policy", policy, "SCHEDULE if data.dispatch is STATIC");
  }
}

// The settings of other policies than the one that the job has.
void CheckOthers(const Consistency& consistency, ErrorList* errors) {
  const Consistency::Policy policy = consistency.policy();
  const auto only_for = [&](Consistency::Policy owner, const char* field, bool is_there) {
    if (policy != owner && is_there) {
      errors->Add(absl::StrCat("consistency.", field), "given",
                  absl::StrCat("absent unless consistency.policy is ", Consistency::Policy_Name(owner)));
    }
  };
  only_for(Consistency::QUORUM, "quorum_policy", consistency.has_quorum_policy());
  only_for(Consistency::SYNC_THEN_ASYNC, "sync_then_async", consistency.has_sync_then_async());
  only_for(Consistency::BALANCE, "balance", consistency.has_balance());
  only_for(Consistency::STRAGGLER, "straggler", consistency.has_straggler());
  only_for(Consistency::DSSP, "dssp", consistency.has_dssp());
  only_for(Consistency::STALENESS_BUDGET, "staleness_budget", consistency.has_staleness_budget());
  only_for(Consistency::POST_LOCAL, "post_local", consistency.has_post_local());
  only_for(Consistency::ADACOMM, "adacomm", consistency.has_adacomm());
}

}  // namespace

void ValidatePolicy(const v1::JobConfig& config, ErrorList* errors) {
  const Consistency& consistency = config.consistency();
  CheckName(consistency.policy(), errors);
  CheckOthers(consistency, errors);
  if (consistency.policy() == Consistency::QUORUM) CheckQuorumPolicy(config, errors);
  if (consistency.policy() == Consistency::SYNC_THEN_ASYNC) CheckSyncThenAsync(config, errors);
  if (consistency.policy() == Consistency::BALANCE) CheckBalance(config, errors);
  if (consistency.policy() == Consistency::STRAGGLER) CheckStraggler(config, errors);
  if (consistency.policy() == Consistency::DSSP) CheckDssp(config, errors);
  if (consistency.policy() == Consistency::STALENESS_BUDGET) CheckStalenessBudget(config, errors);
  if (consistency.policy() == Consistency::POST_LOCAL) CheckPostLocal(config, errors);
  if (consistency.policy() == Consistency::ADACOMM) CheckAdaComm(consistency, errors);
  // Policies that measure have it from the defaults.
  if (!consistency.has_policy_pace()) return;
  if (consistency.policy() == Consistency::SCHEDULE) {
    errors->Add("consistency.policy_pace", "given", "absent if consistency.policy is SCHEDULE");
    return;
  }
  CheckBeginning(config, errors);
  CheckPace(consistency.policy_pace(), errors);
}

}  // namespace rubato
