#include "cli/audit/member_clocks.h"

#include <algorithm>

namespace rubato {

MemberClocks::MemberClocks(const std::vector<bool>& members, int64_t clock, int64_t version)
    : clocks_(members.size(), kNobody), slowest_(kNobody) {
  for (size_t i = 0; i < members.size(); ++i) {
    if (members[i]) clocks_[i] = clock;
  }
  past_.push_back({version, kNobody});
  Recompute(version);
}

void MemberClocks::Advance(size_t member, int64_t clock, int64_t version) {
  if (!Has(member) || clocks_[member] >= clock) return;
  const bool was_slowest = clocks_[member] == slowest_;
  clocks_[member] = clock;
  if (was_slowest && --at_slowest_ == 0) Recompute(version);
}

void MemberClocks::AdvanceAll(int64_t clock, int64_t version) {
  for (int64_t& own : clocks_) {
    if (own != kNobody) own = std::max(own, clock);
  }
  Recompute(version);
}

void MemberClocks::Keep(const std::vector<bool>& members, int64_t version) {
  for (size_t i = 0; i < clocks_.size(); ++i) {
    if (i >= members.size() || !members[i]) clocks_[i] = kNobody;
  }
  Recompute(version);
}

void MemberClocks::Recompute(int64_t version) {
  slowest_ = kNobody;
  for (int64_t clock : clocks_) slowest_ = std::min(slowest_, clock);
  at_slowest_ = std::count(clocks_.begin(), clocks_.end(), slowest_);
  if (past_.back().version >= version) {
    past_.back().slowest = slowest_;
  } else if (past_.back().slowest != slowest_) {
    past_.push_back({version, slowest_});
  }
}

void MemberClocks::CapBefore(int64_t version, int64_t clock) {
  const int64_t since = SlowestAt(version);
  for (Change& change : past_) {
    if (change.version < version) change.slowest = std::min(change.slowest, clock);
  }
  auto at = std::find_if(past_.begin(), past_.end(), [&](const Change& change) { return change.version >= version; });
  const bool known = at != past_.end() && at->version == version;
  if (!known && past_.front().version < version) past_.insert(at, {version, since});
}

int64_t MemberClocks::SlowestAt(int64_t version) const {
  auto after = std::upper_bound(past_.begin(), past_.end(), version,
                                [](int64_t v, const Change& change) { return v < change.version; });
  return after == past_.begin() ? past_.front().slowest : std::prev(after)->slowest;
}

void MemberClocks::Forget(int64_t version) {
  auto after = std::upper_bound(past_.begin(), past_.end(), version,
                                [](int64_t v, const Change& change) { return v < change.version; });
  if (after != past_.begin()) past_.erase(past_.begin(), std::prev(after));
}

}  // namespace rubato
