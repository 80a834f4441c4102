#include "cli/capacity/plan_report.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "cli/report/text_table.h"
#include "common/task.h"

namespace rubato::capacity {
namespace {

using Json = nlohmann::ordered_json;

// Of the servers, that are shown.
constexpr size_t kServersShown = 5;

std::string Percent(double share) { return absl::StrFormat("%.1f %%", 100 * share); }
std::string Milliseconds(double seconds) { return absl::StrFormat("%.2f ms", 1000 * seconds); }
// With three digits.
std::string Number(double value) {
  if (value >= 1000) return absl::StrFormat("%.0f", value);
  return value >= 100 ? absl::StrFormat("%.1f", value) : absl::StrFormat("%.2f", value);
}
std::string Mebibytes(int64_t bytes) { return absl::StrFormat("%.2f MiB", static_cast<double>(bytes) / (1 << 20)); }

std::string ModeOf(const v1::JobConfig& config) {
  const v1::ConsistencyConfig& consistency = config.consistency();
  std::string mode = ModeName(consistency.mode(), consistency.staleness_bound());
  if (consistency.quorum() > 0) absl::StrAppend(&mode, ", quorum ", consistency.quorum());
  return mode;
}

double MostOf(const ServerLoad& load) {
  return std::max({load.partition, load.transport, load.link_in, load.link_out});
}

// The most loaded ones first.
std::vector<ServerLoad> ByLoad(const CapacityPlan& plan) {
  std::vector<ServerLoad> servers = plan.result.servers;
  std::stable_sort(servers.begin(), servers.end(),
                   [](const ServerLoad& a, const ServerLoad& b) { return MostOf(a) > MostOf(b); });
  return servers;
}

std::string ThroughputTable(const CapacityPlan& plan) {
  const SimulationResult& result = plan.result;
  const double workers = plan.config.cluster().workers();
  TextTable table({"throughput", ""});
  table.AddRow(
      {"steps/s of a worker", absl::StrCat(Number(result.worker_steps_per_second / workers), " +- ",
                                           Percent(result.worker_steps_error / result.worker_steps_per_second))});
  table.AddRow({"steps/s of all workers", Number(result.worker_steps_per_second)});
  table.AddRow({"updates/s", Number(result.updates_per_second)});
  table.AddRow({"samples/s", Number(plan.samples_per_second)});
  table.AddRow({"staleness, mean and p99", absl::StrCat(Number(result.staleness_mean), ", ", result.staleness_p99)});
  return table.Format();
}

std::string StepTable(const StepSeconds& step) {
  TextTable table({"a worker's step", "time", "share"});
  const auto row = [&](const char* what, double seconds) {
    table.AddRow({what, Milliseconds(seconds), Percent(seconds / step.total)});
  };
  row("computing", step.computing);
  row("waiting for others' steps", step.barrier);
  row("network", step.network);
  row("server", step.server);
  row("all", step.total);
  row("  of it in queues", step.queued);
  table.AddRow({"p50, p99 of steps", absl::StrCat(Milliseconds(step.p50), ", ", Milliseconds(step.p99))});
  return table.Format();
}

std::string LoadTable(const CapacityPlan& plan) {
  TextTable table({"busy", "partition", "transport", "link in", "link out"});
  const std::vector<ServerLoad> servers = ByLoad(plan);
  const bool own = plan.result.processors == 0;
  const auto transport = [own](double share) { return own ? Percent(share) : "-"; };
  for (size_t i = 0; i < std::min(servers.size(), kServersShown); ++i) {
    table.AddRow({absl::StrCat("server ", servers[i].server), Percent(servers[i].partition),
                  transport(servers[i].transport), Percent(servers[i].link_in), Percent(servers[i].link_out)});
  }
  if (servers.size() > kServersShown) table.AddRow({absl::StrCat(servers.size() - kServersShown, " more, less")});
  const WorkerLoad& worker = plan.result.busiest_worker;
  table.AddRow({"busiest worker", "", transport(worker.transport), Percent(worker.link_in), Percent(worker.link_out)});
  std::string text = table.Format();
  if (!own) absl::StrAppend(&text, "processors of the host: ", Percent(plan.result.processors), "\n");
  return text;
}

std::string CheckTable(const CapacityPlan& plan) {
  TextTable table({"calibration, steps/s of all workers", "workers", "measured", "model", "error"});
  for (const CapacityPlan::Check& check : plan.checks) {
    table.AddRow(
        {check.directory, absl::StrCat(check.workers), Number(check.measured_steps_per_second),
         Number(check.predicted_steps_per_second),
         absl::StrFormat("%+.1f %%", 100 * (check.predicted_steps_per_second / check.measured_steps_per_second - 1))});
  }
  return absl::StrCat(table.Format(), "fitted: ", Percent(plan.transport_share), " of the recorded time of messages, ",
                      Percent(plan.processor_share), " of all on a processor\n");
}

Json StepJson(const StepSeconds& step) {
  return {{"total", step.total},   {"computing", step.computing}, {"barrier", step.barrier}, {"network", step.network},
          {"server", step.server}, {"queued", step.queued},       {"p50", step.p50},         {"p99", step.p99}};
}

Json LoadJson(const CapacityPlan& plan) {
  Json servers = Json::array();
  for (const ServerLoad& load : plan.result.servers) {
    servers.push_back({{"server", load.server},
                       {"partition", load.partition},
                       {"transport", load.transport},
                       {"link_in", load.link_in},
                       {"link_out", load.link_out}});
  }
  const WorkerLoad& worker = plan.result.busiest_worker;
  return {
      {"servers", servers},
      {"busiest_worker", {{"transport", worker.transport}, {"link_in", worker.link_in}, {"link_out", worker.link_out}}},
      {"processors", plan.result.processors}};
}

Json ChecksJson(const CapacityPlan& plan) {
  Json checks = Json::array();
  for (const CapacityPlan::Check& check : plan.checks) {
    checks.push_back({{"run", check.directory},
                      {"workers", check.workers},
                      {"measured_steps_per_second", check.measured_steps_per_second},
                      {"predicted_steps_per_second", check.predicted_steps_per_second}});
  }
  return checks;
}

}  // namespace

std::string FormatPlan(const CapacityPlan& plan) {
  const v1::ClusterConfig& cluster = plan.config.cluster();
  std::string text =
      absl::StrCat(plan.config.name(), ": ", cluster.workers(), " workers, ", cluster.servers(), " servers of ",
                   cluster.partitions_per_server(), " partitions, ", ModeOf(plan.config),
                   "\nA worker's step: ", plan.messages_per_step, " messages each way, ", Mebibytes(plan.pushed_bytes),
                   " pushed, ", Mebibytes(plan.pulled_bytes), " pulled\n\n");
  absl::StrAppend(&text, CheckTable(plan), "\n", ThroughputTable(plan), "\n", StepTable(plan.result.step), "\n",
                  LoadTable(plan), "\nBottleneck: ", plan.bottleneck.name, ". ", plan.bottleneck.finding, " ",
                  plan.bottleneck.advice, "\n");
  if (plan.saturation.has_value()) {
    absl::StrAppend(&text, "About ", absl::StrFormat("%.0f", plan.saturation->workers), " workers would keep the ",
                    plan.saturation->resource, " busy all the time.\n");
  }
  for (const std::string& note : plan.notes) absl::StrAppend(&text, "Note: ", note, ".\n");
  absl::StrAppend(&text, "Simulated ", plan.result.steps, " steps, ", Number(plan.result.virtual_seconds),
                  " s of the job, with ", plan.result.events, " events.\n");
  return text;
}

std::string PlanToJson(const CapacityPlan& plan) {
  const SimulationResult& result = plan.result;
  Json json = {
      {"job", plan.config.name()},
      {"workers", plan.config.cluster().workers()},
      {"servers", plan.config.cluster().servers()},
      {"mode", ModeOf(plan.config)},
      {"messages_per_step", plan.messages_per_step},
      {"pushed_bytes_per_step", plan.pushed_bytes},
      {"pulled_bytes_per_step", plan.pulled_bytes},
      {"worker_steps_per_second", result.worker_steps_per_second},
      {"updates_per_second", result.updates_per_second},
      {"samples_per_second", plan.samples_per_second},
      {"step_seconds", StepJson(result.step)},
      {"staleness", {{"mean", result.staleness_mean}, {"p99", result.staleness_p99}}},
      {"busy", LoadJson(plan)},
      {"bottleneck",
       {{"name", plan.bottleneck.name}, {"finding", plan.bottleneck.finding}, {"advice", plan.bottleneck.advice}}},
      {"calibration", ChecksJson(plan)},
      {"transport_share", plan.transport_share},
      {"processor_share", plan.processor_share},
      {"notes", plan.notes},
      {"steps", result.steps},
      {"virtual_seconds", result.virtual_seconds},
      {"events", result.events}};
  const bool known = std::isfinite(result.worker_steps_error);
  json["worker_steps_per_second_error"] = known ? Json(result.worker_steps_error) : Json(nullptr);
  json["saturation"] = plan.saturation.has_value()
                           ? Json({{"workers", plan.saturation->workers}, {"resource", plan.saturation->resource}})
                           : Json(nullptr);
  return absl::StrCat(json.dump(2, ' ', false, Json::error_handler_t::replace), "\n");
}

}  // namespace rubato::capacity
