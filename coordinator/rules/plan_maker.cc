#include "coordinator/rules/plan_maker.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/mutants.h"
#include "common/static_partition.h"
#include "common/task.h"

namespace rubato::coordinator {
namespace {

PlanAction ToServer(PlanAction::Kind kind, uint32_t server) {
  PlanAction action{.kind = kind, .server = server};
  return action;
}

PlanAction JournalPlan(const v1::Plan& plan, size_t members_decided, const PlanChange& change) {
  PlanAction action{.kind = PlanAction::Kind::kJournalPlan};
  action.plan = plan;
  action.members_decided = members_decided;
  action.change = change;
  return action;
}

PlanAction Dropped(const PlanChange& change) {
  PlanAction action{.kind = PlanAction::Kind::kDropped};
  action.change = change;
  return action;
}

void SetRules(const PlanChange& change, v1::Plan* plan) {
  plan->set_mode(change.mode);
  plan->set_staleness_bound(change.mode == v1::SSP ? change.staleness_bound : 0);
  plan->set_quorum(change.mode == v1::SYNC ? change.quorum : 0);
  plan->set_learning_rate_scale(change.learning_rate_scale == 0 ? 1 : change.learning_rate_scale);
}

// A new plan asks for no more contributions than it has members.
void CapQuorum(v1::Plan* plan) {
  plan->set_quorum(std::min(plan->quorum(), static_cast<uint32_t>(plan->members_size())));
}

}  // namespace

std::map<uint32_t, uint32_t> BatchSizes(const v1::Plan& plan) {
  std::map<uint32_t, uint32_t> sizes;
  for (int i = 0; i < std::min(plan.batch_sizes_size(), plan.decided_members_size()); ++i) {
    sizes[plan.decided_members(i)] = plan.batch_sizes(i);
  }
  return sizes;
}

PlanMaker::Actions PlanMaker::Start(const PlanChange& first, absl::Time now) {
  Actions actions;
  plan_.set_generation(++last_generation_);
  plan_.set_first_step(options_.first_step);
  plan_.set_first_example(options_.first_example);
  SetRules(first, &plan_);
  plan_.set_sync_every(first.sync_every);
  if (first.momentum) plan_.set_momentum(*first.momentum);
  plan_.set_uncompressed(!first.compress.value_or(true));
  SetMembers(&plan_);
  SetBatchSizes(first, &plan_);
  members_decided_ = workers_.size();
  change_ = first;
  change_at_ = now;
  actions.push_back(JournalPlan(plan_, members_decided_, change_));
  SendPlan(now, &actions);
  return actions;
}

PlanMaker::Actions PlanMaker::Resume(const v1::Plan& plan, size_t members_decided, uint32_t requested_quorum,
                                     const std::optional<std::pair<uint64_t, PlanChange>>& announced, absl::Time now) {
  Actions actions;
  plan_ = plan;
  members_decided_ = members_decided;
  last_generation_ = plan.generation();
  if (plan.has_cut()) last_cut_step_ = plan.first_step();
  change_ = PresentRules("coordinator restarted");
  change_.quorum = requested_quorum;
  change_at_ = now;
  // With STATIC dispatch a member is missing because it was lost, or because it had no more to do; then the others have
  // nothing to take over either.
  repartition_ = options_.static_batch > 0 && static_cast<size_t>(plan.members_size()) < members_decided;
  for (const v1::TaskId& member : plan.members()) workers_[member.index()] = member;
  SendPlan(now, &actions);
  if (announced && announced->first > plan.generation()) Announce(announced->first, announced->second, now, &actions);
  return actions;
}

PlanMaker::Actions PlanMaker::AddWorker(const v1::TaskId& worker, absl::Time now) {
  Actions actions;
  workers_[worker.index()] = worker;
  MaybeAnnounce(now, &actions);
  return actions;
}

PlanMaker::Actions PlanMaker::RemoveWorkers(const std::vector<v1::TaskId>& workers, bool lost, absl::Time now) {
  Actions actions;
  bool has_some = false;
  for (const v1::TaskId& worker : workers) {
    auto found = workers_.find(worker.index());
    const bool known = found != workers_.end() && SameTask(found->second, worker);
    if (known && !RUBATO_MUTANT(kLostWorkerStays)) workers_.erase(found);
    auto* members = plan_.mutable_members();
    auto member = std::find_if(members->begin(), members->end(),
                               [&task = worker](const v1::TaskId& candidate) { return SameTask(candidate, task); });
    if (member == members->end()) continue;
    members->erase(member);
    has_some = true;
  }
  if (!has_some) return actions;
  // An amendment changes nothing else. Servers take a quorum of more than all who are left as all of them.
  if (!RUBATO_MUTANT(kAmendmentKeepsNumber)) plan_.set_amendment(plan_.amendment() + 1);
  repartition_ |= lost && options_.static_batch > 0;
  actions.push_back(JournalPlan(plan_, members_decided_, change_));
  SendPlan(now, &actions);
  return actions;
}

PlanMaker::Actions PlanMaker::RequestChange(const PlanChange& change, absl::Time now) {
  Actions actions;
  if (closed_) return {Dropped(change)};
  if (waiting_) actions.push_back(Dropped(*waiting_));
  waiting_ = change;
  MaybeAnnounce(now, &actions);
  return actions;
}

PlanMaker::Actions PlanMaker::RequestCut(const v1::Cut& cut, absl::Time now) {
  Actions actions;
  if (closed_) return actions;
  waiting_cut_ = cut;
  MaybeAnnounce(now, &actions);
  return actions;
}

PlanMaker::Actions PlanMaker::OnAnnounceAck(uint32_t server, uint64_t generation, int64_t highest_started_step,
                                            absl::Time now) {
  Actions actions;
  if (!announced_ || announced_->generation != generation || !Has(server)) return actions;
  // Nothing is started once a server holds, so a repeated answer can say no more than the first.
  announced_->acks.emplace(server, highest_started_step);
  const size_t needed = RUBATO_MUTANT(kDecidesOnFirstAnswer) ? 1 : options_.servers.size();
  if (announced_->acks.size() == needed) Decide(now, &actions);
  return actions;
}

PlanMaker::Actions PlanMaker::OnPlanAck(uint32_t server, uint64_t generation, uint64_t amendment, absl::Time now) {
  Actions actions;
  if (!Has(server) || generation > plan_.generation()) return actions;
  Held& held = held_[server];
  if (std::pair(held.generation, held.amendment) < std::pair(generation, amendment)) held = {generation, amendment};
  if (!HeldByAllServers()) return actions;
  if (!std::exchange(committed_, true)) {
    PlanAction& action = actions.emplace_back(PlanAction{.kind = PlanAction::Kind::kCommitted});
    action.plan = plan_;
    action.change = change_;
    action.round_trip = now - change_at_;
    reported_amendment_ = plan_.amendment();
  } else if (reported_amendment_ != plan_.amendment()) {
    PlanAction& action = actions.emplace_back(PlanAction{.kind = PlanAction::Kind::kAmended});
    action.plan = plan_;
    reported_amendment_ = plan_.amendment();
  }
  MaybeAnnounce(now, &actions);
  return actions;
}

PlanMaker::Actions PlanMaker::OnEntered(const v1::TaskId& worker, uint64_t generation, absl::Time now) {
  Actions actions;
  Entered& entered = entered_[worker.index()];
  if (entered.incarnation != worker.incarnation()) entered = {worker.incarnation(), 0};
  if (generation <= entered.generation) return actions;
  entered.generation = generation;
  MaybeAnnounce(now, &actions);
  return actions;
}

PlanMaker::Actions PlanMaker::OnServerBack(uint32_t server) {
  Actions actions;
  if (!has_plan() || !Has(server)) return actions;
  actions.emplace_back(ToServer(PlanAction::Kind::kCommit, server)).plan = plan_;
  if (announced_)
    actions.emplace_back(ToServer(PlanAction::Kind::kAnnounce, server)).generation = announced_->generation;
  return actions;
}

PlanMaker::Actions PlanMaker::OnTick(absl::Time now) {
  Actions actions;
  if (!has_plan()) return actions;
  if (!HeldByAllServers() && now - sent_at_ >= options_.resend) SendPlan(now, &actions);
  if (announced_ && now - announced_->sent_at >= options_.resend) {
    announced_->sent_at = now;
    for (uint32_t server : options_.servers) {
      if (announced_->acks.contains(server)) continue;
      actions.emplace_back(ToServer(PlanAction::Kind::kAnnounce, server)).generation = announced_->generation;
    }
  }
  MaybeAnnounce(now, &actions);
  return actions;
}

PlanMaker::Actions PlanMaker::Close() {
  Actions actions;
  closed_ = true;
  if (announced_) {
    for (uint32_t server : options_.servers) {
      actions.emplace_back(ToServer(PlanAction::Kind::kAbort, server)).generation = announced_->generation;
    }
    actions.push_back(Dropped(announced_->change));
    announced_.reset();
  }
  if (waiting_) actions.push_back(Dropped(*waiting_));
  waiting_.reset();
  waiting_cut_.reset();
  return actions;
}

std::vector<uint64_t> PlanMaker::TakeTickets() {
  std::vector<uint64_t> tickets;
  const auto take = [&](PlanChange& change) {
    if (const uint64_t ticket = std::exchange(change.ticket, 0); ticket != 0) tickets.push_back(ticket);
  };
  if (!committed_) take(change_);
  if (announced_) take(announced_->change);
  if (waiting_) take(*waiting_);
  return tickets;
}

bool PlanMaker::Has(uint32_t server) const {
  return std::binary_search(options_.servers.begin(), options_.servers.end(), server);
}

bool PlanMaker::Behind(uint32_t server) const {
  auto found = held_.find(server);
  return found == held_.end() || found->second.generation != plan_.generation() ||
         found->second.amendment != plan_.amendment();
}

bool PlanMaker::HeldByAllServers() const { return has_plan() && ServersBehind().empty(); }

bool PlanMaker::AllEntered() const { return MembersNotEntered().empty(); }

std::vector<std::string> PlanMaker::ServersBehind() const {
  std::vector<std::string> names;
  for (uint32_t server : options_.servers) {
    if (Behind(server)) names.push_back(TaskName(v1::TaskId::SERVER, server));
  }
  return names;
}

std::vector<std::string> PlanMaker::MembersNotEntered() const {
  std::vector<std::string> names;
  for (const v1::TaskId& member : plan_.members()) {
    auto found = entered_.find(member.index());
    if (found != entered_.end() && found->second.incarnation == member.incarnation() &&
        found->second.generation >= plan_.generation()) {
      continue;
    }
    names.push_back(TaskName(member));
  }
  return names;
}

std::vector<std::string> PlanMaker::Joining() const {
  std::vector<std::string> names;
  for (const auto& [index, worker] : workers_) {
    bool member = std::any_of(plan_.members().begin(), plan_.members().end(),
                              [&task = worker](const v1::TaskId& candidate) { return SameTask(candidate, task); });
    if (!member) names.push_back(TaskName(worker));
  }
  return names;
}

std::string PlanMaker::WaitingFor() const {
  if (!has_plan()) return "";
  auto text = [](const std::vector<std::string>& names, absl::string_view what) {
    return absl::StrCat(absl::StrJoin(names, ", "), what);
  };
  if (announced_) {
    std::vector<std::string> names;
    for (uint32_t server : options_.servers) {
      if (!announced_->acks.contains(server)) names.push_back(TaskName(v1::TaskId::SERVER, server));
    }
    return text(names, absl::StrCat(" to hold new steps for plan ", announced_->generation));
  }
  if (!HeldByAllServers()) return text(ServersBehind(), absl::StrCat(" to take plan ", plan_.generation()));
  if (!waiting_ && !waiting_cut_ && !repartition_ && Joining().empty()) return "";
  return AllEntered() ? "" : text(MembersNotEntered(), absl::StrCat(" to enter plan ", plan_.generation()));
}

void PlanMaker::SetMembers(v1::Plan* plan) const {
  plan->clear_members();
  plan->clear_decided_members();
  for (const auto& [index, worker] : workers_) {
    *plan->add_members() = worker;
    plan->add_decided_members(index);
  }
  CapQuorum(plan);
}

void PlanMaker::SetBatchSizes(const PlanChange& change, v1::Plan* plan) const {
  plan->clear_batch_sizes();
  const bool same = std::equal(change.batch_sizes.begin(), change.batch_sizes.end(), workers_.begin(), workers_.end(),
                               [](const auto& size, const auto& worker) { return size.first == worker.first; });
  if (!same) return;
  for (const auto& [index, examples] : change.batch_sizes) plan->add_batch_sizes(examples);
}

void PlanMaker::SendPlan(absl::Time now, Actions* actions) {
  sent_at_ = now;
  for (uint32_t server : options_.servers) {
    if (Behind(server)) actions->emplace_back(ToServer(PlanAction::Kind::kCommit, server)).plan = plan_;
  }
}

PlanChange PlanMaker::PresentRules(const std::string& reason) const {
  return {.mode = plan_.mode(),
          .staleness_bound = plan_.staleness_bound(),
          .quorum = change_.mode == plan_.mode() ? change_.quorum : plan_.quorum(),
          .learning_rate_scale = plan_.learning_rate_scale(),
          .batch_sizes = BatchSizes(plan_),
          .reason = reason};
}

void PlanMaker::MaybeAnnounce(absl::Time now, Actions* actions) {
  const bool entered = AllEntered() || RUBATO_MUTANT(kAnnouncesBeforeEntered);
  if (closed_ || announced_ || !HeldByAllServers() || !entered || workers_.empty()) return;
  std::vector<std::string> joining = Joining();
  if (!waiting_ && !waiting_cut_ && joining.empty() && !repartition_) return;
  std::string others = joining.empty() ? "" : absl::StrCat(absl::StrJoin(joining, ", "), " joined");
  if (others.empty() && repartition_) others = "a lost member's part of the data is taken over";
  PlanChange change = waiting_ ? *waiting_ : PresentRules(others);
  if (waiting_ && !others.empty()) absl::StrAppend(&change.reason, "; ", others);
  change.cut = std::exchange(waiting_cut_, std::nullopt);
  change.only_cut = !waiting_ && others.empty();
  if (change.only_cut) change.reason = "checkpoint";
  waiting_.reset();
  Announce(last_generation_ + 1, change, now, actions);
}

void PlanMaker::Announce(uint64_t generation, const PlanChange& change, absl::Time now, Actions* actions) {
  last_generation_ = generation;
  announced_ = Announced{.generation = generation, .change = change, .at = now, .sent_at = now, .acks = {}};
  PlanAction& journal = actions->emplace_back(PlanAction{.kind = PlanAction::Kind::kJournalAnnounce});
  journal.generation = generation;
  journal.change = change;
  for (uint32_t server : options_.servers) {
    actions->emplace_back(ToServer(PlanAction::Kind::kAnnounce, server)).generation = generation;
  }
}

void PlanMaker::Decide(absl::Time now, Actions* actions) {
  int64_t first_step = plan_.first_step();
  for (const auto& [server, highest] : announced_->acks) {
    first_step = std::max(first_step, RUBATO_MUTANT(kFirstStepOffByOne) ? highest : highest + 1);
  }
  v1::Plan plan;
  plan.set_generation(announced_->generation);
  SetRules(announced_->change, &plan);
  plan.set_sync_every(announced_->change.sync_every > 0 ? announced_->change.sync_every : plan_.sync_every());
  const std::optional<double>& momentum = announced_->change.momentum;
  if (momentum || plan_.has_momentum()) plan.set_momentum(momentum.value_or(plan_.momentum()));
  plan.set_uncompressed(!announced_->change.compress.value_or(!plan_.uncompressed()));
  SetMembers(&plan);
  SetBatchSizes(announced_->change, &plan);
  plan.set_first_step(first_step);
  if (announced_->change.cut) {
    *plan.mutable_cut() = *announced_->change.cut;
    if (plan.cut().name().empty()) {
      const bool taken = first_step == last_cut_step_;
      plan.mutable_cut()->set_name(absl::StrCat("step", first_step, taken ? absl::StrCat(".", plan.cut().id()) : ""));
    }
    last_cut_step_ = first_step;
  }
  if (options_.static_batch > 0) {
    plan.set_first_example(StaticPosition(plan_.first_example(), plan_.first_step(), first_step,
                                          static_cast<int64_t>(std::max<size_t>(members_decided_, 1)),
                                          options_.static_batch, options_.train_examples));
  }
  plan_ = std::move(plan);
  members_decided_ = workers_.size();
  change_ = announced_->change;
  change_at_ = announced_->at;
  announced_.reset();
  committed_ = false;
  repartition_ = false;
  if (RUBATO_MUTANT(kPlanSentBeforeJournal)) SendPlan(now, actions);
  actions->push_back(JournalPlan(plan_, members_decided_, change_));
  SendPlan(now, actions);
}

}  // namespace rubato::coordinator
