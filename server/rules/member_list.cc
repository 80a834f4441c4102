#include "server/rules/member_list.h"

#include "server/rules/by_worker.h"

namespace rubato::server {

MemberList::MemberList(const v1::Plan& plan) {
  members_.reserve(plan.members_size());
  for (const v1::TaskId& task : plan.members()) members_.push_back({task.index(), task.incarnation()});
}

size_t MemberList::Find(uint32_t index, uint64_t incarnation) const {
  const size_t at = FindByWorker(members_, index, [](const Member& member) { return member.index; });
  return at < members_.size() && members_[at].incarnation == incarnation ? at : members_.size();
}

v1::TaskId MemberList::TaskOf(size_t slot) const {
  v1::TaskId task;
  task.set_role(v1::TaskId::WORKER);
  task.set_index(members_[slot].index);
  task.set_incarnation(members_[slot].incarnation);
  return task;
}

}  // namespace rubato::server
