#include "common/config/planned_momentum.h"

#include "absl/strings/str_cat.h"
#include "common/optimizer_traits.h"

namespace rubato {

std::string WhyNoPlannedMomentum(const v1::JobConfig& config) {
  if (config.model().has_manifest()) return "the job's clients say it with what they push";
  const v1::OptimizerConfig::Algorithm algorithm = config.optimizer().algorithm();
  if (TakesParameter(algorithm, optimizer::kMomentum)) return "";
  return absl::StrCat("optimizer.algorithm is ", v1::OptimizerConfig::Algorithm_Name(algorithm));
}

}  // namespace rubato
