#include "tests/explorer/coordinator_actor.h"

#include <utility>
#include <variant>

#include "absl/strings/match.h"
#include "common/task.h"
#include "tests/explorer/server_actor.h"
#include "tests/explorer/task_link.h"
#include "tests/explorer/worker_actor.h"

namespace rubato::explorer {

using coordinator::CoordinatorCore;

namespace {

constexpr char kPeer[] = "ipv4:10.0.0.2:5555";
constexpr uint64_t kJobFingerprint = 77;

v1::JobConfig ConfigOf(const Scope& scope) {
  simulation::Scenario scenario;
  scenario.servers = scope.servers;
  scenario.partitions = scope.partitions;
  scenario.workers = scope.workers;
  scenario.chunks = scope.chunks;
  scenario.start = scope.start;
  scenario.lease = kLease;
  return simulation::MakeJobConfig(scenario);
}

}  // namespace

CoordinatorActor::CoordinatorActor(Model* model) : model_(model) {
  CoordinatorCore::Options options;
  options.config = ConfigOf(model_->scope);
  options.config_fingerprint = simulation::kConfigFingerprint;
  options.job_fingerprint = kJobFingerprint;
  options.start = now_;
  absl::StatusOr<std::unique_ptr<CoordinatorCore>> core = CoordinatorCore::Create(options);
  if (core.ok()) {
    core_ = *std::move(core);
  } else {
    finished_ = true;
    model_->oracle.Violate(absl::StrCat("the coordinator does not start: ", core.status().message()));
  }
}

void CoordinatorActor::Attach(TaskLink* link) { links_[link->task().incarnation()] = link; }

void CoordinatorActor::OnMessage(const v1::TaskMessage& message) {
  if (finished_) return;
  Perform(core_->OnMessage(message, kPeer, now_));
  if (!finished_) Perform(core_->OnTick(now_));
  Took(FingerprintOf("message", message.SerializeAsString()));
}

void CoordinatorActor::Took(uint64_t input) {
  if (std::exchange(acted_, false)) {
    history_ = FingerprintOf(history_, since_, input);
    since_ = 0;
  } else {
    since_ += input;
  }
}

uint64_t CoordinatorActor::Fingerprint() const { return finished_ ? 1 : FingerprintOf(history_, since_); }

void CoordinatorActor::OfferRequests() {
  if (model_->scope.switch_to.has_value()) {
    model_->schedule.Post({.actor = IdOf(Actor::kCoordinator),
                           .content = FingerprintOf("switch"),
                           .run = [this] { RequestSwitch(); },
                           .label = model_->Label("the operator asks for ", NameOf(*model_->scope.switch_to))});
  }
  if (model_->scope.cut) {
    model_->schedule.Post({.actor = IdOf(Actor::kCoordinator),
                           .content = FingerprintOf("cut"),
                           .run = [this] { RequestCut(); },
                           .label = model_->Label("the operator asks for a checkpoint")});
  }
}

void CoordinatorActor::RequestSwitch() {
  if (finished_) return;
  v1::SwitchModeRequest request;
  request.set_mode(model_->scope.switch_to->mode);
  request.set_staleness_bound(model_->scope.switch_to->staleness_bound);
  request.set_quorum(model_->scope.switch_to->quorum);
  Perform(core_->RequestSwitch(request, ++last_ticket_, now_));
  Took(FingerprintOf("switch"));
}

void CoordinatorActor::RequestCut() {
  if (finished_) return;
  Perform(core_->RequestCheckpoint(++last_ticket_, now_));
  Took(FingerprintOf("cut"));
}

void CoordinatorActor::AwaitLease(const v1::TaskId& dead) {
  model_->schedule.Post({.actor = IdOf(Actor::kCoordinator),
                         .content = FingerprintOf("lease", dead.incarnation()),
                         .run = [this, dead] { EndLease(dead); },
                         .label = model_->Label("the lease of ", TaskName(dead), " is over")});
}

void CoordinatorActor::EndLease(const v1::TaskId& dead) {
  // What it had said has come by now, or never will.
  model_->schedule.Withdraw(links_.at(dead.incarnation())->to_coordinator());
  constexpr int kParts = 3;  // Everybody else is heard more often than that.
  for (int part = 0; part <= kParts && !finished_; ++part) {
    now_ += kLease / kParts;
    for (const auto& [incarnation, link] : links_) {
      if (incarnation == dead.incarnation() || finished_) continue;
      v1::TaskMessage sign_of_life;
      *sign_of_life.mutable_task() = link->task();
      Perform(core_->OnMessage(sign_of_life, kPeer, now_));
    }
    if (!finished_) Perform(core_->OnTick(now_));
  }
  Took(FingerprintOf("lease", dead.incarnation()));
}

void CoordinatorActor::Perform(const coordinator::Actions& actions) {
  for (const coordinator::Action& action : actions) {
    acted_ = true;
    if (!finished_) PerformOne(action);
  }
}

void CoordinatorActor::PerformOne(const coordinator::Action& action) {
  if (const auto* send = std::get_if<coordinator::SendDirective>(&action)) {
    Send(*send);
  } else if (const auto* append = std::get_if<coordinator::AppendJournal>(&action)) {
    Write(append->record);
  } else if (std::holds_alternative<coordinator::RestartCore>(action)) {
    finished_ = true;
    model_->oracle.Violate("I5: the job goes back, and no server was lost");
  } else if (const auto* finish = std::get_if<coordinator::Finish>(&action)) {
    Finish(finish->status);
  }
}

void CoordinatorActor::Send(const coordinator::SendDirective& send) {
  model_->oracle.TermSpeaks(send.directive.term());
  const v1::Directive& directive = send.directive;
  const bool is_plan = directive.has_announce() || directive.has_commit() || directive.has_abort();
  if (send.task.role() == v1::TaskId::SERVER && is_plan) {
    return model_->servers[send.task.index()]->ReceivePlan(directive);
  }
  TaskLink* link = links_.at(send.task.incarnation());
  // Of what only files depend on, one order is enough.
  if (directive.has_keep_checkpoints()) return link->ReceiveNow(directive);
  // One that works learns of plans from the servers.
  const bool works = send.task.role() == v1::TaskId::WORKER && model_->workers[send.task.index()]->works();
  if (!works || !directive.has_commit()) link->Receive(directive);
}

void CoordinatorActor::Write(const v1::JournalRecord& record) {
  if (record.has_plan()) model_->oracle.Decided(record.plan().plan());
  if (record.has_cut()) model_->oracle.CutRecorded(record.cut(), model_->checkpoints, model_->job.chunks_size());
}

void CoordinatorActor::Finish(const absl::Status& status) {
  finished_ = true;
  // The data is never used up, so the job ends when its last worker has gone.
  if (status.ok() || absl::StrContains(status.message(), "no worker is left")) return;
  model_->oracle.Violate(absl::StrCat("I4: the job failed: ", status.message()));
}

std::string CoordinatorActor::Describe() const {
  if (finished_) return "coordinator: ended";
  const v1::JobStatus status = core_->Status(now_);
  return absl::StrCat("coordinator: ", v1::JobStatus::Phase_Name(status.phase()), ", plan ", status.plan().generation(),
                      ".", status.plan().amendment(), "; announced generation ", status.announced_generation(),
                      "; waits for: ", core_->WaitingFor());
}

}  // namespace rubato::explorer
