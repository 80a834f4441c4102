#include "cli/command/status_text.h"

#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "cli/launch/status_line.h"
#include "cli/report/text_table.h"
#include "common/metrics/step_count.h"
#include "common/proto_enum.h"
#include "common/task.h"

namespace rubato {
namespace {

std::string SlowedDown(const v1::WorkerProgress& progress) {
  return progress.slowed().empty() ? "" : absl::StrCat(", slowed down by ", progress.slowed());
}

// How long its latest steps took without the wait for weights.
std::string Work(const v1::WorkerProgress& progress) {
  if (progress.work_seconds().empty()) return "";
  return absl::StrFormat(", works %.3g ms a step (9 of 10 within %.3g)", WorkQuantile(progress, 0.5) * 1e3,
                         WorkQuantile(progress, 0.9) * 1e3);
}

// What a task is doing, as far as its role tells.
std::string Doing(const v1::TaskStatus& task) {
  if (!task.reason().empty()) return task.reason();
  if (task.task().role() == v1::TaskId::WORKER) {
    const std::string scaling = LossScaling(task.progress());
    return absl::StrCat("step ", task.progress().step(), ", plan ", task.progress().generation(), ", ",
                        task.progress().examples_total(), " examples", scaling.empty() ? "" : ", ", scaling,
                        Work(task.progress()), SlowedDown(task.progress()));
  }
  if (task.task().role() != v1::TaskId::SERVER) return "";
  std::string clocks = absl::StrJoin(task.server().clocks(), ", ", [](std::string* out, const v1::MemberClock& clock) {
    absl::StrAppend(out, "worker ", clock.worker(), " at ", clock.clock());
  });
  return absl::StrFormat("%d updates, %.1f MiB%s%s", task.server().updates_total(),
                         static_cast<double>(task.server().memory_bytes()) / (1 << 20),
                         clocks.empty() ? "" : "; clocks: ", clocks);
}

std::string TaskTable(const v1::JobStatus& status) {
  TextTable table({"task", "state", "heard", "address", "process", "doing"});
  table.AlignLeft();
  for (const v1::TaskStatus& task : status.tasks()) {
    bool heard = task.state() != v1::TaskStatus::MISSING;
    table.AddRow({TaskName(task.task()), TaskStateName(task.state()),
                  heard ? absl::StrFormat("%.1f s ago", task.seconds_since_heard()) : "", task.address(),
                  task.process_id() == 0 ? "" : absl::StrCat(task.process_id(), "@", task.host_name()), Doing(task)});
  }
  return table.Format();
}

std::string Waits(const v1::JobStatus& status) {
  std::string text;
  for (const v1::TaskStatus& task : status.tasks()) {
    if (!task.progress().waiting_for().empty()) {
      absl::StrAppend(&text, "  ", TaskName(task.task()), " in ", task.progress().waiting_for(),
                      absl::StrFormat(", for %.1f s\n", task.progress().waiting_seconds()));
    }
    for (const v1::HeldPull& held : task.server().held()) {
      absl::StrAppend(&text, "  ", TaskName(task.task()), " holds step ", held.step(), " of worker ", held.worker(),
                      ", which waits for ", held.waiting_for(), "\n");
    }
  }
  return text.empty() ? "" : absl::StrCat("\nWho waits for whom:\n", text);
}

std::string PlanLine(const v1::JobStatus& status) {
  const v1::Plan& plan = status.plan();
  if (plan.generation() == 0) return "No plan yet\n";
  std::string members = absl::StrJoin(
      plan.members(), ", ", [](std::string* out, const v1::TaskId& member) { absl::StrAppend(out, TaskName(member)); });
  std::string text =
      absl::StrCat("Plan ", plan.generation(), plan.amendment() == 0 ? "" : absl::StrCat(".", plan.amendment()), ": ",
                   ModeName(plan.mode(), plan.staleness_bound()), " from step ", plan.first_step(),
                   " on; members: ", members.empty() ? "none" : members);
  if (plan.quorum() != 0) absl::StrAppend(&text, "; quorum ", plan.quorum());
  if (plan.sync_every() != 0) absl::StrAppend(&text, "; an exchange every ", plan.sync_every(), " batches");
  if (plan.has_momentum()) absl::StrAppend(&text, "; momentum ", plan.momentum());
  if (plan.uncompressed()) absl::StrAppend(&text, "; gradients as they are");
  if (status.announced_generation() != 0) {
    absl::StrAppend(&text, "; plan ", status.announced_generation(), " is announced");
  }
  return text + "\n";
}

std::string CheckpointLine(const v1::JobStatus& status) {
  const v1::CheckpointStatus& checkpoint = status.checkpoint();
  std::vector<std::string> parts;
  if (!checkpoint.last().empty()) {
    parts.push_back(absl::StrCat("checkpoint ", checkpoint.last(), ", all steps before ", checkpoint.last_step(),
                                 ", complete for ", FormatSeconds(checkpoint.seconds_since_last())));
  }
  const std::string writing = CheckpointInProgress(status);
  if (!writing.empty()) parts.push_back(writing);
  if (parts.empty() && status.has_checkpoint()) parts.push_back("no checkpoint yet");
  const int64_t rollbacks = status.counts().rollbacks_total();
  if (rollbacks > 0) {
    parts.push_back(absl::StrCat(
        "rollbacks: ", rollbacks,
        checkpoint.rollback_reason().empty() ? "" : ", the last because of: ", checkpoint.rollback_reason()));
  }
  return parts.empty() ? "" : absl::StrCat("Term ", status.term(), "; ", absl::StrJoin(parts, "; "), "\n");
}

std::string GradientLine(const v1::GradientNoise& noise) {
  if (!noise.has_norm()) return "";
  std::string text = absl::StrFormat("Gradients: norm %.3g", noise.norm());
  if (noise.has_scale_examples()) {
    absl::StrAppendFormat(&text, "; noise scale %.0f examples", noise.scale_examples());
  }
  if (noise.has_lasting_share()) {
    absl::StrAppendFormat(&text, "; of the workers' differences %.0f %% last", noise.lasting_share() * 100);
  }
  return text + "\n";
}

// How a stopped job goes on.
std::string EndLine(const v1::JobStatus& status) {
  return status.end().kind() == v1::Stop::STOPPED && !status.end().checkpoint().empty()
             ? "Stopped on request; rubato train CONFIG --resume (or rubato run --resume) goes on with it\n"
             : "";
}

}  // namespace

std::string CheckpointInProgress(const v1::JobStatus& status) {
  const v1::CheckpointStatus& checkpoint = status.checkpoint();
  if (checkpoint.in_progress().empty()) return "";
  return absl::StrCat("checkpoint ", checkpoint.in_progress(), " is being written",
                      checkpoint.waiting_for().empty() ? "" : ", which waits for ", checkpoint.waiting_for());
}

std::string TaskStateName(v1::TaskStatus::State state) {
  switch (state) {
    case v1::TaskStatus::MISSING:
      return "missing";
    case v1::TaskStatus::ALIVE:
      return "alive";
    case v1::TaskStatus::LEFT:
      return "left";
    case v1::TaskStatus::EVICTED:
      return "evicted";
    case v1::TaskStatus::STATE_UNSPECIFIED:
      RUBATO_NO_VALUE_OF(v1::TaskStatus_State_TaskStatus_State) : break;
  }
  return absl::StrCat("unknown state ", static_cast<int>(state));
}

std::string LossScaling(const v1::WorkerProgress& progress) {
  if (progress.loss_scale() <= 0) return "";
  return absl::StrFormat("loss scale %.0f, steps skipped: %d", progress.loss_scale(), progress.overflow_total());
}

std::string StatusHead(const v1::JobStatus& status) {
  std::string line = StatusLine(status);
  if (status.phase() == v1::JobStatus::TRAINING) line = absl::StrCat("training  ", line);
  return absl::StrCat("Job ", status.job_name(), " in ", status.run_directory(), ", for ",
                      FormatSeconds(status.seconds_since_start()), "\n", line, "\n", PlanLine(status),
                      GradientLine(status.gradient_noise()), CheckpointLine(status), EndLine(status));
}

std::string StatusText(const v1::JobStatus& status) {
  return absl::StrCat(StatusHead(status), "\n", TaskTable(status), Waits(status));
}

}  // namespace rubato
