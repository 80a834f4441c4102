#include "coordinator/rules/switch_request.h"

#include <cmath>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "common/config/compression.h"
#include "common/config/limits.h"
#include "common/config/local_sgd.h"
#include "common/config/planned_momentum.h"
#include "common/mutants.h"
#include "common/optimizer_traits.h"
#include "common/task.h"
#include "coordinator/rules/learning_rate_rule.h"

namespace rubato::coordinator {
namespace {

absl::Status BadField(absl::string_view field, absl::string_view value, absl::string_view allowed) {
  return absl::InvalidArgumentError(absl::StrCat(field, ": value ", value, "; allowed: ", allowed));
}

}  // namespace

absl::StatusOr<PlanChange> CheckSwitch(const v1::JobConfig& config, const v1::SwitchModeRequest& request) {
  const v1::Mode mode = request.mode();
  if (mode != v1::SYNC && mode != v1::SSP && mode != v1::ASYNC) {
    return BadField("mode", absl::StrCat(static_cast<int>(mode)), "SYNC, SSP, ASYNC");
  }
  if (mode == v1::SSP && (request.staleness_bound() < 1 || request.staleness_bound() > kMaxStalenessBound)) {
    return BadField("staleness_bound", absl::StrCat(request.staleness_bound()),
                    absl::StrCat("1 to ", kMaxStalenessBound, " with SSP"));
  }
  if (mode != v1::SSP && request.staleness_bound() != 0) {
    return BadField("staleness_bound", absl::StrCat(request.staleness_bound()), "0 except with SSP");
  }
  if (mode != v1::SYNC && request.quorum() != 0) {
    return BadField("quorum", absl::StrCat(request.quorum()), "0 except with SYNC");
  }
  if (request.quorum() > config.cluster().workers()) {
    return BadField("quorum", absl::StrCat(request.quorum()),
                    absl::StrCat("0 to cluster.workers, ", config.cluster().workers()));
  }
  if (!std::isfinite(request.learning_rate_scale()) || request.learning_rate_scale() < 0) {
    return BadField("learning_rate_scale", absl::StrCat(request.learning_rate_scale()),
                    "a number > 0, or 0 for that of the rule");
  }
  if (config.data().dispatch() == v1::DataConfig::STATIC && (mode != v1::SYNC || request.quorum() != 0)) {
    return absl::FailedPreconditionError(
        absl::StrCat("mode: value ", ModeName(mode, request.staleness_bound()),
                     "; allowed: SYNC with quorum 0, because data.dispatch is STATIC; start the job with "
                     "data.dispatch DYNAMIC to switch"));
  }
  const int64_t most_batches = MostBatchesPerStep(config);
  if (mode == v1::SSP && most_batches > 1) {
    return absl::FailedPreconditionError(absl::StrCat("mode: value ", ModeName(mode, request.staleness_bound()),
                                                      "; allowed: SYNC, ASYNC, because ", WhyLocal(config),
                                                      "; start the job with 1 to switch to SSP"));
  }
  if (request.sync_every() > most_batches || (request.sync_every() > 0 && most_batches == 1)) {
    return absl::FailedPreconditionError(absl::StrCat("sync_every: value ", request.sync_every(), "; allowed: ",
                                                      most_batches == 1 ? "0" : absl::StrCat("0 to ", most_batches),
                                                      ", because that is the most that the job's config has"));
  }
  if (config.data().dispatch() == v1::DataConfig::STATIC && request.sync_every() > 0) {
    return absl::FailedPreconditionError(
        absl::StrCat("sync_every: value ", request.sync_every(), "; allowed: 0, because data.dispatch is STATIC"));
  }
  const bool is_mean = config.optimizer().algorithm() == v1::OptimizerConfig::MEAN && !RUBATO_MUTANT(kMeanLeavesSync);
  if (is_mean && mode != v1::SYNC) {
    return absl::FailedPreconditionError(absl::StrCat("mode: value ", ModeName(mode, request.staleness_bound()),
                                                      "; allowed: SYNC, because optimizer.algorithm is MEAN"));
  }
  if (request.has_momentum()) {
    const double momentum = request.momentum();
    if (const std::string why = WhyNoPlannedMomentum(config); !why.empty()) {
      return absl::FailedPreconditionError(
          absl::StrCat("momentum: value ", momentum, "; allowed: absent, because ", why));
    }
    if (!optimizer::kMomentum.range.holds(momentum)) {
      return BadField("momentum", absl::StrCat(momentum), optimizer::kMomentum.range.text);
    }
  }
  if (request.has_compress() && !CompressesPushes(config)) {
    return absl::FailedPreconditionError(absl::StrCat("compress: value ", request.compress() ? "true" : "false",
                                                      "; allowed: absent, because compression.push encodes nothing"));
  }
  PlanChange change;
  change.mode = mode;
  change.staleness_bound = request.staleness_bound();
  change.quorum = request.quorum();
  change.learning_rate_scale = request.learning_rate_scale() > 0 ? request.learning_rate_scale()
                                                                 : LearningRateRule(config, mode, request.quorum());
  change.sync_every = request.sync_every();
  if (request.has_momentum()) change.momentum = request.momentum();
  if (request.has_compress()) change.compress = request.compress();
  change.reason = "operator";
  return change;
}

std::string SwitchText(const v1::SwitchModeRequest& request) {
  std::string text = absl::StrCat("switch to ", absl::AsciiStrToLower(v1::Mode_Name(request.mode())));
  if (request.staleness_bound() != 0) absl::StrAppend(&text, ":", request.staleness_bound());
  if (request.quorum() != 0) absl::StrAppend(&text, ", quorum ", request.quorum());
  if (request.learning_rate_scale() != 0)
    absl::StrAppend(&text, ", learning rate times ", request.learning_rate_scale());
  if (request.sync_every() != 0) absl::StrAppend(&text, ", an exchange every ", request.sync_every(), " batches");
  if (request.has_momentum()) absl::StrAppend(&text, ", momentum ", request.momentum());
  if (request.has_compress()) absl::StrAppend(&text, ", gradients ", request.compress() ? "compressed" : "as they are");
  return text;
}

}  // namespace rubato::coordinator
