#include "absl/strings/str_cat.h"
#include "common/config/local_sgd.h"
#include "common/config/validate_parts.h"

namespace rubato {

void ValidateTables(const v1::JobConfig& config, ErrorList* errors) {
  const char* const tables = config.model().has_manifest() ? "model.manifest.tables" : "model.tables";
  const auto check = [&](absl::string_view path, bool good, absl::string_view value, absl::string_view allowed) {
    if (!good) errors->Add(path, value, absl::StrCat(allowed, " in a job with ", tables));
  };
  const v1::TrainingConfig& training = config.training();
  check("consistency.sync_every", !TrainsLocally(config), WhyLocal(config), "1, and no plan with another,");
  check("consistency.compensation", !config.consistency().has_compensation(), "present", "absent");
  check("training.micro_batches", training.micro_batches() <= 1, absl::StrCat(training.micro_batches()), "1");
  check("training.clip_norm", training.clip_norm() == 0, NumberText(training.clip_norm()), "0");
  check("training.precision", training.precision() != v1::TrainingConfig::FP16, "FP16", "FP32, TF32, BF16");
  check("training.gpus", training.gpus() <= 1, absl::StrCat(training.gpus()), "1");
}

}  // namespace rubato
