#include "tests/simulation/chunk_oracle.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "common/task.h"

namespace rubato::simulation {

bool HasMember(const v1::Plan& plan, const v1::TaskId& worker) {
  return std::any_of(plan.members().begin(), plan.members().end(),
                     [&](const v1::TaskId& member) { return SameTask(member, worker); });
}

namespace {

// Values are sums of a few numbers of about 1.
constexpr double kRounding = 1e-9;

const v1::Plan* FindPlan(const KnownPlans& plans, uint64_t generation) {
  if (generation == plans.current.generation()) return &plans.current;
  if (plans.previous.has_value() && generation == plans.previous->generation()) return &*plans.previous;
  return nullptr;
}

bool StrictSync(const v1::Plan& plan) { return plan.mode() == v1::SYNC && plan.quorum() == 0; }

}  // namespace

ChunkOracle::Worker ChunkOracle::Of(const v1::TaskId& worker) const {
  auto it = workers_.find(worker.incarnation());
  return it == workers_.end() ? Worker{} : it->second;
}

void ChunkOracle::Asked(const v1::TaskId& worker, uint64_t generation, int64_t step, bool with_push) {
  Worker& state = workers_[worker.incarnation()];
  state.asked = std::max(state.asked, Point{generation, step});
  if (!with_push) state.pulled = std::max(state.pulled, Point{generation, step});
}

// The clock with which a member comes into the current plan, as long as it has done nothing under it.
int64_t ChunkOracle::ClockOnEntry(const KnownPlans& plans, const v1::TaskId& worker) const {
  const int64_t first = plans.current.first_step();
  if (!plans.previous.has_value() || !HasMember(*plans.previous, worker)) return first;
  const Worker state = Of(worker);
  if (StrictSync(*plans.previous)) {
    const bool did_some = state.done.first == plans.previous->generation();
    return std::min(first, did_some ? state.done.second + 1 : plans.previous->first_step());
  }
  // A pull of a later step says that the one begun was given up.
  const bool drains = state.open && state.begun.first < plans.current.generation() && state.pulled <= state.begun;
  return drains ? first - 1 : first;
}

int64_t ChunkOracle::Clock(const KnownPlans& plans, const v1::Plan& plan, const v1::TaskId& worker) const {
  const Worker state = Of(worker);
  if (state.done.first == plan.generation()) return state.done.second + 1;
  return &plan == &plans.current ? ClockOnEntry(plans, worker) : plan.first_step();
}

bool ChunkOracle::MovedPast(const KnownPlans& plans, const v1::Plan& plan, const v1::TaskId& worker,
                            int64_t step) const {
  const Worker state = Of(worker);
  const Point point{plan.generation(), step};
  if (&plan != &plans.current) return !(state.open && state.begun == point && state.pulled <= point);
  return state.asked > point;
}

std::string ChunkOracle::CheckQuorumGate(const KnownPlans& plans, const v1::Plan& plan, int64_t step) const {
  auto next = next_sync_step_.find(plan.generation());
  const int64_t reached = next == next_sync_step_.end() ? plan.first_step() : next->second;
  for (int64_t missing = reached; missing < step; ++missing) {
    for (const v1::TaskId& member : plan.members()) {
      if (MovedPast(plans, plan, member, missing)) continue;
      return absl::StrCat("I1: step ", step, " begun on chunk ", chunk_, " before the update of step ", missing);
    }
  }
  return "";
}

std::string ChunkOracle::CheckGate(const KnownPlans& plans, const v1::Plan& plan, int64_t step) const {
  if (&plan == &plans.current && plans.previous.has_value() && StrictSync(*plans.previous)) {
    for (const v1::TaskId& member : plans.previous->members()) {
      if (Clock(plans, plans.current, member) >= plan.first_step()) continue;
      return absl::StrCat("I1: step ", step, " of generation ", plan.generation(), " begun on chunk ", chunk_,
                          " before ", TaskName(member), " finished the steps of the SYNC plan before");
    }
  }
  if (plan.mode() == v1::ASYNC) return "";
  if (plan.mode() == v1::SYNC && plan.quorum() > 0 && step > plan.first_step()) {
    return CheckQuorumGate(plans, plan, step);
  }
  const int64_t bound = plan.mode() == v1::SSP ? plan.staleness_bound() : 0;
  for (const v1::TaskId& member : plan.members()) {
    const int64_t clock = Clock(plans, plan, member);
    if (clock >= step - bound) continue;
    return absl::StrCat("I2: step ", step, " of generation ", plan.generation(), " begun on chunk ", chunk_, " under ",
                        ModeName(plan.mode(), plan.staleness_bound()), " while the clock of ", TaskName(member), " is ",
                        clock);
  }
  return "";
}

std::string ChunkOracle::CheckStartVersion(int64_t step) {
  const int64_t version = start_versions_.emplace(step, state_.version).first->second;
  if (version == state_.version) return "";
  return absl::StrCat("I1: SYNC step ", step, " starts on chunk ", chunk_, " with version ", state_.version,
                      " here and with version ", version, " elsewhere");
}

std::string ChunkOracle::Began(const KnownPlans& plans, const v1::TaskId& worker, uint64_t generation, int64_t step) {
  const std::string what =
      absl::StrCat(TaskName(worker), " begins step ", step, " of generation ", generation, " on chunk ", chunk_);
  const v1::Plan* plan = FindPlan(plans, generation);
  if (plan == nullptr) return absl::StrCat("I5: ", what, ", a plan that is not in force");
  if (!HasMember(*plan, worker)) return absl::StrCat("I5: ", what, " and is no member");
  if (plan == &plans.current ? step < plan->first_step() : !StrictSync(*plan) || step >= plans.current.first_step()) {
    return absl::StrCat("I5: ", what, ", which does not belong to that plan");
  }
  Worker& state = workers_[worker.incarnation()];
  const Point point{generation, step};
  if (state.begun == point && state.open) return "";  // Asked and answered again.
  if (point <= state.begun || step <= state.begun.second) {
    return absl::StrCat("I5: ", what, " after step ", state.begun.second);
  }
  if (state.open && generation == state.begun.first && plan->quorum() == 0) {
    return absl::StrCat("I5: ", what, " while its push of step ", state.begun.second, " is not done");
  }
  state.begun = point;
  state.open = true;
  if (std::string wrong = CheckGate(plans, *plan, step); !wrong.empty()) return wrong;
  return StrictSync(*plan) ? CheckStartVersion(step) : "";
}

std::string ChunkOracle::CheckSyncUpdate(const KnownPlans& plans, const v1::Plan& plan,
                                         const std::vector<v1::UpdateRecord>& contributions) {
  const int64_t step = contributions[0].step();
  const std::string what = absl::StrCat("the update of SYNC step ", step, " on chunk ", chunk_);
  int64_t& next = next_sync_step_.emplace(plan.generation(), plan.first_step()).first->second;
  // With a quorum, steps from which everybody was moved away are left out.
  if (step < next || (step > next && plan.quorum() == 0)) {
    return absl::StrCat("I1: ", what, " where step ", next, " is due");
  }
  for (int64_t skipped = next; skipped < step; ++skipped) {
    if (std::string wrong = CheckQuorumGate(plans, plan, skipped + 1); !wrong.empty()) return wrong;
  }
  next = step + 1;
  for (size_t i = 1; i < contributions.size(); ++i) {
    if (contributions[i - 1].worker() >= contributions[i].worker()) {
      return absl::StrCat("I1: ", what, " takes worker ", contributions[i].worker(), " twice or out of order");
    }
  }
  if (plan.quorum() > 0 && contributions.size() >= plan.quorum()) return "";
  for (const v1::TaskId& member : plan.members()) {
    const bool there = std::any_of(contributions.begin(), contributions.end(), [&](const v1::UpdateRecord& record) {
      return record.incarnation() == member.incarnation();
    });
    if (there || (plan.quorum() > 0 && MovedPast(plans, plan, member, step))) continue;
    return absl::StrCat("I1: ", what, " is without ", TaskName(member));
  }
  return "";
}

std::string ChunkOracle::Applied(const KnownPlans& plans, const std::vector<v1::UpdateRecord>& contributions) {
  ++state_.version;
  if (contributions.empty()) return absl::StrCat("I1: an update of nothing on chunk ", chunk_);
  if (!settled()) return absl::StrCat("I3: an update of chunk ", chunk_, " was not logged");
  const v1::Plan* plan = FindPlan(plans, contributions[0].generation());
  if (plan == nullptr) return absl::StrCat("I5: a push of generation ", contributions[0].generation(), " was applied");
  for (const v1::UpdateRecord& record : contributions) {
    v1::TaskId worker;
    worker.set_role(v1::TaskId::WORKER);
    worker.set_index(record.worker());
    worker.set_incarnation(record.incarnation());
    if (!HasMember(*plan, worker) || record.generation() != plan->generation() ||
        record.step() != contributions[0].step()) {
      return absl::StrCat("I1: step ", contributions[0].step(), " on chunk ", chunk_, " takes step ", record.step(),
                          " of ", TaskName(worker), ", generation ", record.generation());
    }
    expected_.insert({record.incarnation(), record.step()});
    state_.pushes.emplace_back(record.incarnation(), record.step());
  }
  if (plan->mode() == v1::SYNC) return CheckSyncUpdate(plans, *plan, contributions);
  if (contributions.size() == 1) return "";
  return absl::StrCat("I3: ", contributions.size(), " pushes were applied to chunk ", chunk_, " in one update");
}

std::string ChunkOracle::Updated(const UpdateOutcome& outcome, const UpdateOutcome& due) {
  state_.value = outcome.value;
  const std::string what = absl::StrCat("version ", state_.version, " of chunk ", chunk_);
  if (std::abs(outcome.value - due.value) > kRounding) {
    return absl::StrCat("I1: ", what, " has the value ", outcome.value, " where ", due.value, " is due");
  }
  if (outcome.disagreement == due.disagreement) return "";
  return absl::StrCat("I1: of ", what, " it is ", outcome.disagreement ? "" : "not ",
                      "told that members push with different hyperparameters");
}

std::string ChunkOracle::Logged(const KnownPlans& plans, const v1::UpdateRecord& record) {
  const std::string what = absl::StrCat("step ", record.step(), " of worker ", record.worker(), " on chunk ", chunk_);
  const PushId key(record.incarnation(), record.step());
  if (!done_.insert(key).second) return absl::StrCat("I3: ", what, " was done twice");
  if (record.applied_version() != state_.version) {
    return absl::StrCat("I3: ", what, " is logged with version ", record.applied_version(), " where ", state_.version,
                        " is due");
  }
  if (record.ineffective() == (expected_.erase(key) > 0)) {
    return absl::StrCat("I3: ", what, " is logged as ", record.ineffective() ? "ineffective" : "applied",
                        " and is not");
  }
  Worker& state = workers_[record.incarnation()];
  if (!state.open || state.begun != Point{record.generation(), record.step()}) {
    return absl::StrCat("I3: ", what, " was done; the step begun is ", state.begun.second);
  }
  state.open = false;
  state.done = state.begun;
  const v1::Plan* plan = FindPlan(plans, record.generation());
  if (!record.ineffective() && record.step() < cut_step_) {
    return absl::StrCat("I7: ", what, " was applied after the chunk was captured for cut ", cut_.id(), " at step ",
                        cut_step_);
  }
  const bool may_drop = record.examples() == 0 || (plan != nullptr && plan->quorum() > 0);
  if (record.ineffective() && !may_drop) return absl::StrCat("I3: ", what, " was dropped");
  if (!record.ineffective() && state.pushed != std::pair(record.step(), record.examples())) {
    return absl::StrCat("I1: ", what, " counts as ", record.examples(), " examples; pushed were ", state.pushed.second,
                        " in step ", state.pushed.first);
  }
  return "";
}

std::string ChunkOracle::Captured(const KnownPlans& plans, int64_t step) {
  const v1::Plan& plan =
      plans.previous.has_value() && step < plans.current.first_step() ? *plans.previous : plans.current;
  return step >= plan.first_step() && StrictSync(plan) ? CheckStartVersion(step) : "";
}

std::string ChunkOracle::CheckCutContent(const KnownPlans& plans, const std::string& what) const {
  const int64_t first = plans.current.first_step();
  for (const auto& [incarnation, step] : done_) {
    if (step >= first) return absl::StrCat("I7: ", what, " has step ", step, " of #", incarnation);
  }
  for (const v1::TaskId& member : plans.current.members()) {
    const int64_t clock = Clock(plans, plans.current, member);
    if (clock < first) {
      return absl::StrCat("I7: ", what, " was captured while the clock of ", TaskName(member), " is ", clock);
    }
  }
  return "";
}

std::string ChunkOracle::CutCaptured(const KnownPlans& plans, const v1::Cut& cut, const ChunkState& state) {
  const v1::Plan& plan = plans.current;
  const std::string what =
      absl::StrCat("cut ", cut.id(), " of chunk ", chunk_, ", before step ", plan.first_step(), ",");
  if (plan.cut().id() != cut.id() || plan.cut().name() != cut.name()) {
    return absl::StrCat("I7: ", what, " is not the one of plan ", plan.generation());
  }
  if (cut.id() <= cut_.id()) return absl::StrCat("I7: ", what, " comes after cut ", cut_.id());
  if (!settled()) return absl::StrCat("I7: ", what, " comes between an update and its records");
  cut_ = cut;
  cut_step_ = plan.first_step();
  if (std::string wrong = CheckCutContent(plans, what); !wrong.empty()) return wrong;
  if (state != state_) {
    return absl::StrCat("I7: ", what, " has ", Difference(state, state_));
  }
  return "";
}

std::string ChunkOracle::HandedOut(int64_t version, std::optional<double> value) const {
  if (version == state_.version && value.value_or(state_.value) != state_.value) {
    return absl::StrCat("I1: version ", version, " of chunk ", chunk_, " is handed out with the value ", *value,
                        " where ", state_.value, " is due");
  }
  if (version == state_.version) return "";
  return absl::StrCat(done_.empty() ? "I7" : "I3", ": chunk ", chunk_, " is handed out with version ", version,
                      " where ", state_.version, " is due");
}

}  // namespace rubato::simulation
