#include "tests/explorer/coordinator_actor.h"

#include <algorithm>
#include <iterator>
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
  // After a rollback everybody comes back.
  scenario.server_grace = absl::Hours(1);
  return simulation::MakeJobConfig(scenario);
}

}  // namespace

CoordinatorActor::CoordinatorActor(Model* model) : model_(model) { Create(); }

void CoordinatorActor::Create() {
  CoordinatorCore::Options options;
  options.config = ConfigOf(model_->scope);
  options.config_fingerprint = simulation::kConfigFingerprint;
  // As random as a real one: another with each start.
  options.job_fingerprint = kJobFingerprint + cores_++;
  options.start = now_;
  absl::StatusOr<std::unique_ptr<CoordinatorCore>> core = CoordinatorCore::Create(options);
  if (core.ok()) {
    core_ = *std::move(core);
  } else {
    finished_ = true;
    model_->oracle.Violate(absl::StrCat("the coordinator does not start: ", core.status().message()));
  }
}

void CoordinatorActor::Recover() {
  if (finished_) return;
  absl::StatusOr<coordinator::Actions> actions = core_->Recover(journal_, now_);
  if (!actions.ok()) {
    finished_ = true;
    return model_->oracle.Violate(absl::StrCat("I4: the coordinator does not recover: ", actions.status().message()));
  }
  history_ = FingerprintOfJournal();
  since_ = 0;
  Perform(*actions);
}

uint64_t CoordinatorActor::FingerprintOfJournal() const {
  auto goes_back = [](const v1::JournalRecord& record) { return record.term().has_rollback(); };
  const auto last = std::find_if(journal_.rbegin(), journal_.rend(), goes_back);
  const auto begin = last == journal_.rend() ? journal_.begin() : std::prev(last.base());
  uint64_t fingerprint = 0;
  for (auto record = journal_.begin(); record != journal_.end(); ++record) {
    if (record < begin && !record->has_cut()) continue;
    v1::JournalRecord content = *record;
    // For people.
    if (goes_back(content)) content.mutable_term()->mutable_rollback()->clear_reason();
    fingerprint = Mix(fingerprint, content.SerializeAsString());
  }
  return fingerprint;
}

void CoordinatorActor::Attach(TaskLink* link) { links_[link->task().incarnation()] = link; }

void CoordinatorActor::OnMessage(const v1::TaskMessage& message) {
  if (finished_) return;
  if (message.has_register_()) registered_.insert(message.task().incarnation());
  // Where what it has said may be forgotten, the task waits for the answer.
  if (message.has_leaving() && model_->scope.MayForget()) leaving_ = links_.at(message.task().incarnation());
  coordinator::Actions actions = core_->OnMessage(message, kPeer, now_);
  auto is_send = [](const auto& action) { return std::holds_alternative<coordinator::SendDirective>(action); };
  // One that it knows has come back: it says what it knows, and has learned nothing.
  const bool comes_back = message.has_register_() && std::all_of(actions.begin(), actions.end(), is_send);
  const uint64_t input = comes_back ? 0 : FingerprintOf("message", message.SerializeAsString());
  // In which order they come makes no difference to a job that waits for all of them.
  const bool waits = message.has_register_() && core_->phase() == v1::JobStatus::STARTING;
  Do(std::move(actions), input, waits);
}

void CoordinatorActor::Took(uint64_t input) {
  if (std::exchange(acted_, false)) {
    history_ = FingerprintOf(history_, since_, input);
    since_ = 0;
  } else {
    since_ += input;
  }
}

uint64_t CoordinatorActor::Fingerprint() const {
  if (finished_) return 1;
  uint64_t fingerprint = FingerprintOf(history_, since_);
  for (uint64_t incarnation : registered_) fingerprint = Mix(fingerprint, incarnation);
  return fingerprint;
}

void CoordinatorActor::Do(coordinator::Actions actions, uint64_t input, bool waits) {
  coordinator::Actions at_tick = core_->OnTick(now_);
  std::move(at_tick.begin(), at_tick.end(), std::back_inserter(actions));
  acted_ = !waits && !actions.empty();
  if (input != 0) Took(input);
  const std::vector<size_t> places = may_die_ ? WhereToDie(actions) : std::vector<size_t>();
  if (places.empty()) return DoAll(actions);
  OfferDeathAmid(actions, places);
}

void CoordinatorActor::DoAll(const coordinator::Actions& actions) {
  Perform(actions);
  if (TaskLink* leaving = std::exchange(leaving_, nullptr)) leaving->ReceiveFarewell();
}

std::vector<size_t> CoordinatorActor::WhereToDie(const coordinator::Actions& actions) const {
  std::vector<size_t> places;
  bool is_known = false;
  for (size_t i = 0; i < actions.size(); ++i) {
    const bool writes = std::holds_alternative<coordinator::AppendJournal>(actions[i]);
    const auto* send = std::get_if<coordinator::SendDirective>(&actions[i]);
    if (writes && is_known) places.push_back(i);
    is_known = is_known || writes || (send != nullptr && Reaches(*send));
  }
  return places;
}

void CoordinatorActor::OfferDeathAmid(const coordinator::Actions& actions, const std::vector<size_t>& places) {
  const uint64_t tag = FingerprintOf("amid");
  model_->schedule.Post({.actor = IdOf(Actor::kCoordinator),
                         .content = FingerprintOf("does all"),
                         .tag = tag,
                         .run =
                             [this, tag, actions] {
                               model_->schedule.Withdraw(tag);
                               DoAll(actions);
                             },
                         .label = model_->Label("the coordinator does what it has decided"),
                         .urgent = true});
  for (size_t place : places) {
    model_->schedule.Post({.actor = IdOf(Actor::kCoordinator),
                           .content = FingerprintOf("dies amid", uint64_t{place}),
                           .tag = tag,
                           .run =
                               [this, tag, actions, place] {
                                 model_->schedule.Withdraw(tag);
                                 Perform({actions.begin(), actions.begin() + static_cast<std::ptrdiff_t>(place)});
                                 Die();
                               },
                           .label = model_->Label("the coordinator dies after ", place, " of ", actions.size(),
                                                  " actions, and is started again"),
                           .urgent = true});
  }
}

void CoordinatorActor::OfferFaults() {
  may_die_ = model_->scope.crash_coordinator;
  if (!may_die_) return;
  model_->schedule.Post({.actor = IdOf(Actor::kCoordinator),
                         .content = FingerprintOf("dies"),
                         .tag = TagOf(Once::kCrashCoordinator),
                         .run = [this] { Die(); },
                         .label = model_->Label("the coordinator dies, and is started again")});
}

// While it is down nothing happens to anybody that could not as well happen before or after it.
void CoordinatorActor::Die() {
  may_die_ = false;
  model_->schedule.Withdraw(TagOf(Once::kCrashCoordinator));
  if (finished_) return;
  ++session_;
  registered_.clear();
  leaving_ = nullptr;
  Create();
  Recover();
  for (const auto& [incarnation, link] : links_) link->EndSession(session_, term_);
}

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
  Do(core_->RequestSwitch(request, ++last_ticket_, now_), FingerprintOf("switch"), /*waits=*/false);
}

void CoordinatorActor::RequestCut() {
  if (finished_) return;
  Do(core_->RequestCheckpoint(++last_ticket_, now_), FingerprintOf("cut"), /*waits=*/false);
}

void CoordinatorActor::AwaitLease(const v1::TaskId& dead) {
  model_->schedule.Post({.actor = IdOf(Actor::kCoordinator),
                         .content = FingerprintOf("lease", dead.incarnation()),
                         .tag = FingerprintOf("lease"),
                         .run = [this, dead] { EndLease(dead); },
                         .label = model_->Label("the lease of ", TaskName(dead), " is over")});
}

void CoordinatorActor::EndLease(const v1::TaskId& dead) {
  // What it had said has come by now, or never will.
  model_->schedule.Withdraw(links_.at(dead.incarnation())->to_coordinator());
  acted_ = false;
  constexpr int kParts = 3;  // Everybody else is heard more often than that.
  const uint64_t core = cores_;
  // Once the job goes back, nobody is any more who was before.
  auto goes_on = [this, core] { return !finished_ && cores_ == core; };
  for (int part = 0; part <= kParts && goes_on(); ++part) {
    now_ += kLease / kParts;
    for (const auto& [incarnation, link] : links_) {
      if (incarnation == dead.incarnation() || !goes_on()) continue;
      v1::TaskMessage sign_of_life;
      *sign_of_life.mutable_task() = link->task();
      Perform(core_->OnMessage(sign_of_life, kPeer, now_));
    }
    if (goes_on()) Perform(core_->OnTick(now_));
  }
  if (goes_on()) Took(FingerprintOf("lease", dead.incarnation()));
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
    model_->schedule.Withdraw(FingerprintOf("lease"));
    Create();
    Recover();
  } else if (const auto* finish = std::get_if<coordinator::Finish>(&action)) {
    Finish(finish->status);
  }
}

bool CoordinatorActor::Reaches(const coordinator::SendDirective& send) const {
  // What it says is known to everybody here.
  if (send.directive.has_registered()) return false;
  const TaskLink& link = *links_.at(send.task.incarnation());
  if (link.closed() || !HasSessionOf(send.task.incarnation())) return false;
  if (send.task.role() == v1::TaskId::SERVER) {
    return !send.directive.has_job() || !model_->servers[send.task.index()]->works();
  }
  // One that works learns of plans from the servers.
  return !model_->workers[send.task.index()]->works() || !(send.directive.has_commit() || send.directive.has_job());
}

void CoordinatorActor::Send(const coordinator::SendDirective& send) {
  model_->oracle.TermSpeaks(send.directive.term());
  if (!Reaches(send)) return;
  const v1::Directive& directive = send.directive;
  const bool is_plan = directive.has_announce() || directive.has_commit() || directive.has_abort();
  if (send.task.role() == v1::TaskId::SERVER && is_plan) {
    return model_->servers[send.task.index()]->ReceivePlan(directive);
  }
  TaskLink* link = links_.at(send.task.incarnation());
  // Of what only files depend on, one order is enough.
  if (directive.has_keep_checkpoints()) return link->ReceiveNow(directive);
  link->Receive(directive);
}

void CoordinatorActor::Write(const v1::JournalRecord& record) {
  journal_.push_back(record);
  if (record.has_plan()) {
    if (core_->phase() == v1::JobStatus::STARTING) first_generation_ = record.plan().plan().generation();
    model_->oracle.Decided(record.plan().plan());
  }
  if (record.has_cut()) model_->oracle.CutRecorded(record.cut(), model_->checkpoints, model_->job.chunks_size());
  if (!record.has_term()) return;
  term_ = record.term().term();
  if (record.term().has_rollback()) OnRollback(record.term());
}

void CoordinatorActor::OnRollback(const v1::JournalTerm& term) {
  if (!model_->scope.crash_server) model_->oracle.Violate("I5: the job goes back, and no server was lost");
  std::vector<v1::CutRecord> complete;
  for (const v1::JournalRecord& record : journal_) {
    if (record.has_cut()) complete.push_back(record.cut());
  }
  model_->oracle.RolledBack(term, complete, model_->checkpoints);
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
