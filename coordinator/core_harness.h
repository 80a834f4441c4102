#ifndef RUBATO_COORDINATOR_CORE_HARNESS_H_
#define RUBATO_COORDINATOR_CORE_HARNESS_H_

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
#include "coordinator/coordinator_core.h"

namespace rubato::coordinator {

inline constexpr uint64_t kConfigFingerprint = 0xc0ffee;
inline constexpr int64_t kTrainExamples = 100;

inline v1::TaskId MakeTask(v1::TaskId::Role role, uint32_t index, uint64_t incarnation) {
  v1::TaskId task;
  task.set_role(role);
  task.set_index(index);
  task.set_incarnation(incarnation);
  return task;
}
inline v1::TaskId ServerTask(uint32_t index, uint64_t incarnation = 1) {
  return MakeTask(v1::TaskId::SERVER, index, incarnation);
}
inline v1::TaskId WorkerTask(uint32_t index, uint64_t incarnation = 1) {
  return MakeTask(v1::TaskId::WORKER, index, incarnation);
}
inline v1::TaskId EvaluatorTask(uint64_t incarnation = 1) { return MakeTask(v1::TaskId::EVALUATOR, 0, incarnation); }

// Two servers, two workers, two epochs of ten shards.
inline v1::JobConfig SmallJob() {
  v1::JobConfig config;
  config.set_name("small");
  config.mutable_cluster()->set_servers(2);
  config.mutable_cluster()->set_workers(2);
  config.mutable_cluster()->set_chunk_bytes(4096);
  config.mutable_cluster()->set_partitions_per_server(1);
  config.mutable_cluster()->set_lease_seconds(5);
  config.mutable_cluster()->set_start_timeout_seconds(60);
  config.mutable_cluster()->set_wait_timeout_seconds(600);
  config.mutable_model()->add_input_shape(8);
  auto* layer = config.mutable_model()->add_layers();
  layer->set_name("linear0");
  layer->mutable_linear()->set_units(4);
  config.mutable_model()->set_loss(v1::ModelConfig::SOFTMAX_CROSS_ENTROPY);
  config.mutable_data()->set_dispatch(v1::DataConfig::DYNAMIC);
  config.mutable_data()->set_shard_examples(10);
  config.mutable_consistency()->set_mode(v1::SYNC);
  config.mutable_training()->set_epochs(2);
  config.mutable_training()->set_batch_size(5);
  config.mutable_evaluation()->set_every_epochs(1);
  return config;
}

// Drives a core by hand, and plays the servers: they acknowledge what they are told at once unless they are mute.
class CoreHarness : public testing::Test {
 protected:
  using Line = v1::RunRecordLine;

  void Create(const v1::JobConfig& config) {
    config_ = config;
    auto core = CoordinatorCore::Create({config, kConfigFingerprint, 0x1234, now_});
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
    message.mutable_register_()->set_protocol_version(kProtocolVersion);
    message.mutable_register_()->set_config_fingerprint(fingerprint);
    if (task.role() == v1::TaskId::SERVER) message.mutable_register_()->set_address(":900");
    if (task.role() == v1::TaskId::WORKER) message.mutable_register_()->set_train_examples(kTrainExamples);
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
  v1::ShardGrant AskShard(const v1::TaskId& worker, uint64_t id, const std::vector<uint64_t>& finished = {}) {
    v1::TaskMessage message;
    *message.mutable_task() = worker;
    message.mutable_shard_request()->set_request_id(id);
    for (uint64_t shard : finished) message.mutable_shard_request()->add_finished_shards(shard);
    Deliver(message);
    return Last(worker).shard_grant();
  }
  void Leave(const v1::TaskId& task, const std::string& error = "") {
    v1::TaskMessage message;
    *message.mutable_task() = task;
    message.mutable_leaving()->set_error(error);
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
  void Reply(const v1::TaskId& server, const v1::Directive& directive) {
    v1::TaskMessage message;
    *message.mutable_task() = server;
    if (directive.has_announce()) {
      message.mutable_announce_ack()->set_generation(directive.announce().generation());
      message.mutable_announce_ack()->set_highest_started_step(started_);
    } else if (directive.has_commit()) {
      message.mutable_plan_ack()->set_generation(directive.commit().plan().generation());
      message.mutable_plan_ack()->set_amendment(directive.commit().plan().amendment());
    } else if (directive.has_checkpoint()) {
      message.mutable_checkpoint_done()->set_name(directive.checkpoint().name());
    } else {
      return;
    }
    Deliver(message);
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
  std::optional<absl::Status> finished_;
};

}  // namespace rubato::coordinator

#endif  // RUBATO_COORDINATOR_CORE_HARNESS_H_
