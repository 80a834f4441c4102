#ifndef RUBATO_COORDINATOR_RULES_POLICIES_POLICIES_H_
#define RUBATO_COORDINATOR_RULES_POLICIES_POLICIES_H_

#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "common/proto_enum.h"
#include "coordinator/rules/mode_policy.h"
#include "proto/job_config.pb.h"

namespace rubato::coordinator {

// One function per policy, each in the file of its name.
std::unique_ptr<ModePolicy> MakeAdaCommPolicy(const v1::JobConfig& config);
std::unique_ptr<ModePolicy> MakeBalancePolicy(const v1::JobConfig& config);
std::unique_ptr<ModePolicy> MakeDsspPolicy(const v1::JobConfig& config);
std::unique_ptr<ModePolicy> MakePostLocalPolicy(const v1::JobConfig& config);
std::unique_ptr<ModePolicy> MakeQuorumPolicy(const v1::JobConfig& config);
std::unique_ptr<ModePolicy> MakeSchedulePolicy(const v1::JobConfig& config);
std::unique_ptr<ModePolicy> MakeStalenessBudgetPolicy(const v1::JobConfig& config);
std::unique_ptr<ModePolicy> MakeStragglerPolicy(const v1::JobConfig& config);
std::unique_ptr<ModePolicy> MakeSyncThenAsyncPolicy(const v1::JobConfig& config);

// The policy that consistency.policy names. InvalidArgument: it names none, which a valid config does not.
inline absl::StatusOr<std::unique_ptr<ModePolicy>> MakeModePolicy(const v1::JobConfig& config) {
  switch (config.consistency().policy()) {
    case v1::ConsistencyConfig::SCHEDULE:
      return MakeSchedulePolicy(config);
    case v1::ConsistencyConfig::QUORUM:
      return MakeQuorumPolicy(config);
    case v1::ConsistencyConfig::SYNC_THEN_ASYNC:
      return MakeSyncThenAsyncPolicy(config);
    case v1::ConsistencyConfig::BALANCE:
      return MakeBalancePolicy(config);
    case v1::ConsistencyConfig::STRAGGLER:
      return MakeStragglerPolicy(config);
    case v1::ConsistencyConfig::DSSP:
      return MakeDsspPolicy(config);
    case v1::ConsistencyConfig::STALENESS_BUDGET:
      return MakeStalenessBudgetPolicy(config);
    case v1::ConsistencyConfig::POST_LOCAL:
      return MakePostLocalPolicy(config);
    case v1::ConsistencyConfig::ADACOMM:
      return MakeAdaCommPolicy(config);
    case v1::ConsistencyConfig::POLICY_UNSPECIFIED:
      RUBATO_NO_VALUE_OF(v1::ConsistencyConfig_Policy_ConsistencyConfig_Policy) : break;
  }
  return absl::InvalidArgumentError(
      absl::StrCat("consistency.policy: value ", static_cast<int>(config.consistency().policy()), " names no policy"));
}

}  // namespace rubato::coordinator

#endif  // RUBATO_COORDINATOR_RULES_POLICIES_POLICIES_H_
