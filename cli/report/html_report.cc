#include "cli/report/html_report.h"

#include <algorithm>
#include <cstdint>
#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "cli/report/page_parts.inc"
#include "cli/report/summary_json.h"
#include "common/page/run_points.h"
#include "common/task.h"
#include "web/page.h"

namespace rubato {
namespace {

using Json = nlohmann::ordered_json;

// More points than this per curve cannot be told apart on a screen.
constexpr size_t kPointsMax = 1500;
constexpr size_t kCheckpointsMax = 50;

// With its quorum, and how often workers exchange, if the plan says so.
std::string ModeOf(const v1::PlanLine& plan) {
  std::string mode = ModeName(plan.mode(), static_cast<int64_t>(plan.staleness_bound()));
  if (plan.quorum() > 0) absl::StrAppend(&mode, ", quorum ", static_cast<int64_t>(plan.quorum()));
  if (plan.has_sync_every()) {
    absl::StrAppend(&mode, ", an exchange every ", static_cast<int64_t>(plan.sync_every()), " batches");
  }
  if (plan.has_momentum()) absl::StrAppend(&mode, ", momentum ", plan.momentum());
  if (plan.uncompressed()) absl::StrAppend(&mode, ", gradients as they are");
  return mode;
}

// Plans that changed what ModeOf says, without the first one.
Json Switches(const RunRecord& record) {
  Json switches = Json::array();
  for (size_t i = 0; i < record.plans.size(); ++i) {
    const v1::PlanLine& plan = record.plans[i];
    if (plan.generation() <= 1) continue;
    if (i > 0 && ModeOf(record.plans[i - 1]) == ModeOf(plan)) continue;
    switches.push_back({{"t", plan.t()},
                        {"mode", ModeOf(plan)},
                        {"first_step", plan.first_step()},
                        {"reason", plan.reason()},
                        {"learning_rate_scale", plan.learning_rate_scale()},
                        {"round_trip_seconds", plan.round_trip_seconds()},
                        {"stall_seconds", plan.stall_seconds()},
                        {"slowest_step_seconds", plan.slowest_step_seconds()}});
  }
  return switches;
}

Json Evictions(const RunRecord& record) {
  Json evictions = Json::array();
  for (const v1::MemberLine& line : record.members) {
    if (line.event() != v1::MemberLine::EVICTED) continue;
    evictions.push_back({{"t", line.t()}, {"task", line.task()}, {"reason", line.reason()}});
  }
  return evictions;
}

Json Rollbacks(const RunRecord& record) {
  Json rollbacks = Json::array();
  for (const v1::RollbackLine& line : record.rollbacks) {
    rollbacks.push_back({{"t", line.t()}, {"step", line.step()}, {"reason", line.reason()}});
  }
  return rollbacks;
}

// The last ones, up to a number that can be read.
Json Checkpoints(const RunRecord& record) {
  Json checkpoints = Json::array();
  const size_t first = record.checkpoints.size() - std::min(record.checkpoints.size(), kCheckpointsMax);
  for (size_t i = first; i < record.checkpoints.size(); ++i) {
    const v1::CheckpointLine& line = record.checkpoints[i];
    checkpoints.push_back({{"t", line.t()},
                           {"name", line.name()},
                           {"epoch", line.epoch()},
                           {"bytes", line.bytes()},
                           {"seconds", line.seconds()}});
  }
  return checkpoints;
}

Json Evaluations(const RunRecord& record) {
  Json points = Json::array();
  for (const v1::EvaluationLine& line : record.evaluations) points.push_back(EvaluationPoint(line));
  return points;
}

Json Progress(const RunRecord& record) {
  Json points = Json::array();
  const size_t stride = record.progress.size() / kPointsMax + 1;
  v1::ProgressLine before;
  for (size_t i = 0; i < record.progress.size(); ++i) {
    if (i % stride != 0 && i + 1 != record.progress.size()) continue;
    points.push_back(ProgressPoint(before, record.progress[i]));
    before = record.progress[i];
  }
  return points;
}

// Index; seconds of data, compute, push and waiting for weights; steps, examples, mean staleness, and seconds that half
// and nine tenths of its latest steps took at most.
Json Workers(const v1::ProgressLine& line) {
  Json workers = Json::array();
  for (const v1::WorkerTotals& worker : line.workers()) {
    workers.push_back({worker.index(), worker.data_seconds(), worker.compute_seconds(), worker.push_seconds(),
                       worker.pull_wait_seconds(), worker.step(), worker.examples(), worker.staleness_mean(),
                       worker.work_seconds_p50(), worker.work_seconds_p90()});
  }
  return workers;
}

// Adds what the page shows besides the summary.
void AddRun(const RunRecord& record, Json* run) {
  const v1::ProgressLine last = record.progress.empty() ? v1::ProgressLine() : record.progress.back();
  (*run)["evaluations"] = Evaluations(record);
  (*run)["progress"] = Progress(record);
  (*run)["workers"] = Workers(last);
  (*run)["staleness"] = last.staleness_counts();
  (*run)["switches"] = Switches(record);
  (*run)["evictions"] = Evictions(record);
  (*run)["rollbacks"] = Rollbacks(record);
  (*run)["checkpoints"] = Checkpoints(record);
}

Json PageData(const Comparison& comparison) {
  Json data = SummaryOf(comparison);
  data["regression"] = IsRegression(comparison);
  data["metrics"] = Json::array();
  for (const Metric metric : MetricsOf(comparison)) data["metrics"].push_back(std::string(MetricField(metric)));
  data["evaluated"] = HasEvaluations(comparison);
  data["has_examples"] = HasExamples(comparison);
  data["slowed"] = comparison.slowed;
  data["chosen_afterwards"] = comparison.chosen_afterwards;
  data["config"] = comparison.config_text;
  data["start"] = nullptr;
  if (const v1::StartLine* start = FirstStart(comparison); start != nullptr) {
    data["start"] = {{"workers", start->workers()},
                     {"servers", start->servers()},
                     {"batch_size", start->batch_size()},
                     {"train_examples", start->train_examples()}};
  }
  for (size_t i = 0; i < comparison.modes.size(); ++i) {
    const ComparedMode& mode = comparison.modes[i];
    Json& to = data["modes"][i];
    to["skipped"] = SkippedSteps(mode);
    for (size_t j = 0; j < mode.runs.size(); ++j) AddRun(mode.runs[j].record, &to["runs"][j]);
  }
  return data;
}

}  // namespace

std::string HtmlReport(const Comparison& comparison) {
  const std::string data = PageData(comparison).dump(-1, ' ', false, Json::error_handler_t::replace);
  return absl::StrReplaceAll(kPage, {{"@STYLE@", kStyle},
                                     {"@CHARTS@", kChartsScript},
                                     {"@TABLES@", kTablesScript},
                                     {"@BASELINE@", kBaselineScript},
                                     {"@DOWNLOADS@", kDownloadsScript},
                                     {"@PAGE@", kPageScript},
                                     {"@DATA@", JsonForScript(data)}});
}

}  // namespace rubato
