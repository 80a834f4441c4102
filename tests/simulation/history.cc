#include "tests/simulation/history.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "common/task.h"

namespace rubato::simulation {

ChunkOracle& History::Chunk(uint32_t chunk) {
  if (auto it = chunks_.find(chunk); it != chunks_.end()) return it->second;
  auto restored = start_.restored.find(chunk);
  return chunks_.try_emplace(chunk, chunk, restored == start_.restored.end() ? ChunkState() : restored->second)
      .first->second;
}

void History::CheckFirstPlan(const v1::Plan& plan) {
  if (plan.first_step() != start_.first_step) {
    Violate(absl::StrCat("I7: plan ", plan.generation(), ", the first after a rollback to step ", start_.first_step,
                         ", begins with step ", plan.first_step()));
  }
  if (plan.generation() <= start_.last_generation) {
    Violate(absl::StrCat("I5: plan ", plan.generation(), " follows plan ", start_.last_generation,
                         " of before the rollback"));
  }
}

void History::CheckNewPlan(const v1::Plan& plan) {
  if (plans_.empty()) CheckFirstPlan(plan);
  auto [known, first_seen] = plans_.emplace(plan.generation(), plan);
  v1::Plan& other = known->second;
  if (!first_seen) {
    if (other.mode() != plan.mode() || other.first_step() != plan.first_step() ||
        other.staleness_bound() != plan.staleness_bound() || other.cut().id() != plan.cut().id()) {
      Violate(absl::StrCat("I5: two different plans of generation ", plan.generation()));
    }
    if (plan.amendment() > other.amendment()) other = plan;
    return;
  }
  if (plan.first_step() <= highest_begun_) {
    Violate(absl::StrCat("I5: plan ", plan.generation(), " begins with step ", plan.first_step(),
                         ", but somebody has begun step ", highest_begun_));
  }
  for (const v1::TaskId& member : plan.members()) {
    members_.insert(member.incarnation());
    if (!start_.old_members.contains(member.incarnation())) continue;
    Violate(absl::StrCat("I7: ", TaskName(member), " of before the rollback is in plan ", plan.generation()));
  }
}

void History::PlanHolds(uint32_t partition, const v1::Plan& plan) {
  CheckNewPlan(plan);
  KnownPlans& plans = partitions_[partition];
  const v1::Plan& current = plans.current;
  const std::pair before(current.generation(), current.amendment());
  if (std::pair(plan.generation(), plan.amendment()) <= before) {
    Violate(absl::StrCat("I5: partition ", partition, " goes from plan ", before.first, ".", before.second, " to ",
                         plan.generation(), ".", plan.amendment()));
  }
  if (plan.generation() != current.generation()) {
    plans.previous.reset();
    if (current.generation() != 0) plans.previous = current;
  }
  plans.current = plan;
  if (!plans.previous.has_value()) return;
  auto* members = plans.previous->mutable_members();
  auto lost = [&](const v1::TaskId& task) {
    return std::none_of(plan.members().begin(), plan.members().end(),
                        [&](const v1::TaskId& member) { return SameTask(member, task); });
  };
  members->erase(std::remove_if(members->begin(), members->end(), lost), members->end());
}

void History::Restored(uint32_t chunk, const ChunkState& state) {
  const ChunkState& due = Chunk(chunk).state();
  if (state == due) return;
  Violate(absl::StrCat("I7: chunk ", chunk, " goes on with ", Difference(state, due)));
}

void History::Applied(uint32_t partition, uint32_t chunk, const std::vector<v1::UpdateRecord>& contributions) {
  verdict_->Note(Chunk(chunk).Applied(partitions_[partition], contributions));
  updated_.push_back(chunk);
}

void History::Updated(uint32_t chunk, const UpdateOutcome& outcome, const UpdateOutcome& due) {
  verdict_->Note(Chunk(chunk).Updated(outcome, due));
}

void History::Logged(uint32_t partition, const v1::UpdateRecord& record) {
  verdict_->Note(Chunk(record.chunk()).Logged(partitions_[partition], record));
}

void History::Asked(uint32_t chunk, const v1::TaskId& worker, uint64_t generation, int64_t step, bool with_push) {
  Chunk(chunk).Asked(worker, generation, step, with_push);
}

void History::Pushed(uint32_t chunk, const v1::TaskId& worker, int64_t step, uint64_t examples) {
  Chunk(chunk).Pushed(worker, step, examples);
}

void History::HandedOut(uint32_t chunk, int64_t version, std::optional<double> value) {
  verdict_->Note(Chunk(chunk).HandedOut(version, value));
}

void History::Captured(uint32_t partition, uint32_t chunk, int64_t step) {
  verdict_->Note(Chunk(chunk).Captured(partitions_[partition], step));
}

void History::CutCaptured(uint32_t partition, uint32_t chunk, const v1::Cut& cut, const ChunkState& state) {
  verdict_->Note(Chunk(chunk).CutCaptured(partitions_[partition], cut, state));
}

bool History::HeldForCut(uint32_t partition, uint32_t chunk, const v1::TaskId& worker, int64_t step) {
  const v1::Plan& plan = partitions_[partition].current;
  const ChunkOracle& oracle = Chunk(chunk);
  return step >= plan.first_step() && !oracle.HasCut(plan) && !oracle.Done(worker, step);
}

void History::Began(uint32_t partition, const std::vector<uint32_t>& chunks, const v1::TaskId& worker,
                    uint64_t generation, int64_t step) {
  for (uint32_t chunk : chunks) {
    verdict_->Note(Chunk(chunk).Began(partitions_[partition], worker, generation, step));
  }
  highest_begun_ = std::max(highest_begun_, step);
  auto next = plans_.upper_bound(generation);
  if (next == plans_.end() || step < next->second.first_step()) return;
  Violate(absl::StrCat("I5: ", TaskName(worker), " begins step ", step, " of generation ", generation, ", but plan ",
                       next->first, " begins with step ", next->second.first_step()));
}

void History::StepBegins(const v1::TaskId& worker, std::pair<uint64_t, int64_t> last,
                         std::pair<uint64_t, int64_t> next) {
  if (next <= last || next.second <= last.second) {
    Violate(absl::StrCat("I5: ", TaskName(worker), " goes from step ", last.second, " of generation ", last.first,
                         " to step ", next.second, " of generation ", next.first));
  }
  if (last.first != 0) StepAcknowledged(worker, last.second);
}

void History::StepAcknowledged(const v1::TaskId& worker, int64_t step) {
  for (auto& [index, chunk] : chunks_) {
    if (chunk.Done(worker, step)) continue;
    Violate(absl::StrCat("I5: the push of step ", step, " by ", TaskName(worker), " to chunk ", index, " is lost"));
  }
}

void History::CheckSettled() {
  for (uint32_t chunk : updated_) {
    if (!Chunk(chunk).settled()) Violate(absl::StrCat("I3: an update of chunk ", chunk, " was not logged"));
  }
  updated_.clear();
}

}  // namespace rubato::simulation
