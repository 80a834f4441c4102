#include "server/rules/check_plan.h"

#include <cmath>
#include <cstdint>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "common/status.h"

namespace rubato::server {
namespace {

// Of workers' indices, which what is known of workers is found by. A coordinator has fewer workers.
constexpr uint32_t kIndicesMax = 4096;

using Members = absl::flat_hash_map<uint32_t, uint64_t>;  // Incarnations by index.

absl::Status Refused(absl::string_view field, const auto& value, absl::string_view allowed) {
  return absl::InvalidArgumentError(absl::StrCat("plan.", field, ": ", value, "; ", allowed));
}

absl::Status CheckMembers(const v1::Plan& plan, Members* members) {
  for (int i = 0; i < plan.members_size(); ++i) {
    const v1::TaskId& member = plan.members(i);
    const std::string field = absl::StrCat("members[", i, "]");
    if (member.role() != v1::TaskId::WORKER) {
      return Refused(absl::StrCat(field, ".role"), member.role(), "WORKER is allowed");
    }
    if (member.incarnation() == 0) return Refused(absl::StrCat(field, ".incarnation"), 0, "another number is allowed");
    if (member.index() >= kIndicesMax) {
      return Refused(absl::StrCat(field, ".index"), member.index(),
                     absl::StrCat("0 to ", kIndicesMax - 1, " is allowed"));
    }
    if (!members->emplace(member.index(), member.incarnation()).second) {
      return Refused(absl::StrCat(field, ".index"), member.index(), "each worker is a member once");
    }
  }
  return absl::OkStatus();
}

absl::Status CheckNumbers(const v1::Plan& plan) {
  if (plan.mode() != v1::SYNC && plan.mode() != v1::SSP && plan.mode() != v1::ASYNC) {
    return Refused("mode", plan.mode(), "SYNC, SSP and ASYNC are allowed");
  }
  if (plan.staleness_bound() < 0) return Refused("staleness_bound", plan.staleness_bound(), "0 or more is allowed");
  if (plan.first_step() < 0) return Refused("first_step", plan.first_step(), "0 or more is allowed");
  // Written so that NaN is refused too.
  if (!(plan.learning_rate_scale() >= 0 && std::isfinite(plan.learning_rate_scale()))) {
    return Refused("learning_rate_scale", plan.learning_rate_scale(), "a number >= 0 is allowed");
  }
  if (!(plan.momentum() >= 0 && plan.momentum() < 1)) {
    return Refused("momentum", plan.momentum(), "0 or more, less than 1, is allowed");
  }
  return absl::OkStatus();
}

// An amendment takes members out.
absl::Status CheckAmendment(const v1::Plan& plan, const v1::Plan& current) {
  Members before;
  for (const v1::TaskId& member : current.members()) before.emplace(member.index(), member.incarnation());
  for (const v1::TaskId& member : plan.members()) {
    const auto found = before.find(member.index());
    if (found != before.end() && found->second == member.incarnation()) continue;
    return Refused("members", absl::StrCat("worker ", member.index()),
                   absl::StrCat("an amendment of plan ", plan.generation(), " has members of that plan"));
  }
  v1::Plan rest = plan, rest_before = current;
  for (v1::Plan* either : {&rest, &rest_before}) {
    either->clear_members();
    either->clear_amendment();
  }
  if (rest.SerializeAsString() == rest_before.SerializeAsString()) return absl::OkStatus();
  return Refused("amendment", plan.amendment(),
                 absl::StrCat("an amendment of plan ", plan.generation(), " changes nothing but its members"));
}

}  // namespace

absl::Status CheckPlan(const v1::Plan& plan, const v1::Plan& current) {
  if (plan.generation() == 0) return Refused("generation", 0, "1 or more is allowed");
  if (plan.generation() < current.generation()) return absl::OkStatus();
  RUBATO_RETURN_IF_ERROR(CheckNumbers(plan));
  Members members;
  RUBATO_RETURN_IF_ERROR(CheckMembers(plan, &members));
  if (plan.generation() == current.generation()) {
    return plan.amendment() > current.amendment() ? CheckAmendment(plan, current) : absl::OkStatus();
  }
  if (plan.first_step() >= current.first_step()) return absl::OkStatus();
  return Refused("first_step", plan.first_step(),
                 absl::StrCat(current.first_step(), ", that of plan ", current.generation(), ", or more is allowed"));
}

bool TakenPlan::Take(const v1::Plan& plan, absl::FunctionRef<void(const absl::Status& why)> refused) {
  if (const absl::Status checked = CheckPlan(plan, plan_); !checked.ok()) {
    if (std::exchange(refused_, plan.generation()) != plan.generation()) refused(checked);
    return false;
  }
  const auto age = [](const v1::Plan& of) { return std::pair(of.generation(), of.amendment()); };
  if (age(plan) > age(plan_)) plan_ = plan;
  return true;
}

}  // namespace rubato::server
