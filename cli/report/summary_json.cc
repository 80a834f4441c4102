#include "cli/report/summary_json.h"

#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "cli/report/against_baseline.h"
#include "cli/report/to_target.h"

namespace rubato {
namespace {

using Json = nlohmann::ordered_json;

Json OrNull(const std::optional<double>& value) { return value.has_value() ? Json(*value) : Json(nullptr); }

void AddNumbers(const RunSummary& summary, AuditResult audit, Json* json) {
  (*json)["ok"] = summary.ok;
  (*json)["final_accuracy"] = OrNull(summary.final_accuracy);
  (*json)["final_auc"] = OrNull(summary.final_auc);
  (*json)["final_recall"] = OrNull(summary.final_recall);
  (*json)["final_r2"] = OrNull(summary.final_r2);
  (*json)["final_rmse"] = OrNull(summary.final_rmse);
  (*json)["final_loss"] = OrNull(summary.final_loss);
  (*json)["training_loss"] = OrNull(summary.training_loss);
  (*json)["training_accuracy"] = OrNull(summary.training_accuracy);
  (*json)["generalization_gap"] = OrNull(summary.generalization_gap);
  (*json)["steps_per_second"] = summary.steps_per_second;
  (*json)["examples_per_second"] = summary.examples_per_second;
  (*json)["seconds"] = summary.seconds;
  (*json)["seconds_to_target"] = OrNull(summary.seconds_to_target);
  (*json)["samples_to_target"] = OrNull(summary.samples_to_target);
  (*json)["updates_to_target"] = OrNull(summary.updates_to_target);
  (*json)["samples"] = OrNull(summary.samples);
  (*json)["updates"] = OrNull(summary.updates);
  (*json)["staleness_mean"] = summary.staleness_mean;
  (*json)["staleness_max"] = summary.staleness_max;
  (*json)["waiting_share"] = summary.waiting_share;
  (*json)["pushed_bytes"] = summary.pushed_bytes;
  (*json)["pulled_bytes"] = summary.pulled_bytes;
  (*json)["audit"] = std::string(AuditResultName(audit));
}

// What the target took the modes' runs, some of which may have missed it; null without a target.
Json ToTargetOf(const Comparison& comparison, const ComparedMode& mode) {
  if (!comparison.target.exists()) return nullptr;
  Json json = Json::object();
  for (const auto& [name, effort] : {std::pair("seconds", Effort::kSeconds), std::pair("samples", Effort::kSamples),
                                     std::pair("updates", Effort::kUpdates)}) {
    const double horizon = TargetHorizon(comparison, effort);
    const ModeToTarget to_target = ToTargetOfMode(mode, effort, horizon);
    json["runs"] = to_target.runs;
    json["reached"] = to_target.reached;
    json[name] = {{"restricted_mean", OrNull(to_target.restricted_mean)}, {"up_to", horizon}};
  }
  return json;
}

Json TargetJson(const Target& target) {
  if (!target.exists()) return nullptr;
  return {{"metric", std::string(MetricField(target.metric))}, {"value", target.value}};
}

Json ResultOf(const BaselineResult& result) {
  const bool has_interval = result.interval.has_value();
  return {{"mode", result.mode},
          {"quantity", result.quantity.name},
          {"label", result.quantity.label},
          {"kind", result.quantity.is_ratio ? "ratio" : "difference"},
          {"estimate", OrNull(result.estimate)},
          {"low", has_interval ? Json(result.interval->low) : Json(nullptr)},
          {"high", has_interval ? Json(result.interval->high) : Json(nullptr)},
          {"p", OrNull(result.p)},
          {"p_holm", OrNull(result.p_holm)},
          {"enough_pairs", result.can_tell},
          {"pairs", result.pairs},
          {"left_out", result.left_out},
          {"missed", result.missed},
          {"baseline_missed", result.baseline_missed},
          {"up_to", OrNull(result.horizon)}};
}

// Null if there is but one mode.
Json AgainstBaselineOf(const Comparison& comparison) {
  const std::optional<AgainstBaseline> against = CompareWithBaseline(comparison);
  if (!against.has_value()) return nullptr;
  Json results = Json::array();
  for (const BaselineResult& result : against->results) results.push_back(ResultOf(result));
  return {{"baseline", against->baseline},
          {"seeds", against->seeds},
          {"pairs_needed", against->pairs_needed},
          {"results", results},
          {"notes", NotesOn(*against)}};
}

Json TuningsOf(const Comparison& comparison) {
  Json tunings = Json::array();
  for (const Tuning& tuning : comparison.tunings) {
    Json runs = Json::array();
    for (const TuningRun& run : tuning.runs) {
      runs.push_back({{"learning_rate", run.learning_rate},
                      {"ok", run.summary.ok},
                      {"final_accuracy", OrNull(run.summary.final_accuracy)},
                      {"final_auc", OrNull(run.summary.final_auc)},
                      {"final_loss", OrNull(run.summary.final_loss)},
                      {"seconds_to_target", OrNull(run.summary.seconds_to_target)},
                      {"seconds", run.summary.seconds}});
    }
    const bool chosen = tuning.best.has_value();
    tunings.push_back({{"mode", tuning.mode},
                       {"learning_rate", chosen ? Json(tuning.runs[*tuning.best].learning_rate) : Json(nullptr)},
                       {"at_edge", tuning.at_edge()},
                       {"runs", runs}});
  }
  return tunings;
}

}  // namespace

nlohmann::ordered_json SummaryOf(const Comparison& comparison) {
  Json modes = Json::array();
  for (const ComparedMode& mode : comparison.modes) {
    Json runs = Json::array();
    for (const ComparedRun& run : mode.runs) {
      Json entry = {{"seed", run.seed}, {"directory", run.directory}};
      AddNumbers(run.summary, run.audit, &entry);
      if (!run.summary.ok) entry["error"] = run.summary.error;
      runs.push_back(entry);
    }
    Json mean = Json::object();
    AddNumbers(MeanOfMode(mode), AuditOfMode(mode), &mean);
    modes.push_back({{"mode", mode.name}, {"runs", runs}, {"mean", mean}, {"to_target", ToTargetOf(comparison, mode)}});
  }
  return {{"job", comparison.job},
          {"target_accuracy", comparison.target.metric == Metric::kAccuracy ? comparison.target.value : 0.0},
          {"target", TargetJson(comparison.target)},
          {"data", comparison.generated_data ? "generated" : "real"},
          {"modes", modes},
          {"tunings", TuningsOf(comparison)},
          {"against_baseline", AgainstBaselineOf(comparison)}};
}

std::string SummaryJson(const Comparison& comparison) {
  return SummaryOf(comparison).dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace rubato
