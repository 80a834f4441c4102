#include "coordinator/rules/barriers.h"

#include <algorithm>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/status.h"
#include "common/task.h"

namespace rubato::coordinator {
namespace {

absl::Status Bad(absl::string_view field, uint64_t value, absl::string_view allowed) {
  return absl::InvalidArgumentError(absl::StrCat("barrier.", field, ": value ", value, "; allowed: ", allowed));
}

absl::Status CheckRequest(const v1::BarrierRequest& request) {
  if (request.task().role() != v1::TaskId::WORKER) return Bad("task.role", request.task().role(), "WORKER");
  if (request.name().empty() || request.name().size() > Barriers::kMaxNameBytes) {
    return Bad("name", request.name().size(), absl::StrCat("1 to ", Barriers::kMaxNameBytes, " bytes"));
  }
  if (request.count() < 1 || request.count() > Barriers::kMaxCount) {
    return Bad("count", request.count(), absl::StrCat("1 to ", Barriers::kMaxCount));
  }
  if (request.round() < 1) return Bad("round", request.round(), "1 or more");
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<Barriers::Answer> Barriers::Arrive(const v1::BarrierRequest& request) {
  RUBATO_RETURN_IF_ERROR(CheckRequest(request));
  if (barriers_.size() >= kMaxNames && !barriers_.contains(request.name())) {
    return absl::ResourceExhaustedError(absl::StrCat("barrier.name: ", kMaxNames, " others were used; use them again"));
  }
  Barrier& barrier = barriers_[request.name()];
  if (request.round() <= barrier.passed) return Answer::kPassed;
  Round& round = barrier.open[request.round()];
  if (round.count == 0) round.count = request.count();
  if (round.count != request.count()) {
    return Bad("count", request.count(), absl::StrCat(round.count, ", as the others have it at ", request.name()));
  }
  round.workers.insert(request.task().index());
  return round.workers.size() >= round.count ? Answer::kOpens : Answer::kWaits;
}

void Barriers::Pass(const v1::JournalBarrier& passed) {
  Barrier& barrier = barriers_[passed.name()];
  barrier.passed = std::max(barrier.passed, passed.round());
  barrier.open.erase(barrier.open.begin(), barrier.open.upper_bound(barrier.passed));
}

bool Barriers::Passed(const std::string& name, uint64_t round) const {
  const auto found = barriers_.find(name);
  return found != barriers_.end() && round <= found->second.passed;
}

std::string Barriers::WhoCame(const std::string& name, uint64_t round) const {
  std::vector<std::string> names;
  const auto found = barriers_.find(name);
  if (found == barriers_.end()) return "";
  const auto open = found->second.open.find(round);
  if (open == found->second.open.end()) return "";
  for (uint32_t worker : open->second.workers) names.push_back(TaskName(v1::TaskId::WORKER, worker));
  return absl::StrJoin(names, ", ");
}

}  // namespace rubato::coordinator
