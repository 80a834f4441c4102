#ifndef RUBATO_COORDINATOR_TESTING_CORE_HARNESS_H_
#define RUBATO_COORDINATOR_TESTING_CORE_HARNESS_H_

#include <gtest/gtest.h>

#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/task.h"
#include "coordinator/rules/coordinator_core.h"
#include "coordinator/testing/small_job.h"

namespace rubato::coordinator {

// Drives a core by hand, and stands for the servers: they acknowledge what they are told at once unless they are mute.
class CoreHarness : public testing::Test {
 protected:
  using Line = v1::RunRecordLine;

  void Create(const v1::JobConfig& config) {
    config_ = config;
    auto core = CoordinatorCore::Create({config, kConfigFingerprint, 0x1234, now_, resume_ended_, {}, boot_id_});
    ASSERT_TRUE(core.ok()) << core.status();
    core_ = *std::move(core);
  }
  // A new coordinator process that reads the journal.
  absl::Status Restart() {
    Create(config_);
    finished_.reset();
    auto actions = core_->Recover(journal_, now_);
    if (!actions.ok()) return actions.status();
    Do(*actions);
    return absl::OkStatus();
  }

  void Register(const v1::TaskId& task, uint64_t fingerprint = kConfigFingerprint) {
    v1::TaskMessage message;
    *message.mutable_task() = task;
    *message.mutable_register_() = RegistrationOf(task, fingerprint);
    alive_[TaskName(task)] = task;
    Deliver(message);
  }
  void StartJob() {
    Register(ServerTask(0));
    Register(ServerTask(1));
    Register(WorkerTask(0));
    Register(WorkerTask(1));
    ASSERT_EQ(core_->phase(), v1::JobStatus::TRAINING);
  }
  void Beat(const v1::TaskId& task, int64_t step = 0, uint64_t generation = 0, int64_t examples = 0) {
    v1::TaskMessage message;
    *message.mutable_task() = task;
    if (task.role() == v1::TaskId::WORKER) {
      v1::WorkerProgress* progress = message.mutable_heartbeat()->mutable_progress();
      progress->set_step(step);
      progress->set_steps_total(step);
      progress->set_generation(generation);
      progress->set_examples_total(examples);
      progress->set_entry_wait_seconds(generation > 0 ? 0.01 : 0);
    } else {
      message.mutable_heartbeat()->mutable_server();
    }
    Deliver(message);
  }
  // What a task says of its part of a cut; a worker also of the plan that it is in.
  void ReportCut(const v1::TaskId& task, const v1::CutProgress& cut, int64_t step = 0, uint64_t generation = 0) {
    v1::TaskMessage message;
    *message.mutable_task() = task;
    *message.mutable_heartbeat()->mutable_cut() = cut;
    if (task.role() == v1::TaskId::WORKER) {
      v1::WorkerProgress* progress = message.mutable_heartbeat()->mutable_progress();
      progress->set_step(step);
      progress->set_steps_total(step);
      progress->set_generation(generation);
    }
    Deliver(message);
  }
  static v1::CutProgress Written(uint64_t id, bool entered = false) {
    v1::CutProgress cut;
    cut.set_id(id);
    cut.set_written(true);
    cut.set_entered(entered);
    cut.set_bytes(1000);
    return cut;
  }
  // Both workers are in the present plan.
  void EnterPlan(int64_t step) {
    const uint64_t generation = core_->Status(now_).plan().generation();
    Beat(WorkerTask(0, incarnation_), step, generation);
    Beat(WorkerTask(1, incarnation_), step, generation);
  }
  // Everybody has written the cut that the present plan is, and entered it.
  void WriteCut() {
    const v1::Plan plan = core_->Status(now_).plan();
    for (uint32_t i = 0; i < 2; ++i) {
      ReportCut(ServerTask(i, incarnation_), Written(plan.cut().id()));
      ReportCut(WorkerTask(i, incarnation_), Written(plan.cut().id(), true), plan.first_step(), plan.generation());
    }
  }
  v1::ShardGrant AskShard(const v1::TaskId& worker, uint64_t id, const std::vector<uint64_t>& finished = {}) {
    v1::TaskMessage message;
    *message.mutable_task() = worker;
    message.mutable_shard_request()->set_request_id(id);
    for (uint64_t shard : finished) message.mutable_shard_request()->add_finished_shards(shard);
    Deliver(message);
    return Last(worker).shard_grant();
  }
  void Leave(const v1::TaskId& task, const std::string& error = "",
             v1::Leaving::Cause cause = v1::Leaving::CAUSE_UNSPECIFIED) {
    v1::TaskMessage message;
    *message.mutable_task() = task;
    message.mutable_leaving()->set_error(error);
    message.mutable_leaving()->set_cause(cause);
    alive_.erase(TaskName(task));
    Deliver(message);
  }
  void Drain(const v1::TaskId& task) {
    v1::TaskMessage message;
    *message.mutable_task() = task;
    message.mutable_leaving()->set_drained(true);
    alive_.erase(TaskName(task));
    Deliver(message);
  }
  void Evaluated(uint64_t id, double accuracy) {
    v1::TaskMessage message;
    *message.mutable_task() = EvaluatorTask();
    message.mutable_evaluation()->set_evaluation_id(id);
    message.mutable_evaluation()->set_accuracy(accuracy);
    Deliver(message);
  }
  // Time passes while everybody in alive_ but `silent` says that they are there.
  void Pass(absl::Duration duration, const std::set<std::string>& silent = {}) {
    for (absl::Duration step = absl::ZeroDuration(); step < duration; step += absl::Milliseconds(100)) {
      now_ += absl::Milliseconds(100);
      const auto alive = alive_;
      const v1::JobStatus job = core_->Status(now_);
      for (const auto& [name, task] : alive) {
        if (silent.contains(name)) continue;
        v1::TaskMessage message;
        *message.mutable_task() = task;
        message.mutable_heartbeat();
        if (task.role() == v1::TaskId::WORKER) {
          // The same counts as before.
          for (const v1::TaskStatus& status : job.tasks()) {
            if (SameTask(status.task(), task)) *message.mutable_heartbeat()->mutable_progress() = status.progress();
          }
        }
        Deliver(message);
      }
      Do(core_->OnTick(now_));
    }
  }
  void FinishAllShards() {
    for (uint64_t i = 1; i <= 20; ++i) {
      ASSERT_EQ(AskShard(WorkerTask(0), i).result(), v1::ShardGrant::GRANTED);
    }
    std::vector<uint64_t> all;
    for (uint64_t i = 1; i <= 20; ++i) all.push_back(i);
    ASSERT_EQ(AskShard(WorkerTask(0), 21, all).result(), v1::ShardGrant::DONE);
  }

  void Deliver(const v1::TaskMessage& message) { Do(core_->OnMessage(message, "ipv4:10.0.0.9:555", now_)); }
  void Do(Actions actions) {
    for (Action& action : actions) {
      if (auto* send = std::get_if<SendDirective>(&action)) {
        sent_[TaskName(send->task)].push_back(send->directive);
        if (send->task.role() == v1::TaskId::SERVER && !mute_.contains(send->task.index())) {
          replies_.push_back({send->task, send->directive});
        }
      } else if (auto* journal = std::get_if<AppendJournal>(&action)) {
        journal_.push_back(journal->record);
      } else if (auto* metrics = std::get_if<AppendMetrics>(&action)) {
        metrics_.push_back(metrics->line);
      } else if (auto* log = std::get_if<LogLine>(&action)) {
        log_ += absl::StrCat(log->text, "\n");
      } else if (auto* answer = std::get_if<AnswerSwitch>(&action)) {
        answers_.emplace(answer->ticket, answer->reply);
      } else if (auto* cut = std::get_if<WriteCutRecord>(&action)) {
        cuts_.push_back(cut->record);
      } else if (auto* written = std::get_if<AnswerCheckpoint>(&action)) {
        checkpoints_.emplace(written->ticket, written->reply);
      } else if (std::holds_alternative<RestartCore>(action)) {
        RestartInPlace();
      } else if (auto* finish = std::get_if<Finish>(&action)) {
        finished_ = finish->status;
      }
    }
    while (!replies_.empty()) {
      auto [server, directive] = replies_.front();
      replies_.pop_front();
      Reply(server, directive);
    }
  }
  // As the shell does.
  void RestartInPlace() {
    ++restarts_;
    alive_.clear();
    replies_.clear();
    const v1::JobCounts counts = core_->counts();
    auto core = CoordinatorCore::Create({config_, kConfigFingerprint, 0x1234, now_, resume_ended_, counts, boot_id_});
    ASSERT_TRUE(core.ok()) << core.status();
    core_ = *std::move(core);
    auto actions = core_->Recover(journal_, now_);
    ASSERT_TRUE(actions.ok()) << actions.status();
    Do(*actions);
  }
  // The tasks are there again, as new incarnations.
  void ComeBack() {
    ++incarnation_;
    for (uint32_t i = 0; i < 2; ++i) Register(ServerTask(i, incarnation_));
    for (uint32_t i = 0; i < 2; ++i) Register(WorkerTask(i, incarnation_));
  }
  void Reply(const v1::TaskId& server, const v1::Directive& directive) {
    std::optional<v1::TaskMessage> message = ServerAnswer(directive, started_);
    if (!message) return;
    *message->mutable_task() = server;
    Deliver(*message);
  }

  v1::Directive Last(const v1::TaskId& task) {
    const auto& sent = sent_[TaskName(task)];
    return sent.empty() ? v1::Directive() : sent.back();
  }
  // The last evaluation that the evaluator was asked for.
  v1::Evaluate LastEvaluate() {
    v1::Evaluate last;
    for (const v1::Directive& directive : sent_[TaskName(EvaluatorTask())]) {
      if (directive.has_evaluate()) last = directive.evaluate();
    }
    return last;
  }
  int CountSent(const v1::TaskId& task, v1::Directive::BodyCase body) {
    int count = 0;
    for (const v1::Directive& directive : sent_[TaskName(task)]) count += directive.body_case() == body;
    return count;
  }
  std::vector<Line> Lines(Line::LineCase kind) {
    std::vector<Line> lines;
    for (const Line& line : metrics_) {
      if (line.line_case() == kind) lines.push_back(line);
    }
    return lines;
  }
  static bool Contains(const std::string& text, const std::string& part) {
    return text.find(part) != std::string::npos;
  }

  absl::Time now_ = absl::FromUnixSeconds(1000000);
  v1::JobConfig config_;
  std::unique_ptr<CoordinatorCore> core_;
  // Servers that answer nothing.
  std::set<uint32_t> mute_;
  int64_t started_ = 10;
  std::map<std::string, v1::TaskId> alive_;
  std::map<std::string, std::vector<v1::Directive>> sent_;
  std::deque<std::pair<v1::TaskId, v1::Directive>> replies_;
  std::vector<v1::JournalRecord> journal_;
  std::vector<Line> metrics_;
  std::string log_;
  std::map<uint64_t, absl::StatusOr<v1::SwitchModeReply>> answers_;
  std::vector<v1::CutRecord> cuts_;
  std::map<uint64_t, absl::StatusOr<v1::WriteCheckpointNowReply>> checkpoints_;
  std::optional<absl::Status> finished_;
  bool resume_ended_ = false;
  std::string boot_id_ = "first boot";
  // Of those that came last, and how often a core took the place of another.
  uint64_t incarnation_ = 1;
  int restarts_ = 0;
};

}  // namespace rubato::coordinator

#endif  // RUBATO_COORDINATOR_TESTING_CORE_HARNESS_H_
