#include <string>

#include "absl/strings/str_cat.h"
#include "common/config/limits.h"
#include "common/config/local_sgd.h"
#include "common/config/validate_parts.h"

namespace rubato {
namespace {

constexpr char kPath[] = "consistency.compensation";

std::string Field(const char* field) { return absl::StrCat(kPath, ".", field); }

// Of a job that can never be in another mode than SYNC. An operator may switch others, whatever they begin in.
void CheckOtherModes(const v1::JobConfig& config, ErrorList* errors) {
  const char* condition = nullptr;
  if (config.data().dispatch() == v1::DataConfig::STATIC) condition = "data.dispatch is STATIC";
  if (config.optimizer().algorithm() == v1::OptimizerConfig::MEAN) condition = "optimizer.algorithm is MEAN";
  if (condition == nullptr) return;
  errors->Add(kPath, "given", absl::StrCat("absent if ", condition, ": in SYNC no gradient is stale"));
}

void CheckDelayCompensation(const v1::JobConfig& config, ErrorList* errors) {
  const v1::DelayCompensation& method = config.consistency().compensation().dc_asgd();
  errors->CheckNumber(Field("dc_asgd.lambda"), method.lambda(), method.lambda() > 0, "a number > 0");
  if (TrainsLocally(config)) {
    errors->Add(kPath, "dc_asgd", absl::StrCat("another one if ", WhyLocal(config), ": moves are no gradients"));
  }
}

void CheckDelayedNesterov(const v1::JobConfig& config, ErrorList* errors) {
  const v1::DelayedNesterov& method = config.consistency().compensation().delayed_nesterov();
  errors->CheckInteger(Field("delayed_nesterov.period"), method.period(), 1, kMaxStalenessBound);
  const double momentum = method.momentum();
  errors->CheckNumber(Field("delayed_nesterov.momentum"), momentum, momentum >= 0 && momentum < 1,
                      "0 or more, less than 1");
  const double rate = method.learning_rate();
  if (TrainsLocally(config)) {
    errors->CheckNumber(Field("delayed_nesterov.learning_rate"), rate, rate > 0, "a number > 0");
    return;
  }
  if (method.has_learning_rate()) {
    errors->Add(Field("delayed_nesterov.learning_rate"), NumberText(rate),
                "absent unless consistency.sync_every is more than 1; the rate is optimizer.learning_rate");
  }
  // What a client offers is another error.
  if (config.model().has_manifest()) return;
  const v1::OptimizerConfig::Algorithm algorithm = config.optimizer().algorithm();
  if (algorithm != v1::OptimizerConfig::SGD && algorithm != v1::OptimizerConfig::ALGORITHM_UNSPECIFIED) {
    errors->Add("optimizer.algorithm", v1::OptimizerConfig::Algorithm_Name(algorithm),
                "SGD if consistency.compensation is delayed_nesterov, which has a momentum of its own");
  }
}

}  // namespace

void ValidateCompensation(const v1::JobConfig& config, ErrorList* errors) {
  if (!config.consistency().has_compensation()) return;
  CheckOtherModes(config, errors);
  const v1::CompensationConfig& compensation = config.consistency().compensation();
  switch (compensation.method_case()) {
    case v1::CompensationConfig::kStalenessAware:
      return;
    case v1::CompensationConfig::kRingmaster:
      return errors->CheckInteger(Field("ringmaster.threshold"), compensation.ringmaster().threshold(), 1,
                                  kMaxStalenessBound);
    case v1::CompensationConfig::kDcAsgd:
      return CheckDelayCompensation(config, errors);
    case v1::CompensationConfig::kGapAware:
      if (config.optimizer().algorithm() == v1::OptimizerConfig::ADAMW) {
        errors->Add(kPath, "gap_aware",
                    "another one if optimizer.algorithm is ADAMW, whose weight decay is no part of the gradient");
      }
      return;
    case v1::CompensationConfig::kDelayedNesterov:
      return CheckDelayedNesterov(config, errors);
    case v1::CompensationConfig::METHOD_NOT_SET:
      errors->Add(kPath, "without a method",
                  "exactly one of staleness_aware, ringmaster, dc_asgd, gap_aware, delayed_nesterov");
      return;
  }
}

}  // namespace rubato
