#include "coordinator/record/run_record.h"

#include <nlohmann/json.hpp>

#include "common/config/local_sgd.h"
#include "common/task.h"

namespace rubato::coordinator {
namespace {

using Json = nlohmann::ordered_json;

std::string Text(absl::string_view text) { return std::string(text.data(), text.size()); }

// Text from tasks may hold anything; what is not UTF-8 is replaced.
std::string Dump(const Json& json) { return json.dump(-1, ' ', false, Json::error_handler_t::replace); }

Json WorkerJson(uint32_t index, const v1::WorkerProgress& progress) {
  Json worker = {{"index", index},
                 {"step", progress.step()},
                 {"examples", progress.examples_total()},
                 {"data_seconds", progress.data_seconds_total()},
                 {"compute_seconds", progress.compute_seconds_total()},
                 {"push_seconds", progress.push_seconds_total()},
                 {"pull_wait_seconds", progress.pull_wait_seconds_total()}};
  if (progress.loss_scale() > 0) {
    worker["loss_scale"] = progress.loss_scale();
    worker["overflows"] = progress.overflow_total();
  }
  return worker;
}

}  // namespace

std::string StartLine(double t, const v1::JobConfig& config, int64_t train_examples) {
  return Dump(Json{{"kind", "start"},
                   {"t", t},
                   {"job", config.name()},
                   {"mode", v1::Mode_Name(config.consistency().mode())},
                   {"staleness_bound", config.consistency().staleness_bound()},
                   {"workers", config.cluster().workers()},
                   {"servers", config.cluster().servers()},
                   {"seed", config.seed()},
                   {"batch_size", config.training().batch_size()},
                   {"sync_every", BatchesPerStep(config)},
                   {"train_examples", train_examples},
                   {"epochs", config.training().epochs()},
                   {"target_accuracy", config.evaluation().target_accuracy()}});
}

std::string ProgressLine(double t, const JobProgress::Interval& interval, double epoch, const v1::Plan& plan,
                         const std::map<uint32_t, v1::WorkerProgress>& workers) {
  const ProgressTotals& totals = interval.totals;
  Json list = Json::array();
  for (const auto& [index, progress] : workers) list.push_back(WorkerJson(index, progress));
  return Dump(Json{{"kind", "progress"},
                   {"t", t},
                   {"step", totals.step},
                   {"epoch", epoch},
                   {"examples", totals.examples},
                   {"examples_per_second", interval.examples_per_second},
                   {"loss", interval.loss},
                   {"accuracy", interval.accuracy},
                   {"learning_rate", totals.learning_rate},
                   {"generation", plan.generation()},
                   {"mode", v1::Mode_Name(plan.mode())},
                   {"staleness_mean", totals.StalenessMean()},
                   {"staleness_counts", totals.staleness_counts},
                   {"waiting_share", totals.WaitingShare()},
                   {"sent_bytes", totals.sent_bytes},
                   {"received_bytes", totals.received_bytes},
                   {"workers", list}});
}

std::string EvaluationLine(double t, double epoch, int64_t step, const v1::EvaluationResult& result, bool final) {
  return Dump(Json{{"kind", "evaluation"},
                   {"t", t},
                   {"step", step},
                   {"epoch", epoch},
                   {"loss", result.loss()},
                   {"accuracy", result.accuracy()},
                   {"examples", result.examples()},
                   {"final", final}});
}

std::string PlanLine(double t, const v1::Plan& plan, absl::string_view reason, const PlanTimes& times) {
  Json members = Json::array();
  for (const v1::TaskId& member : plan.members()) members.push_back(member.index());
  return Dump(Json{{"kind", "plan"},
                   {"t", t},
                   {"generation", plan.generation()},
                   {"mode", v1::Mode_Name(plan.mode())},
                   {"staleness_bound", plan.staleness_bound()},
                   {"first_step", plan.first_step()},
                   {"members", members},
                   {"reason", Text(reason)},
                   {"round_trip_seconds", times.round_trip_seconds},
                   {"stall_seconds", times.stall_seconds},
                   {"slowest_step_seconds", times.slowest_step_seconds}});
}

std::string MemberLine(double t, const v1::TaskId& task, absl::string_view event, absl::string_view reason) {
  return Dump(
      Json{{"kind", "member"}, {"t", t}, {"task", TaskName(task)}, {"event", Text(event)}, {"reason", Text(reason)}});
}

std::string EndLine(double t, absl::string_view error, const ProgressTotals& totals, double training_seconds) {
  double rate = training_seconds > 0 ? static_cast<double>(totals.examples) / training_seconds : 0;
  return Dump(Json{{"kind", "end"},
                   {"t", t},
                   {"ok", error.empty()},
                   {"error", Text(error)},
                   {"examples", totals.examples},
                   {"examples_per_second", rate},
                   {"non_finite", totals.non_finite},
                   {"overflows", totals.overflows}});
}

}  // namespace rubato::coordinator
