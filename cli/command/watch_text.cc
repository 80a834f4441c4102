#include "cli/command/watch_text.h"

#include <algorithm>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "cli/command/status_text.h"
#include "cli/command/task_waits.h"
#include "cli/launch/status_line.h"
#include "cli/report/text_table.h"
#include "common/task.h"

namespace rubato {
namespace {

// A task in two readings. What a reading says of it is as old as its last heartbeat.
struct Pair {
  const v1::TaskStatus* before;  // Null: there is no earlier one of the same process.
  const v1::TaskStatus* now;
  double seconds;  // Between the two heartbeats.

  // Whether a rate can be told.
  bool known() const { return before != nullptr && seconds > 0; }
  double Rate(double from, double to) const { return (to - from) / seconds; }
  std::string Number(double from, double to) const {
    if (!known()) return "";
    const double rate = Rate(from, to);
    return rate < 10 ? absl::StrFormat("%.2f", rate) : absl::StrFormat("%.0f", rate);
  }
  std::string MiB(int64_t from, int64_t to) const {
    if (!known()) return "";
    return absl::StrFormat("%.1f MiB/s", Rate(static_cast<double>(from), static_cast<double>(to)) / (1 << 20));
  }
};

Pair PairOf(const std::optional<StatusReading>& before, const StatusReading& now, const v1::TaskStatus& task) {
  Pair pair = {nullptr, &task, 0};
  if (!before.has_value()) return pair;
  for (const v1::TaskStatus& earlier : before->status.tasks()) {
    if (!SameTask(earlier.task(), task.task())) continue;
    pair.before = &earlier;
    pair.seconds =
        absl::ToDoubleSeconds(now.at - before->at) - task.seconds_since_heard() + earlier.seconds_since_heard();
  }
  return pair;
}

std::string Memory(int64_t bytes) {
  return bytes == 0 ? "" : absl::StrFormat("%.0f MiB", static_cast<double>(bytes) / (1 << 20));
}

std::string State(const v1::JobStatus& status, const v1::TaskStatus& task) {
  if (IsSilent(status, task)) return absl::StrFormat("silent %.1f s", task.seconds_since_heard());
  return TaskStateName(task.state());
}

std::string MeanStaleness(const Pair& pair) {
  int64_t steps = 0, sum = 0;
  for (int i = 0; i < pair.now->progress().staleness_counts_size(); ++i) {
    int64_t count = pair.now->progress().staleness_counts(i);
    if (pair.known() && i < pair.before->progress().staleness_counts_size()) {
      count -= pair.before->progress().staleness_counts(i);
    }
    steps += count;
    sum += count * i;
  }
  return steps <= 0 ? "" : absl::StrFormat("%.2f", static_cast<double>(sum) / static_cast<double>(steps));
}

std::string WorkerTable(const std::optional<StatusReading>& before, const StatusReading& now) {
  TextTable table(
      {"worker", "state", "step", "plan", "steps/s", "examples/s", "staleness", "sent", "received", "memory"});
  for (const v1::TaskStatus& task : now.status.tasks()) {
    if (task.task().role() != v1::TaskId::WORKER) continue;
    const Pair pair = PairOf(before, now, task);
    const v1::WorkerProgress& last = task.progress();
    const v1::WorkerProgress& first = pair.before == nullptr ? last : pair.before->progress();
    const auto examples = [](const v1::WorkerProgress& p) { return static_cast<double>(p.examples_total()); };
    const auto steps = [](const v1::WorkerProgress& p) { return static_cast<double>(p.steps_total()); };
    table.AddRow({TaskName(task.task()), State(now.status, task), absl::StrCat(last.step()),
                  absl::StrCat(last.generation()), pair.Number(steps(first), steps(last)),
                  pair.Number(examples(first), examples(last)), MeanStaleness(pair),
                  pair.MiB(first.sent_bytes_total(), last.sent_bytes_total()),
                  pair.MiB(first.received_bytes_total(), last.received_bytes_total()), Memory(task.resident_bytes())});
  }
  return table.Format();
}

std::string LowestClock(const v1::ServerProgress& server) {
  if (server.clocks().empty()) return "";
  return absl::StrCat(
      std::min_element(server.clocks().begin(), server.clocks().end(),
                       [](const v1::MemberClock& a, const v1::MemberClock& b) { return a.clock() < b.clock(); })
          ->clock());
}

std::string OtherTable(const std::optional<StatusReading>& before, const StatusReading& now) {
  TextTable table({"task", "state", "all are at", "updates/s", "holds", "received", "sent", "memory"});
  for (const v1::TaskStatus& task : now.status.tasks()) {
    if (task.task().role() == v1::TaskId::WORKER) continue;
    const std::string name = TaskName(task.task()), memory = Memory(task.resident_bytes());
    if (task.task().role() != v1::TaskId::SERVER) {
      table.AddRow({name, State(now.status, task), "", "", "", "", "", memory});
      continue;
    }
    const Pair pair = PairOf(before, now, task);
    const v1::ServerProgress& last = task.server();
    const v1::ServerProgress& first = pair.before == nullptr ? last : pair.before->server();
    table.AddRow({name, State(now.status, task), LowestClock(last),
                  pair.Number(static_cast<double>(first.updates_total()), static_cast<double>(last.updates_total())),
                  Memory(last.memory_bytes()), pair.MiB(first.received_bytes_total(), last.received_bytes_total()),
                  pair.MiB(first.sent_bytes_total(), last.sent_bytes_total()), memory});
  }
  return table.Format();
}

std::vector<std::string> Waits(const v1::JobStatus& status) {
  std::vector<std::string> lines;
  for (const v1::TaskStatus& task : status.tasks()) {
    const std::string wait = WaitOf(status, task);
    if (!wait.empty()) lines.push_back(absl::StrCat(TaskName(task.task()), " ", wait));
  }
  return lines;
}

std::vector<std::string> LossScales(const v1::JobStatus& status) {
  std::vector<std::string> lines;
  for (const v1::TaskStatus& task : status.tasks()) {
    const std::string scaling = LossScaling(task.progress());
    if (!scaling.empty()) lines.push_back(absl::StrCat(TaskName(task.task()), ": ", scaling));
  }
  return lines;
}

std::vector<std::string> Problems(const v1::JobStatus& status) {
  std::vector<std::string> lines;
  for (const v1::TaskStatus& task : status.tasks()) {
    const std::string& text = task.reason().empty() ? task.last_problem() : task.reason();
    if (!text.empty()) lines.push_back(absl::StrCat(TaskName(task.task()), ": ", text));
  }
  return lines;
}

std::string Section(absl::string_view title, const std::vector<std::string>& lines) {
  return lines.empty() ? "" : absl::StrCat("\n", title, ":\n  ", absl::StrJoin(lines, "\n  "), "\n");
}

}  // namespace

std::string WatchText(const std::optional<StatusReading>& before, const StatusReading& now) {
  return absl::StrCat(StatusHead(now.status), "\n", WorkerTable(before, now), "\n", OtherTable(before, now),
                      Section("FP16", LossScales(now.status)), Section("Who waits for whom", Waits(now.status)),
                      Section("Last problems", Problems(now.status)));
}

std::string WatchLines(const StatusReading& now) {
  std::string text = absl::StrCat(StatusLine(now.status), "\n");
  const std::string writing = CheckpointInProgress(now.status);
  if (!writing.empty()) absl::StrAppend(&text, "  ", writing, "\n");
  for (const std::string& wait : Waits(now.status)) absl::StrAppend(&text, "  ", wait, "\n");
  return text;
}

}  // namespace rubato
