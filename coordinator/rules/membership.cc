#include "coordinator/rules/membership.h"

#include <algorithm>

#include "common/mutants.h"

namespace rubato::coordinator {
namespace {

std::pair<int, uint32_t> Key(const v1::TaskId& task) { return {task.role(), task.index()}; }

std::tuple<int, uint32_t, uint64_t> FullKey(const v1::TaskId& task) {
  return {task.role(), task.index(), task.incarnation()};
}

}  // namespace

Membership::Arrival Membership::Register(const v1::TaskId& task, const v1::Register& info, const std::string& address,
                                         absl::Time now) {
  if (IsOutdated(task) && !RUBATO_MUTANT(kOldTermRegisters)) return {Kind::kOutdated, std::nullopt};
  if (gone_.contains(FullKey(task))) return {Kind::kGone, std::nullopt};
  Arrival arrival;
  auto found = members_.find(Key(task));
  if (found != members_.end() && found->second.state == v1::TaskStatus::ALIVE) {
    if (found->second.id.incarnation() == task.incarnation()) {
      found->second.address = address;
      found->second.info = info;
      found->second.last_heard = now;
      return {Kind::kReconnected, std::nullopt};
    }
    arrival.replaced = found->second.id;
    gone_.insert(FullKey(found->second.id));
  }
  Member& member = members_[Key(task)];
  member = Member();
  member.id = task;
  member.info = info;
  member.address = address;
  member.last_heard = now;
  return arrival;
}

Member* Membership::Hear(const v1::TaskId& task, absl::Time now) {
  auto found = members_.find(Key(task));
  if (found == members_.end() || found->second.id.incarnation() != task.incarnation()) return nullptr;
  if (found->second.state != v1::TaskStatus::ALIVE) return nullptr;
  found->second.last_heard = now;
  return &found->second;
}

void Membership::NoteDisconnect(const v1::TaskId& task, absl::Time now) {
  const Member* member = FindAlive(task);
  if (member != nullptr && now - member->last_heard <= lease_ / 4) Hear(task, now);
}

void Membership::RenewAll(absl::Time now) {
  for (auto& [key, member] : members_) member.last_heard = now;
}

void Membership::Outdate() {
  for (const auto& [key, member] : members_) outdated_.insert(FullKey(member.id));
  outdated_.merge(gone_);
  gone_.clear();
  members_.clear();
}

bool Membership::IsOutdated(const v1::TaskId& task) const { return outdated_.contains(FullKey(task)); }

bool Membership::Evict(const v1::TaskId& task, const std::string& reason) {
  return End(task, v1::TaskStatus::EVICTED, reason);
}

bool Membership::Leave(const v1::TaskId& task, const std::string& reason) {
  return End(task, v1::TaskStatus::LEFT, reason);
}

bool Membership::End(const v1::TaskId& task, v1::TaskStatus::State state, const std::string& reason) {
  auto found = members_.find(Key(task));
  if (found == members_.end() || found->second.id.incarnation() != task.incarnation()) return false;
  if (found->second.state != v1::TaskStatus::ALIVE) return false;
  found->second.state = state;
  found->second.reason = reason;
  gone_.insert(FullKey(task));
  return true;
}

std::vector<v1::TaskId> Membership::Expired(absl::Time now) const {
  std::vector<v1::TaskId> expired;
  absl::Duration longest;
  bool others = false;
  for (const auto& [key, member] : members_) {
    if (member.state != v1::TaskStatus::ALIVE) continue;
    const absl::Duration silence = now - member.last_heard;
    longest = std::max(longest, silence);
    if (silence >= lease_) {
      expired.push_back(member.id);
    } else if (silence >= 0.75 * lease_) {
      others = true;
    }
  }
  if (others && longest < 1.25 * lease_) expired.clear();
  return expired;
}

const Member* Membership::Find(v1::TaskId::Role role, uint32_t index) const {
  auto found = members_.find({role, index});
  return found == members_.end() ? nullptr : &found->second;
}

const Member* Membership::FindAlive(const v1::TaskId& task) const {
  const Member* member = Find(task.role(), task.index());
  if (member == nullptr || member->state != v1::TaskStatus::ALIVE) return nullptr;
  return member->id.incarnation() == task.incarnation() ? member : nullptr;
}

std::vector<const Member*> Membership::Alive(v1::TaskId::Role role) const {
  std::vector<const Member*> alive;
  for (const auto& [key, member] : members_) {
    if (key.first == role && member.state == v1::TaskStatus::ALIVE) alive.push_back(&member);
  }
  return alive;
}

}  // namespace rubato::coordinator
