// CoordinatorCore: registration, and the way from STARTING to TRAINING.
#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/config/local_sgd.h"
#include "common/task.h"
#include "coordinator/coordinator_core.h"
#include "coordinator/registration.h"
#include "coordinator/run_record.h"

namespace rubato::coordinator {

void CoordinatorCore::OnRegister(const v1::TaskMessage& message, absl::string_view peer, absl::Time now) {
  const v1::TaskId& task = message.task();
  if (Ended()) return SendStop(task, error_);
  absl::Status allowed = CheckRegistration(
      {.config = &config_, .config_fingerprint = options_.config_fingerprint, .train_examples = train_examples_}, task,
      message.register_());
  if (!allowed.ok()) return Refuse(task, allowed.message());
  std::string address;
  if (task.role() == v1::TaskId::SERVER) {
    absl::StatusOr<std::string> reachable = ReachableAddress(message.register_().address(), peer);
    if (!reachable.ok()) return Refuse(task, absl::StrCat(TaskName(task), ": ", reachable.status().message()));
    address = *std::move(reachable);
  }
  v1::Register info = message.register_();
  if (!info.metrics_address().empty()) {
    absl::StatusOr<std::string> reachable = ReachableAddress(info.metrics_address(), peer);
    if (!reachable.ok()) return Refuse(task, absl::StrCat(TaskName(task), ": metrics: ", reachable.status().message()));
    info.set_metrics_address(*std::move(reachable));
  }
  const bool data_done = phase_ == v1::JobStatus::FINISHING || (dispatcher_ && dispatcher_->Done());
  if (task.role() == v1::TaskId::WORKER && data_done && membership_.FindAlive(task) == nullptr) {
    return SendStop(task, "");
  }
  Membership::Arrival arrival = membership_.Register(task, info, address, now);
  if (arrival.kind == Membership::Kind::kGone) {
    const Member* latest = membership_.Find(task.role(), task.index());
    const bool same = latest != nullptr && SameTask(latest->id, task);
    return SendStop(task, absl::StrCat(TaskName(task), " was evicted: ",
                                       same ? latest->reason : std::string("replaced by a new incarnation")));
  }
  if (arrival.replaced) {
    const std::string reason = "replaced by a new incarnation";
    SendStop(*arrival.replaced, absl::StrCat(TaskName(task), " was evicted: ", reason));
    Detach(*arrival.replaced, true, v1::MemberLine::EVICTED, reason, now);
    if (Ended()) return SendStop(task, error_);
  }
  if (arrival.kind == Membership::Kind::kNew) OnNewTask(task, now);
  Greet(task, now);
  if (!placed_) MaybePlace(now);
}

void CoordinatorCore::Refuse(const v1::TaskId& task, absl::string_view reason) {
  Log('W', std::string(reason));
  SendStop(task, reason);
}

void CoordinatorCore::OnNewTask(const v1::TaskId& task, absl::Time now) {
  const Member* member = membership_.FindAlive(task);
  counts_.set_joined_total(counts_.joined_total() + 1);
  Log('I', absl::StrCat(TaskName(task), " registered", member->address.empty() ? "" : ", reached at ", member->address,
                        member->info.host_name().empty() ? "" : absl::StrCat(", host ", member->info.host_name()),
                        ", process ", member->info.process_id(),
                        member->info.metrics_address().empty() ? "" : ", metrics at ", member->info.metrics_address()));
  if (task.role() == v1::TaskId::WORKER) train_examples_ = member->info.train_examples();
  if (!placed_) return;
  JournalTaskState(task);
  if (task.role() != v1::TaskId::WORKER) return;
  if (training_) Metrics(MemberLine(Seconds(now), task, v1::MemberLine::JOINED, ""));
  Apply(plan_maker_->AddWorker(task, now), now);
}

void CoordinatorCore::Greet(const v1::TaskId& task, absl::Time now) {
  v1::Directive registered;
  registered.mutable_registered()->set_lease_seconds(absl::ToDoubleSeconds(membership_.lease()));
  registered.mutable_registered()->set_waiting_for(placed_ ? "" : MissingTasks());
  Send(task, std::move(registered));
  if (!placed_) return;
  if (task.role() == v1::TaskId::WORKER) {
    if (training_) Send(task, Describe());
    return;
  }
  Send(task, Describe());
  v1::Directive directive;
  if (task.role() == v1::TaskId::EVALUATOR) {
    if (evaluations_.pending() == nullptr) return;
    *directive.mutable_evaluate() = *evaluations_.pending();
    return Send(task, std::move(directive));
  }
  Apply(plan_maker_->OnServerBack(task.index()), now);
  if (checkpoint_.empty() || checkpoint_done_.contains(task.index())) return;
  directive.mutable_checkpoint()->set_name(checkpoint_);
  Send(task, std::move(directive));
}

std::string CoordinatorCore::MissingTasks() const {
  std::vector<std::string> names;
  for (uint32_t i = 0; i < config_.cluster().servers(); ++i) {
    const Member* member = membership_.Find(v1::TaskId::SERVER, i);
    if (member == nullptr || member->state != v1::TaskStatus::ALIVE) names.push_back(TaskName(v1::TaskId::SERVER, i));
  }
  // Any indices will do; those that are free are named.
  size_t workers = membership_.Alive(v1::TaskId::WORKER).size();
  for (uint32_t i = 0; workers < config_.cluster().workers(); ++i) {
    const Member* member = membership_.Find(v1::TaskId::WORKER, i);
    if (member != nullptr && member->state == v1::TaskStatus::ALIVE) continue;
    names.push_back(TaskName(v1::TaskId::WORKER, i));
    ++workers;
  }
  constexpr size_t kNamed = 8;
  if (names.size() <= kNamed) return absl::StrJoin(names, ", ");
  const size_t others = names.size() - kNamed;
  names.resize(kNamed);
  return absl::StrCat(absl::StrJoin(names, ", "), " and ", others, " others");
}

// Tells everybody who is there, when the list of those who are missing has changed.
void CoordinatorCore::TellWaiting() {
  const std::string missing = placed_ ? "" : MissingTasks();
  if (missing == told_waiting_) return;
  told_waiting_ = missing;
  if (!missing.empty()) Log('I', absl::StrCat("waiting for ", missing));
  v1::Directive directive;
  directive.mutable_registered()->set_lease_seconds(absl::ToDoubleSeconds(membership_.lease()));
  directive.mutable_registered()->set_waiting_for(missing);
  for (v1::TaskId::Role role : {v1::TaskId::SERVER, v1::TaskId::WORKER, v1::TaskId::EVALUATOR}) {
    SendToAll(role, directive);
  }
}

void CoordinatorCore::MaybePlace(absl::Time now) {
  if (!MissingTasks().empty()) return;
  SetUp(train_examples_);
  v1::JournalRecord record;
  v1::JournalHeader* header = record.mutable_header();
  header->set_format_version(1);
  header->set_job_name(config_.name());
  header->set_config_fingerprint(options_.config_fingerprint);
  header->set_job_fingerprint(job_fingerprint_);
  header->set_train_examples(train_examples_);
  header->mutable_chunks()->Add(chunks_.begin(), chunks_.end());
  Journal(std::move(record), false);
  for (const auto& [key, member] : membership_.all()) JournalTaskState(member.id);
  Log('I',
      absl::StrCat("all tasks are there; ", chunks_.size(), " chunks on ", config_.cluster().servers(), " servers"));
  SendToAll(v1::TaskId::SERVER, Describe());
  SendToAll(v1::TaskId::EVALUATOR, Describe());
  for (const Member* worker : membership_.Alive(v1::TaskId::WORKER)) plan_maker_->AddWorker(worker->id, now);
  Apply(plan_maker_->Start(policy_.Initial(), now), now);
}

void CoordinatorCore::SetUp(int64_t train_examples) {
  placed_ = true;
  train_examples_ = train_examples;
  PlanMaker::Options options = {.servers = config_.cluster().servers()};
  if (Static()) {
    options.static_batch = ExamplesPerStep(config_);
    options.train_examples = train_examples;
  } else {
    dispatcher_.emplace(ShardDispatcher::Options{
        .train_examples = train_examples,
        .shard_examples = std::max<int64_t>(config_.data().shard_examples(), 1),
        .epochs = config_.training().epochs(),
    });
  }
  plan_maker_.emplace(options);
}

void CoordinatorCore::StartTraining(absl::Time now) {
  phase_ = v1::JobStatus::TRAINING;
  training_ = true;
  training_start_ = now;
  last_line_ = now;
  progress_.StartInterval(now);
  JournalPhase(phase_, now);
  Metrics(StartLine(0, config_, train_examples_));
  Log('I', absl::StrCat("training begins, ", ModeName(held_plan_.mode(), held_plan_.staleness_bound())));
  SendToAll(v1::TaskId::WORKER, Describe());
  SendToAll(v1::TaskId::EVALUATOR, Describe());
}

v1::Directive CoordinatorCore::Describe() const {
  v1::Directive directive;
  v1::JobDescription* job = directive.mutable_job();
  job->set_fingerprint(job_fingerprint_);
  for (const Member* server : membership_.Alive(v1::TaskId::SERVER)) {
    v1::ServerInfo* info = job->add_servers();
    *info->mutable_task() = server->id;
    info->set_address(server->address);
    if (server->info.has_shared_memory()) *info->mutable_shared_memory() = server->info.shared_memory();
  }
  job->mutable_chunks()->Add(chunks_.begin(), chunks_.end());
  if (held_plan_.generation() != 0) *job->mutable_plan() = held_plan_;
  return directive;
}

}  // namespace rubato::coordinator
