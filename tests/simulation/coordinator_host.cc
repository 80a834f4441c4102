#include "tests/simulation/coordinator_host.h"

#include <algorithm>
#include <utility>
#include <variant>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/task.h"
#include "coordinator/rules/compact_journal.h"
#include "tests/simulation/job.h"

namespace rubato::simulation {

using coordinator::CoordinatorCore;

namespace {

constexpr absl::Duration kTick = absl::Milliseconds(100);
// A coordinator that shall die in the middle of its work, or of a decision, and has none dies after this long.
constexpr absl::Duration kIdleDeath = absl::Milliseconds(300);
constexpr absl::Duration kUndecidedDeath = absl::Seconds(3);
constexpr char kPeer[] = "ipv4:10.0.0.2:5555";

std::string PlanText(const v1::Plan& plan) {
  const std::string cut = plan.has_cut() ? absl::StrCat(" with cut ", plan.cut().id()) : "";
  const std::string quorum = plan.quorum() > 0 ? absl::StrCat(" with quorum ", plan.quorum()) : "";
  return absl::StrCat("plan ", plan.generation(), ".", plan.amendment(), " ",
                      ModeName(plan.mode(), plan.staleness_bound()), quorum, cut, " from step ", plan.first_step(),
                      " of ", absl::StrJoin(plan.members(), ",", [](std::string* out, const v1::TaskId& task) {
                        absl::StrAppend(out, task.index(), "#", task.incarnation());
                      }));
}

// Whether something that must outlive the coordinator comes of them.
bool Decides(const coordinator::Actions& actions) {
  return std::any_of(actions.begin(), actions.end(), [](const coordinator::Action& action) {
    const auto* append = std::get_if<coordinator::AppendJournal>(&action);
    return append != nullptr && append->durable;
  });
}

}  // namespace

CoordinatorHost::CoordinatorHost(World* world) : world_(world) {
  Create();
  Tick(epoch_);
}

void CoordinatorHost::Create() {
  CoordinatorCore::Options options;
  options.config = world_->config;
  options.config_fingerprint = kConfigFingerprint;
  // As random as a real one: another with each start.
  options.job_fingerprint = world_->scenario.seed + 1 + (++cores_ << 32);
  options.start = world_->queue.Now();
  options.boot_id = BootId();
  absl::StatusOr<std::unique_ptr<CoordinatorCore>> core = CoordinatorCore::Create(options);
  if (core.ok()) {
    core_ = *std::move(core);
  } else {
    up_ = false;
    world_->oracle.Violate(absl::StrCat("the coordinator does not start: ", core.status().message()));
  }
}

void CoordinatorHost::Attach(ControlLink* link) { links_[link->task().incarnation()] = link; }

void CoordinatorHost::Deliver(uint64_t epoch, const v1::TaskMessage& message) {
  if (replaced_ && epoch == replaced_->epoch) replaced_->unheard.push_back(message);
  if (!up_ || epoch != epoch_) return;
  if (frozen_) return unheard_.push_back(message);
  Perform(core_->OnMessage(message, kPeer, world_->queue.Now()));
}

void CoordinatorHost::RequestSwitch(const Rules& rules) {
  if (!up_ || frozen_) return;
  v1::SwitchModeRequest request;
  request.set_mode(rules.mode);
  request.set_staleness_bound(rules.staleness_bound);
  request.set_quorum(rules.quorum);
  Perform(core_->RequestSwitch(request, ++tickets_, world_->queue.Now()));
}

void CoordinatorHost::RequestCheckpoint() {
  if (up_ && !frozen_) Perform(core_->RequestCheckpoint(++tickets_, world_->queue.Now()));
}

void CoordinatorHost::Tick(uint64_t epoch) {
  if (!up_ || epoch != epoch_) return;
  if (!frozen_) Perform(core_->OnTick(world_->queue.Now()));
  world_->queue.After(kTick, [this, epoch] { Tick(epoch); });
}

void CoordinatorHost::Perform(const coordinator::Actions& actions) {
  if (dies_deciding_ && Decides(actions)) dies_deciding_ = false;
  waiting_.insert(waiting_.end(), actions.begin(), actions.end());
  PerformWaiting();
}

void CoordinatorHost::PerformWaiting() {
  // An action may ask for others, which come after it.
  if (performing_ || frozen_) return;
  performing_ = true;
  while (up_ && !waiting_.empty()) {
    const bool writes = std::holds_alternative<coordinator::AppendJournal>(waiting_.front());
    if (writes && disk_full_ > 0) {
      world_->coverage.Note(Reached::kDiskFull);
      break;
    }
    if (dies_after_.has_value() && !dies_deciding_ && (*dies_after_)-- == 0) {
      Die();
      break;
    }
    const coordinator::Action action = std::move(waiting_.front());
    waiting_.pop_front();
    PerformOne(action);
  }
  performing_ = false;
}

void CoordinatorHost::FillDisk(absl::Duration length) {
  ++disk_full_;
  world_->queue.After(length, [this] {
    if (--disk_full_ == 0 && up_) PerformWaiting();
  });
}

void CoordinatorHost::PerformOne(const coordinator::Action& action) {
  if (const auto* send = std::get_if<coordinator::SendDirective>(&action)) {
    world_->oracle.TermSpeaks(send->directive.term());
    Send(*send, epoch_);
  } else if (const auto* append = std::get_if<coordinator::AppendJournal>(&action)) {
    Write(*append);
  } else if (const auto* line = std::get_if<coordinator::LogLine>(&action)) {
    world_->trace.Add("coordinator: ", line->text);
  } else if (const auto* answer = std::get_if<coordinator::AnswerSwitch>(&action)) {
    world_->trace.Add("coordinator: switch ", answer->ticket, " is answered ", answer->reply.status().ToString());
  } else if (const auto* answer = std::get_if<coordinator::AnswerCheckpoint>(&action)) {
    world_->trace.Add("coordinator: checkpoint ", answer->ticket, " is answered ", answer->reply.status().ToString());
  } else if (std::holds_alternative<coordinator::RestartCore>(action)) {
    const std::vector<v1::JournalRecord> records = coordinator::CompactJournal(ReadJournal());
    journal_.Replace(records);
    Create();
    Recover(records);
  } else if (const auto* finish = std::get_if<coordinator::Finish>(&action)) {
    Finish(finish->status);
  }
}

void CoordinatorHost::Send(const coordinator::SendDirective& send, uint64_t epoch) {
  world_->network.Send([link = links_.at(send.task.incarnation()), epoch, number = ++sent_,
                        directive = send.directive] { link->Deliver(epoch, number, directive); });
}

void CoordinatorHost::Freeze(const Fault& freeze) {
  if (!up_ || frozen_ || replaced_) return;
  world_->trace.Add("coordinator: freezes");
  frozen_ = true;
  world_->queue.After(freeze.length, [this, epoch = epoch_] { Thaw(epoch); });
  if (!freeze.replaced) return;
  world_->queue.After(freeze.length / 2, [this, epoch = epoch_] {
    if (up_ && epoch == epoch_) Replace();
  });
}

void CoordinatorHost::Thaw(uint64_t epoch) {
  if (replaced_ && epoch == replaced_->epoch) return WakeReplaced();
  if (!up_ || epoch != epoch_) return;
  world_->trace.Add("coordinator: goes on");
  world_->coverage.Note(Reached::kCoordinatorFroze);
  frozen_ = false;
  PerformWaiting();
  for (const v1::TaskMessage& message : std::exchange(unheard_, {})) Deliver(epoch, message);
}

void CoordinatorHost::Replace() {
  world_->trace.Add("coordinator: is taken for dead");
  // What waits for room on the disk comes first, and is not written any more.
  replaced_ = Replaced{epoch_, std::move(core_), std::exchange(unheard_, {}), /*gave_way=*/!waiting_.empty()};
  End();
  Restart();
}

void CoordinatorHost::WakeReplaced() {
  world_->trace.Add("coordinator: the one before goes on");
  const absl::Time now = world_->queue.Now();
  for (const v1::TaskMessage& message : replaced_->unheard) {
    if (!replaced_->gave_way) PerformReplaced(replaced_->core->OnMessage(message, kPeer, now));
  }
  if (!replaced_->gave_way) PerformReplaced(replaced_->core->OnTick(now));
  replaced_.reset();
}

void CoordinatorHost::PerformReplaced(const coordinator::Actions& actions) {
  for (const coordinator::Action& action : actions) {
    const auto* send = std::get_if<coordinator::SendDirective>(&action);
    replaced_->gave_way |= std::holds_alternative<coordinator::AppendJournal>(action);
    if (replaced_->gave_way || std::holds_alternative<coordinator::RestartCore>(action)) return;
    if (send == nullptr) continue;
    world_->coverage.Note(Reached::kOldCoordinatorSpoke);
    Send(*send, replaced_->epoch);
  }
}

void CoordinatorHost::Write(const coordinator::AppendJournal& append) {
  journal_.Append(append.record, append.durable);
  // It works on this one and on those that are not known in an order that is not known either.
  const v1::JournalLease& lease = append.record.lease();
  if (unknown_holders_.contains(lease.worker().incarnation())) world_->oracle.ForgetShards({lease.grant().shard()});
  if (append.record.has_announce()) {
    world_->trace.Add("coordinator: announces plan ", append.record.announce().generation(), ": ",
                      append.record.announce().reason());
  } else if (append.record.has_plan()) {
    world_->trace.Add("coordinator: decides ", PlanText(append.record.plan().plan()));
    world_->oracle.Decided(append.record.plan().plan());
  } else if (append.record.has_cut()) {
    world_->trace.Add("coordinator: cut ", append.record.cut().cut().id(), " is complete");
    world_->oracle.CutRecorded(append.record.cut(), world_->checkpoints, world_->job.chunks_size());
  } else if (append.record.has_header()) {
    world_->oracle.Began(append.record.header().job_fingerprint());
  } else if (append.record.has_term()) {
    OnTerm(append.record.term());
  }
}

void CoordinatorHost::OnTerm(const v1::JournalTerm& term) {
  world_->trace.Add(
      "coordinator: term ", term.term(),
      !term.has_rollback() ? ""
      : term.rollback().has_cut()
          ? absl::StrCat(" goes back to cut ", term.rollback().cut().cut().id(), ": ", term.rollback().reason())
          : absl::StrCat(" goes back to the beginning: ", term.rollback().reason()));
  if (!term.has_rollback()) return;
  std::vector<v1::CutRecord> complete;
  for (const v1::JournalRecord& record : ReadJournal()) {
    if (record.has_cut()) complete.push_back(record.cut());
  }
  if (world_->scenario.clients) CheckFirstWeights(term.rollback());
  // The first checkpoint is where the job began.
  v1::JournalTerm seen = term;
  if (term.rollback().cut().cut().id() == 0) seen.mutable_rollback()->clear_cut();
  world_->oracle.RolledBack(seen, complete, world_->checkpoints);
  world_->rollback.Begin(world_->job.servers_size());
}

void CoordinatorHost::CheckFirstWeights(const v1::JournalTerm::Rollback& rollback) {
  const bool to_first = rollback.has_cut() && rollback.cut().cut().id() == 0;
  if (to_first && !world_->weights_written) {
    return world_->oracle.Violate("I7: the job goes back to assigned weights, which were not all written");
  }
  if (!rollback.has_cut() && !world_->training.empty()) {
    return world_->oracle.Violate("I7: the job forgets the weights that were assigned");
  }
  if (to_first) world_->coverage.Note(Reached::kRollbackToFirstWeights);
}

void CoordinatorHost::Finish(const absl::Status& status) {
  world_->trace.Add("coordinator: ends with ", status.ToString());
  up_ = false;
  finished_ = true;
  if (status.ok()) {
    world_->coverage.Note(Reached::kDataUsedUp);
    if (!world_->scenario.own) world_->oracle.Done();
    return;
  }
  // Where data is left, the job ends when its last worker has gone.
  if (absl::StrContains(status.message(), "no worker is left")) return;
  world_->oracle.Violate(absl::StrCat("I4: the job failed: ", status.message()));
}

void CoordinatorHost::Crash(const Fault& crash) {
  if (!up_ || dies_after_.has_value()) return;
  dies_after_ = crash.step;
  dies_deciding_ = crash.at_decision;
  down_ = crash.length;
  world_->queue.After(crash.at_decision ? kUndecidedDeath : kIdleDeath, [this, epoch = epoch_] {
    if (up_ && epoch == epoch_) Die();
  });
}

void CoordinatorHost::Die() {
  const bool power_cut = world_->random.Below(2) == 0;
  world_->trace.Add("coordinator: dies", power_cut ? " and loses what is not on the disk" : "");
  if (power_cut) LosePower();
  if (world_->oracle.cuts().open()) world_->coverage.Note(Reached::kCoordinatorCrashInCut);
  if (world_->rollback.going_on()) world_->coverage.Note(Reached::kCoordinatorCrashInRollback);
  if (IsFinishing()) world_->coverage.Note(Reached::kCoordinatorCrashAtTheEnd);
  End();
  world_->queue.After(down_, [this] { Restart(); });
}

void CoordinatorHost::End() {
  up_ = false;
  frozen_ = false;
  unheard_.clear();
  waiting_.clear();
  dies_after_.reset();
  dies_deciding_ = false;
  for (auto& [incarnation, link] : links_) link->Broken();
}

void CoordinatorHost::LosePower() {
  const bool names_boots = world_->scenario.names_boots;
  const std::vector<v1::JournalRecord> records = ReadJournal();
  if (names_boots) ++boot_;
  const bool torn = journal_.LosePower(/*in_any_order=*/names_boots, &world_->random);
  const size_t kept = ReadJournal().size();
  if (torn && kept < records.size()) world_->coverage.Note(Reached::kJournalTorn);
  if (!journal_.Read("").ok()) world_->coverage.Note(Reached::kJournalWithHole);
  if (!names_boots) ForgetShards(records, kept);
}

void CoordinatorHost::ForgetShards(const std::vector<v1::JournalRecord>& records, size_t kept) {
  std::vector<uint64_t> shards;
  for (size_t i = kept; i < records.size(); ++i) {
    const v1::JournalRecord& record = records[i];
    if (record.has_lease()) unknown_holders_.insert(record.lease().worker().incarnation());
    shards.insert(shards.end(), record.finished_shards().shards().begin(), record.finished_shards().shards().end());
  }
  // Where somebody is in a shard of which nothing is known any more, says nothing about those that it was given before.
  for (const v1::JournalRecord& record : records) {
    if (unknown_holders_.contains(record.lease().worker().incarnation()))
      shards.push_back(record.lease().grant().shard());
  }
  world_->oracle.ForgetShards(shards);
}

void CoordinatorHost::Restart() {
  up_ = true;
  ++epoch_;
  world_->trace.Add("coordinator: starts again");
  Create();
  if (!up_) return;
  const std::vector<v1::JournalRecord> records = ReadJournal();
  if (world_->oracle.violation().empty()) journal_.Open(BootId());
  Recover(records);
  Tick(epoch_);
}

std::vector<v1::JournalRecord> CoordinatorHost::ReadJournal() {
  absl::StatusOr<std::vector<v1::JournalRecord>> records = journal_.Read(BootId());
  if (records.ok()) return *std::move(records);
  world_->oracle.Violate(absl::StrCat("I4: the coordinator cannot read its journal: ", records.status().message()));
  return {};
}

void CoordinatorHost::Recover(const std::vector<v1::JournalRecord>& records) {
  if (!up_) return;
  absl::StatusOr<coordinator::Actions> actions = core_->Recover(records, world_->queue.Now());
  if (actions.ok()) {
    Perform(*actions);
  } else if (absl::IsFailedPrecondition(actions.status()) && absl::StrContains(actions.status().message(), "ended")) {
    Finish(absl::StrContains(actions.status().message(), "(DONE") ? absl::OkStatus() : actions.status());
  } else {
    world_->oracle.Violate(absl::StrCat("I4: the coordinator does not recover: ", actions.status().message()));
  }
}

bool CoordinatorHost::IsFinishing() const { return up_ && core_->phase() == v1::JobStatus::FINISHING; }

bool CoordinatorHost::CountsOn(const v1::TaskId& task) const {
  if (!up_) return false;
  const v1::JobStatus job = core_->Status(world_->queue.Now());
  return std::any_of(job.tasks().begin(), job.tasks().end(), [&](const v1::TaskStatus& status) {
    return SameTask(status.task(), task) && status.state() == v1::TaskStatus::ALIVE;
  });
}

std::string CoordinatorHost::Describe() const {
  if (!up_) return finished_ ? "coordinator: ended" : "coordinator: down";
  const v1::JobStatus status = core_->Status(world_->queue.Now());
  return absl::StrCat("coordinator: ", v1::JobStatus::Phase_Name(status.phase()), ", ", PlanText(status.plan()),
                      "; announced generation ", status.announced_generation(), "; waits for: ", core_->WaitingFor());
}

}  // namespace rubato::simulation
