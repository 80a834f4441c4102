#include "cli/audit/log_audit.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace rubato {
namespace {

// Far above any step or version, and low enough to add to and subtract from.
constexpr int64_t kLargest = int64_t{1} << 60;

bool Possible(int64_t number) { return number >= 0 && number <= kLargest; }

}  // namespace

void LogAudit::OnRecord(const v1::UpdateLogRecord& record) {
  if (record.has_plan()) OnPlan(record.plan());
  if (record.has_update()) OnPush(record.update());
}

void LogAudit::OnPlan(const v1::Plan& plan) {
  if (!Possible(plan.first_step()) || !Possible(plan.staleness_bound())) {
    return report_->Break(Invariant::kPlans, [&] {
      return absl::StrCat(where_, ": plan ", plan.generation(), " has first step ", plan.first_step(), " and bound ",
                          plan.staleness_bound());
    });
  }
  // In order, so that the first counterexample is always the same.
  for (uint32_t index : chunks()) chunks_.at(index)->CloseUpdate();
  switch (plans_.Enter(plan, highest_step_)) {
    case PlanHistory::Change::kNone:
      return;
    case PlanHistory::Change::kNew:
      for (auto& [index, chunk] : chunks_) chunk->OnNewPlan();
      return;
    case PlanHistory::Change::kAmended:
      for (auto& [index, chunk] : chunks_) chunk->OnAmendment();
      return;
  }
}

void LogAudit::OnPush(const v1::UpdateRecord& push) {
  ++report_->pushes;
  if (!Possible(push.step()) || !Possible(push.base_version()) || !Possible(push.applied_version())) {
    return report_->Break(Invariant::kPlans, [&] {
      return absl::StrCat(where_, ", chunk ", push.chunk(), ": a push with step ", push.step(), ", base version ",
                          push.base_version(), " and applied version ", push.applied_version());
    });
  }
  highest_step_ = std::max(highest_step_, push.step());
  std::unique_ptr<ChunkAudit>& chunk = chunks_[push.chunk()];
  if (chunk == nullptr) {
    const int64_t before = std::max<int64_t>(0, push.applied_version() - (push.ineffective() ? 0 : 1));
    chunk = std::make_unique<ChunkAudit>(absl::StrCat(where_, ", chunk ", push.chunk()), &plans_,
                                         restored_ ? before : 0, report_);
  }
  chunk->OnPush(push, plans_.NumberOf(push.worker(), push.incarnation()));
  last_ = chunk.get();
}

void LogAudit::Finish(bool torn) {
  if (torn && last_ != nullptr) last_->DropUpdate();
  for (uint32_t index : chunks()) chunks_.at(index)->CloseUpdate();
}

std::vector<uint32_t> LogAudit::chunks() const {
  std::vector<uint32_t> indices;
  for (const auto& [index, chunk] : chunks_) indices.push_back(index);
  std::sort(indices.begin(), indices.end());
  return indices;
}

}  // namespace rubato
