#include "coordinator/page/status_json.h"

#include <cmath>
#include <string>
#include <utility>

#include "absl/strings/ascii.h"

namespace rubato::coordinator {
namespace {

using Json = nlohmann::ordered_json;

double Rounded(double seconds) { return std::round(seconds * 1e3) / 1e3; }

Json PlanJson(const v1::Plan& plan) {
  Json members = Json::array();
  for (const v1::TaskId& member : plan.members()) members.push_back(member.index());
  return {{"generation", plan.generation()},           {"mode", v1::Mode_Name(plan.mode())},
          {"staleness_bound", plan.staleness_bound()}, {"quorum", plan.quorum()},
          {"first_step", plan.first_step()},           {"members", std::move(members)}};
}

Json CheckpointJson(const v1::CheckpointStatus& checkpoint) {
  return {{"last", checkpoint.last()},
          {"last_step", checkpoint.last_step()},
          {"seconds_since_last", Rounded(checkpoint.seconds_since_last())},
          {"in_progress", checkpoint.in_progress()},
          {"waiting_for", checkpoint.waiting_for()}};
}

void AddWorker(const v1::WorkerProgress& progress, Json* task) {
  (*task)["step"] = progress.step();
  (*task)["generation"] = progress.generation();
  (*task)["waiting_for"] = progress.waiting_for();
  (*task)["waiting_seconds"] = Rounded(progress.waiting_seconds());
  (*task)["slowed"] = progress.slowed();
}

void AddServer(const v1::ServerProgress& server, Json* task) {
  // The worker, its step, and whom it waits for.
  Json held = Json::array();
  for (const v1::HeldPull& pull : server.held()) held.push_back({pull.worker(), pull.step(), pull.waiting_for()});
  (*task)["held"] = std::move(held);
  (*task)["updates"] = server.updates_total();
  (*task)["bytes"] = server.memory_bytes();
  (*task)["rows"] = server.table_rows();
  (*task)["table_bytes"] = server.table_bytes();
  (*task)["rows_applied"] = server.rows_applied_total();
  (*task)["received"] = server.received_bytes_total();
  (*task)["sent"] = server.sent_bytes_total();
  (*task)["queue"] = server.queue_length();
}

Json TaskJson(const v1::TaskStatus& status) {
  Json task = {{"role", absl::AsciiStrToLower(v1::TaskId::Role_Name(status.task().role()))},
               {"index", status.task().index()},
               {"state", absl::AsciiStrToLower(v1::TaskStatus::State_Name(status.state()))},
               {"heard", Rounded(status.seconds_since_heard())},
               {"host", status.host_name()},
               {"resident", status.resident_bytes()},
               {"reason", status.reason()},
               {"problem", status.last_problem()}};
  if (status.trace().id() != 0) task["trace"] = {std::to_string(status.trace().id()), status.trace().error()};
  if (status.task().role() == v1::TaskId::WORKER) AddWorker(status.progress(), &task);
  if (status.task().role() == v1::TaskId::SERVER) AddServer(status.server(), &task);
  return task;
}

}  // namespace

Json StatusJson(const v1::JobStatus& status) {
  Json json = {{"phase", v1::JobStatus::Phase_Name(status.phase())},
               {"t", Rounded(status.seconds_since_start())},
               {"seconds_left", Rounded(status.seconds_left())},
               {"step", status.step()},
               {"epoch", status.epoch()},
               {"epochs_total", status.epochs_total()},
               {"examples_per_second", status.examples_per_second()},
               {"waiting_share", status.waiting_share()},
               {"waiting_for", status.waiting_for()},
               {"error", status.error()},
               {"term", status.term()},
               {"lease", status.lease_seconds()},
               {"announced", status.announced_generation()},
               {"plan", status.has_plan() ? PlanJson(status.plan()) : Json(nullptr)},
               {"checkpoint", CheckpointJson(status.checkpoint())},
               {"tasks", Json::array()}};
  for (const v1::TaskStatus& task : status.tasks()) json["tasks"].push_back(TaskJson(task));
  return json;
}

}  // namespace rubato::coordinator
