#ifndef RUBATO_SERVER_RULES_MEMBER_LIST_H_
#define RUBATO_SERVER_RULES_MEMBER_LIST_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "proto/parameter_server.pb.h"

namespace rubato::server {

// Who takes part in a plan, in order of index. A member's position is its slot: what is known of it on each chunk lies
// there. One list for all chunks, never changed, and so always in the caches. Safe from any thread.
class MemberList {
 public:
  using Ptr = std::shared_ptr<const MemberList>;

  struct Member {
    uint32_t index = 0;
    uint64_t incarnation = 0;
  };

  MemberList() = default;
  // Members of a plan stand in ascending order of their indices.
  explicit MemberList(const v1::Plan& plan);

  size_t size() const { return members_.size(); }
  const Member& operator[](size_t slot) const { return members_[slot]; }
  v1::TaskId TaskOf(size_t slot) const;

  // The worker's slot; size() if it is none of them.
  size_t Find(uint32_t index, uint64_t incarnation) const;
  size_t Find(const v1::TaskId& task) const {
    return task.role() == v1::TaskId::WORKER ? Find(task.index(), task.incarnation()) : size();
  }

 private:
  std::vector<Member> members_;
};

}  // namespace rubato::server

#endif  // RUBATO_SERVER_RULES_MEMBER_LIST_H_
