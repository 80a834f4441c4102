#include "tests/simulation/coordinator_host.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/task.h"

namespace rubato::simulation {

using coordinator::Membership;
using coordinator::PlanAction;
using coordinator::PlanChange;
using coordinator::PlanMaker;

namespace {

constexpr absl::Duration kTick = absl::Milliseconds(100);
// A coordinator that shall die in the middle of its work and has none dies after this long.
constexpr absl::Duration kIdleDeath = absl::Milliseconds(300);

PlanChange ChangeTo(const Rules& rules, const std::string& reason) {
  PlanChange change;
  change.mode = rules.mode;
  change.staleness_bound = rules.staleness_bound;
  change.quorum = rules.quorum;
  change.reason = reason;
  return change;
}

std::string PlanText(const v1::Plan& plan) {
  return absl::StrCat("plan ", plan.generation(), ".", plan.amendment(), " ",
                      ModeName(plan.mode(), plan.staleness_bound()), plan.quorum() > 0 ? " quorum " : "",
                      plan.quorum() > 0 ? absl::StrCat(plan.quorum()) : "", " from step ", plan.first_step(), " of ",
                      absl::StrJoin(plan.members(), ",", [](std::string* out, const v1::TaskId& task) {
                        absl::StrAppend(out, task.index(), "#", task.incarnation());
                      }));
}

}  // namespace

CoordinatorHost::CoordinatorHost(World* world) : world_(world) {
  membership_.emplace(world_->scenario.lease);
  plan_maker_.emplace(PlanOptions());
  Tick(epoch_);
}

PlanMaker::Options CoordinatorHost::PlanOptions() const {
  PlanMaker::Options options;
  options.servers = world_->scenario.servers;
  return options;
}

void CoordinatorHost::Attach(ControlLink* link) { links_[link->task().incarnation()] = link; }

void CoordinatorHost::Send(const v1::TaskId& task, v1::Directive directive) {
  world_->network.Send([link = links_.at(task.incarnation()), epoch = epoch_, directive = std::move(directive)] {
    link->Deliver(epoch, directive);
  });
}

void CoordinatorHost::Stop(const v1::TaskId& task) {
  v1::Directive directive;
  directive.mutable_stop()->set_error("the coordinator has given this task up");
  Send(task, std::move(directive));
}

void CoordinatorHost::Deliver(uint64_t epoch, const v1::TaskMessage& message) {
  if (!up_ || epoch != epoch_) return;
  const absl::Time now = world_->queue.Now();
  const v1::TaskId& task = message.task();
  if (message.has_register_()) return OnRegister(task);
  if (membership_->Hear(task, now) == nullptr) return Stop(task);
  switch (message.body_case()) {
    case v1::TaskMessage::kHeartbeat:
      if (task.role() == v1::TaskId::WORKER) OnHeartbeat(task, message.heartbeat().progress());
      return;
    case v1::TaskMessage::kAnnounceAck:
      return Perform(plan_maker_->OnAnnounceAck(task.index(), message.announce_ack().generation(),
                                                message.announce_ack().highest_started_step(), now));
    case v1::TaskMessage::kPlanAck:
      return Perform(
          plan_maker_->OnPlanAck(task.index(), message.plan_ack().generation(), message.plan_ack().amendment(), now));
    case v1::TaskMessage::kLeaving:
      return Remove(task, false, "left");
    default:
      return;
  }
}

void CoordinatorHost::OnRegister(const v1::TaskId& task) {
  const absl::Time now = world_->queue.Now();
  Membership::Arrival arrival = membership_->Register(task, {}, "", now);
  if (arrival.kind == Membership::Kind::kGone) return Stop(task);
  if (arrival.kind == Membership::Kind::kNew) {
    journal_.push_back({.kind = JournalEntry::Kind::kRegistered, .task = task});
    if (arrival.replaced.has_value()) Remove(*arrival.replaced, true, "replaced by a new incarnation");
    if (!up_) return;
    world_->trace.Add("coordinator: ", TaskName(task), " #", task.incarnation(), " registered");
    if (task.role() == v1::TaskId::WORKER) Perform(plan_maker_->AddWorker(task, now));
    if (up_) MaybeStart();
  }
  if (!up_) return;
  v1::Directive directive;
  directive.mutable_registered()->set_lease_seconds(absl::ToDoubleSeconds(world_->scenario.lease));
  Send(task, std::move(directive));
  if (task.role() == v1::TaskId::SERVER) Perform(plan_maker_->OnServerBack(task.index()));
}

void CoordinatorHost::MaybeStart() {
  if (plan_maker_->has_plan() || membership_->Alive(v1::TaskId::SERVER).size() < world_->scenario.servers ||
      membership_->Alive(v1::TaskId::WORKER).size() < world_->scenario.workers) {
    return;
  }
  Perform(plan_maker_->Start(ChangeTo(world_->scenario.start, "start"), world_->queue.Now()));
}

void CoordinatorHost::OnHeartbeat(const v1::TaskId& task, const v1::WorkerProgress& progress) {
  if (progress.generation() != 0) {
    return Perform(plan_maker_->OnEntered(task, progress.generation(), world_->queue.Now()));
  }
  if (!plan_maker_->has_plan() || !plan_maker_->HeldByAllServers()) return;
  // It may have missed the plan that it shall begin with.
  for (const v1::TaskId& member : plan_maker_->plan().members()) {
    if (!SameTask(member, task)) continue;
    v1::Directive directive;
    *directive.mutable_commit()->mutable_plan() = plan_maker_->plan();
    Send(task, std::move(directive));
  }
}

void CoordinatorHost::Remove(const v1::TaskId& worker, bool lost, const std::string& reason) {
  const bool was_alive = lost ? membership_->Evict(worker, reason) : membership_->Leave(worker, reason);
  world_->trace.Add("coordinator: ", TaskName(worker), " #", worker.incarnation(), " ", reason);
  journal_.push_back({.kind = JournalEntry::Kind::kGone, .task = worker});
  if (was_alive && lost) Stop(worker);
  Perform(plan_maker_->RemoveWorker(worker, lost, world_->queue.Now()));
}

void CoordinatorHost::RequestSwitch(const Rules& rules) {
  if (up_) Perform(plan_maker_->RequestChange(ChangeTo(rules, "operator"), world_->queue.Now()));
}

void CoordinatorHost::Tick(uint64_t epoch) {
  if (!up_ || epoch != epoch_) return;
  const absl::Time now = world_->queue.Now();
  for (const v1::TaskId& task : membership_->Expired(now)) {
    // Servers live as long as the job; their messages may all be lost for a while.
    if (task.role() == v1::TaskId::WORKER && up_) Remove(task, true, "no heartbeat");
  }
  if (up_) Perform(plan_maker_->OnTick(now));
  world_->queue.After(kTick, [this, epoch] { Tick(epoch); });
}

void CoordinatorHost::Perform(const Actions& actions) {
  for (const PlanAction& action : actions) {
    if (!up_) return;
    if (dies_after_.has_value() && (*dies_after_)-- == 0) return Die();
    PerformOne(action);
  }
}

void CoordinatorHost::PerformOne(const PlanAction& action) {
  v1::TaskId server;
  if (const auto* member = membership_->Find(v1::TaskId::SERVER, action.server)) server = member->id;
  v1::Directive directive;
  switch (action.kind) {
    case PlanAction::Kind::kJournalAnnounce:
      world_->trace.Add("coordinator: announces plan ", action.generation, ": ", action.change.reason);
      journal_.push_back(
          {.kind = JournalEntry::Kind::kAnnounce, .generation = action.generation, .change = action.change});
      return;
    case PlanAction::Kind::kJournalPlan:
      world_->trace.Add("coordinator: decides ", PlanText(action.plan));
      journal_.push_back({.kind = JournalEntry::Kind::kPlan,
                          .plan = action.plan,
                          .members_decided = action.members_decided,
                          .generation = action.plan.generation(),
                          .change = action.change});
      return;
    case PlanAction::Kind::kAnnounce:
      directive.mutable_announce()->set_generation(action.generation);
      return Send(server, std::move(directive));
    case PlanAction::Kind::kCommit:
      *directive.mutable_commit()->mutable_plan() = action.plan;
      return Send(server, std::move(directive));
    case PlanAction::Kind::kAbort:
      directive.mutable_abort()->set_generation(action.generation);
      return Send(server, std::move(directive));
    case PlanAction::Kind::kCommitted:
    case PlanAction::Kind::kAmended:
      return TellWorkers(action.plan);
    case PlanAction::Kind::kDropped:
      return;
  }
}

void CoordinatorHost::TellWorkers(const v1::Plan& plan) {
  v1::Directive directive;
  *directive.mutable_commit()->mutable_plan() = plan;
  for (const auto* worker : membership_->Alive(v1::TaskId::WORKER)) Send(worker->id, directive);
}

void CoordinatorHost::Crash(uint32_t actions, absl::Duration down) {
  if (!up_ || dies_after_.has_value()) return;
  dies_after_ = actions;
  down_ = down;
  world_->queue.After(kIdleDeath, [this, epoch = epoch_] {
    if (up_ && epoch == epoch_) Die();
  });
}

void CoordinatorHost::Die() {
  world_->trace.Add("coordinator: dies");
  up_ = false;
  dies_after_.reset();
  for (auto& [incarnation, link] : links_) link->Broken();
  world_->queue.After(down_, [this] { Restart(); });
}

void CoordinatorHost::Restart() {
  const absl::Time now = world_->queue.Now();
  up_ = true;
  ++epoch_;
  membership_.emplace(world_->scenario.lease);
  plan_maker_.emplace(PlanOptions());
  const JournalEntry* plan = nullptr;
  std::optional<std::pair<uint64_t, PlanChange>> announced;
  for (const JournalEntry& entry : journal_) {
    if (entry.kind == JournalEntry::Kind::kRegistered) membership_->Register(entry.task, {}, "", now);
    if (entry.kind == JournalEntry::Kind::kGone) membership_->Evict(entry.task, "gone before the restart");
    if (entry.kind == JournalEntry::Kind::kAnnounce) announced.emplace(entry.generation, entry.change);
    if (entry.kind == JournalEntry::Kind::kPlan) plan = &entry;
  }
  membership_->RenewAll(now);
  world_->trace.Add("coordinator: restarts with ", plan == nullptr ? "no plan" : PlanText(plan->plan));
  const v1::Plan last = plan == nullptr ? v1::Plan() : plan->plan;
  if (plan != nullptr) Perform(plan_maker_->Resume(last, plan->members_decided, announced, now));
  for (const auto* worker : membership_->Alive(v1::TaskId::WORKER)) {
    if (up_) Perform(plan_maker_->AddWorker(worker->id, now));
  }
  for (const v1::TaskId& member : last.members()) {
    if (up_ && membership_->FindAlive(member) == nullptr) Perform(plan_maker_->RemoveWorker(member, true, now));
  }
  for (auto& [incarnation, link] : links_) link->Connect();
  if (up_) MaybeStart();
  Tick(epoch_);
}

std::string CoordinatorHost::Describe() const {
  if (!up_) return "coordinator: down";
  return absl::StrCat("coordinator: ", PlanText(plan_maker_->plan()), "; announced generation ",
                      plan_maker_->announced_generation(), "; waits for: ", plan_maker_->WaitingFor());
}

}  // namespace rubato::simulation
