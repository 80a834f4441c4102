#include "tests/simulation/oracle.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "common/task.h"

namespace rubato::simulation {

using Reply = v1::ExchangeReply;

void Oracle::Violate(const std::string& what) {
  if (violation_.empty()) violation_ = what;
}

void Oracle::CheckNewPlan(const v1::Plan& plan) {
  auto [known, first_seen] = plans_.emplace(plan.generation(), plan);
  if (!first_seen) {
    const v1::Plan& other = known->second;
    if (other.mode() != plan.mode() || other.first_step() != plan.first_step() ||
        other.staleness_bound() != plan.staleness_bound()) {
      Violate(absl::StrCat("I5: two different plans of generation ", plan.generation()));
    }
    return;
  }
  if (plan.first_step() <= highest_begun_) {
    Violate(absl::StrCat("I5: plan ", plan.generation(), " begins with step ", plan.first_step(),
                         ", but somebody has begun step ", highest_begun_));
  }
}

void Oracle::PlanHolds(uint32_t partition, const v1::Plan& plan) {
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

void Oracle::Applied(uint32_t partition, uint32_t chunk, const std::vector<v1::UpdateRecord>& contributions) {
  Note(Chunk(chunk).Applied(partitions_[partition], contributions));
}

void Oracle::Logged(uint32_t partition, const v1::UpdateRecord& record) {
  Note(Chunk(record.chunk()).Logged(partitions_[partition], record));
}

void Oracle::Arrived(uint64_t token, Request request) {
  if (!request.snapshot) {
    for (uint32_t chunk : request.chunks)
      Chunk(chunk).Asked(request.task, request.generation, request.step, request.push);
  }
  deadlines_.insert({request.deadline, token});
  open_[token] = std::move(request);
}

void Oracle::Captured(uint64_t token, uint32_t chunk) {
  auto it = open_.find(token);
  if (it == open_.end()) return Violate("I4: a snapshot was taken for a request that is not open");
  if (it->second.step >= 0) Note(Chunk(chunk).Captured(partitions_[it->second.partition], it->second.step));
}

void Oracle::Forgotten(uint64_t token) {
  auto it = open_.find(token);
  if (it == open_.end()) return;
  deadlines_.erase({it->second.deadline, token});
  open_.erase(it);
}

void Oracle::Began(const Request& request) {
  for (uint32_t chunk : request.chunks) {
    Note(Chunk(chunk).Began(partitions_[request.partition], request.task, request.generation, request.step));
  }
  highest_begun_ = std::max(highest_begun_, request.step);
  auto next = plans_.upper_bound(request.generation);
  if (next != plans_.end() && request.step >= next->second.first_step()) {
    Violate(absl::StrCat("I5: ", TaskName(request.task), " begins step ", request.step, " of generation ",
                         request.generation, ", but plan ", next->first, " begins with step ",
                         next->second.first_step()));
  }
}

void Oracle::Answered(uint64_t token, const Reply& reply) {
  auto it = open_.find(token);
  if (it == open_.end()) return Violate("I4: a request was answered twice, or without being asked");
  const Request request = std::move(it->second);
  deadlines_.erase({request.deadline, token});
  open_.erase(it);
  if (request.snapshot) return;
  const bool acknowledged = request.push && reply.push() != Reply::PUSH_NONE && reply.push() != Reply::PUSH_PENDING &&
                            reply.outcome() != Reply::REFUSED;
  for (uint32_t chunk : request.chunks) {
    if (!acknowledged || Chunk(chunk).Done(request.task, request.step - 1)) continue;
    Violate(absl::StrCat("I3: the push of step ", request.step - 1, " by ", TaskName(request.task), " to chunk ", chunk,
                         " is acknowledged and was not done"));
  }
  if (reply.outcome() == Reply::OK) Began(request);
}

void Oracle::StepBegins(const v1::TaskId& worker, std::pair<uint64_t, int64_t> last,
                        std::pair<uint64_t, int64_t> next) {
  if (next <= last || next.second <= last.second) {
    Violate(absl::StrCat("I5: ", TaskName(worker), " goes from step ", last.second, " of generation ", last.first,
                         " to step ", next.second, " of generation ", next.first));
  }
  if (last.first != 0) StepAcknowledged(worker, last.second);
}

void Oracle::StepAcknowledged(const v1::TaskId& worker, int64_t step) {
  for (auto& [index, chunk] : chunks_) {
    if (chunk.Done(worker, step)) continue;
    Violate(absl::StrCat("I5: the push of step ", step, " by ", TaskName(worker), " to chunk ", index, " is lost"));
  }
}

void Oracle::Refused(const v1::TaskId& worker, bool push, const std::string& message) {
  Violate(absl::StrCat(push ? "I3: the open push of " : "I4: the open pull of ", TaskName(worker),
                       " was refused: ", message));
}

void Oracle::CheckTime(absl::Time now) {
  for (const auto& [index, chunk] : chunks_) {
    if (!chunk.settled()) Violate(absl::StrCat("I3: an update of chunk ", index, " was not logged"));
  }
  if (deadlines_.empty() || deadlines_.begin()->first >= now) return;
  const Request& late = open_[deadlines_.begin()->second];
  Violate(absl::StrCat("I4: ", TaskName(late.task), " got no answer about step ", late.step, " from partition ",
                       late.partition));
}

}  // namespace rubato::simulation
