#ifndef RUBATO_CLI_AUDIT_MEMBER_CLOCKS_H_
#define RUBATO_CLI_AUDIT_MEMBER_CLOCKS_H_

#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

namespace rubato {

// The clocks of one plan's members on one chunk, and what the slowest one's was at each version of the chunk: a past
// that is kept only if the slowest clock changed, hence short. Pure; not thread-safe.
class MemberClocks {
 public:
  // The slowest clock if there are no members: nobody waits for anybody.
  static constexpr int64_t kNobody = std::numeric_limits<int64_t>::max();

  // members[i] says whether task number i is one. All clocks are `clock` from `version` on.
  MemberClocks(const std::vector<bool>& members, int64_t clock, int64_t version);

  bool Has(size_t member) const { return member < clocks_.size() && clocks_[member] != kNobody; }

  // The member's clock is at least `clock` from `version` on. Versions never go back.
  void Advance(size_t member, int64_t clock, int64_t version);
  void AdvanceAll(int64_t clock, int64_t version);
  // Tasks outside `members` no longer count.
  void Keep(const std::vector<bool>& members, int64_t version);

  // The slowest clock at a version was at most `clock`, for every version before `version`.
  void CapBefore(int64_t version, int64_t clock);

  int64_t slowest() const { return slowest_; }
  // The slowest clock when the chunk had this version; for one before the past that is kept, the oldest known.
  int64_t SlowestAt(int64_t version) const;

  // Forgets what was before `version`.
  void Forget(int64_t version);
  size_t remembered() const { return past_.size(); }

 private:
  struct Change {
    int64_t version;
    int64_t slowest;
  };

  void Recompute(int64_t version);

  std::vector<int64_t> clocks_;  // kNobody if the task is no member.
  int64_t slowest_;
  int64_t at_slowest_ = 0;    // Members whose clock is slowest_.
  std::vector<Change> past_;  // Versions ascending; never empty.
};

}  // namespace rubato

#endif  // RUBATO_CLI_AUDIT_MEMBER_CLOCKS_H_
