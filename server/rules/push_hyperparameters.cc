#include "server/rules/push_hyperparameters.h"

#include <cmath>
#include <string>

#include "absl/strings/str_cat.h"
#include "common/mutants.h"
#include "common/optimizer_traits.h"
#include "common/status.h"

namespace rubato::server {
namespace {

using Group = v1::GroupHyperparameters;

// The parameters that a push may bring, and where it has them.
struct PushedParameter {
  const OptimizerParameter& parameter;
  bool (Group::*is_set)() const;
  double (Group::*get)() const;
};

constexpr PushedParameter kPushed[] = {
    {optimizer::kMomentum, &Group::has_momentum, &Group::momentum},
    {optimizer::kBeta1, &Group::has_beta1, &Group::beta1},
    {optimizer::kBeta2, &Group::has_beta2, &Group::beta2},
    {optimizer::kRho, &Group::has_rho, &Group::rho},
    {optimizer::kEpsilon, &Group::has_epsilon, &Group::epsilon},
};

// Made for errors alone.
absl::Status Bad(int i, absl::string_view field, double value, absl::string_view allowed) {
  return absl::InvalidArgumentError(
      absl::StrCat("push_pull.groups[", i, "].", field, ": ", value, "; allowed: ", allowed));
}

absl::Status CheckNumber(int i, absl::string_view field, double value, const NumberRange& range) {
  if (std::isfinite(value) && range.holds(value)) return absl::OkStatus();
  return Bad(i, field, value, range.text);
}

absl::StatusOr<v1::OptimizerConfig> ReadGroup(const Group& group, int i, const v1::OptimizerConfig& optimizer) {
  RUBATO_RETURN_IF_ERROR(CheckNumber(i, "learning_rate", group.learning_rate(), optimizer::kNotNegative));
  RUBATO_RETURN_IF_ERROR(CheckNumber(i, "weight_decay", group.weight_decay(), optimizer::kNotNegative));
  v1::OptimizerConfig config = optimizer;
  config.set_learning_rate(group.learning_rate());
  config.set_weight_decay(group.weight_decay());
  for (const PushedParameter& pushed : kPushed) {
    if (!(group.*pushed.is_set)()) continue;
    const OptimizerParameter& parameter = pushed.parameter;
    const double value = (group.*pushed.get)();
    if (!TakesParameter(optimizer.algorithm(), parameter)) {
      return Bad(i, parameter.field, value,
                 absl::StrCat("absent with ", v1::OptimizerConfig::Algorithm_Name(optimizer.algorithm())));
    }
    RUBATO_RETURN_IF_ERROR(CheckNumber(i, parameter.field, value, parameter.range));
    (config.*parameter.set)(value);
  }
  return config;
}

}  // namespace

absl::StatusOr<std::shared_ptr<const PushHyperparameters>> PushHyperparameters::Read(const Groups& groups,
                                                                                     const Rules& rules) {
  if (rules.groups == 0) {
    return absl::InvalidArgumentError(
        "push_pull.groups: present; allowed: absent unless the job's workers are clients");
  }
  auto read = std::make_shared<PushHyperparameters>();
  for (int i = 0; i < groups.size(); ++i) {
    const uint32_t group = groups.Get(i).group();
    if (group >= rules.groups) return Bad(i, "group", group, absl::StrCat("below ", rules.groups));
    if (read->Find(group) != nullptr) return Bad(i, "group", group, "a group that is named once");
    RUBATO_ASSIGN_OR_RETURN(v1::OptimizerConfig config, ReadGroup(groups.Get(i), i, *rules.optimizer));
    read->groups_.emplace_back(group, std::move(config));
  }
  return read;
}

const v1::OptimizerConfig* PushHyperparameters::Find(uint32_t group) const {
  for (const auto& [number, config] : groups_) {
    if (number == group || RUBATO_MUTANT(kGroupsConfused)) return &config;
  }
  return nullptr;
}

bool SameHyperparameters(const v1::OptimizerConfig& a, const v1::OptimizerConfig& b) {
  bool same = a.learning_rate() == b.learning_rate() && a.weight_decay() == b.weight_decay();
  for (const PushedParameter& pushed : kPushed) {
    same = same && ParameterOf(a, pushed.parameter) == ParameterOf(b, pushed.parameter);
  }
  return same;
}

}  // namespace rubato::server
