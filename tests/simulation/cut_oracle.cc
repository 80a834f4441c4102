#include "tests/simulation/cut_oracle.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/proto_enum.h"
#include "common/task.h"

namespace rubato::simulation {

void CutOracle::Decided(const v1::Plan& plan) {
  if (plan.amendment() == 0 && plan.generation() <= decided_.generation()) {
    verdict_->Note(absl::StrCat("I5: plan ", plan.generation(), " is decided after plan ", decided_.generation()));
  }
  decided_ = plan;
  if (plan.amendment() > 0 || !plan.has_cut()) return;
  if (plan.cut().id() <= highest_) {
    verdict_->Note(absl::StrCat("I7: cut ", plan.cut().id(), " is decided after cut ", highest_));
  }
  if (open()) coverage_->Note(Reached::kCutAbandoned);
  open_ = highest_ = plan.cut().id();
  cuts_[open_].plan = plan;
}

void CutOracle::NoteModeBefore(const KnownPlans& plans) {
  if (!plans.previous.has_value()) return;
  switch (plans.previous->mode()) {
    case v1::SYNC:
      return coverage_->Note(plans.previous->quorum() > 0 ? Reached::kCutAfterQuorum : Reached::kCutAfterSync);
    case v1::SSP:
      return coverage_->Note(Reached::kCutAfterSsp);
    case v1::ASYNC:
      return coverage_->Note(Reached::kCutAfterAsync);
    case v1::MODE_UNSPECIFIED:
      RUBATO_NO_VALUE_OF(v1::Mode) : return;
  }
}

void CutOracle::Captured(const KnownPlans& plans, const ChunkOracle& chunk, uint32_t index) {
  NoteModeBefore(plans);
  Chunk& captured = cuts_[plans.current.cut().id()].chunks[index];
  captured.state = chunk.state();
  captured.done.insert(chunk.done().begin(), chunk.done().end());
  for (const v1::TaskId& member : plans.current.members()) captured.members.insert(member.incarnation());
}

std::string CutOracle::CheckRecord(const Facts& facts, const v1::CutRecord& record, uint32_t chunks) const {
  const v1::Plan& plan = record.plan();
  if (plan.generation() != facts.plan.generation() || plan.first_step() != facts.plan.first_step() ||
      record.cut().name() != facts.plan.cut().name()) {
    return absl::StrCat("speaks of plan ", plan.generation(), " from step ", plan.first_step(), "; its own is ",
                        facts.plan.generation(), " from step ", facts.plan.first_step());
  }
  for (uint32_t chunk = 0; chunk < chunks; ++chunk) {
    if (!facts.chunks.contains(chunk)) return absl::StrCat("is recorded before chunk ", chunk, " is captured");
  }
  return CheckPushes(facts);
}

std::string CutOracle::CheckPushes(const Facts& facts) const {
  std::set<PushId> all;
  for (const auto& [index, chunk] : facts.chunks) all.insert(chunk.done.begin(), chunk.done.end());
  for (const PushId& push : all) {
    for (const auto& [index, chunk] : facts.chunks) {
      // Who is no member any more may have been lost within the step.
      if (chunk.done.contains(push) || !chunk.members.contains(push.first)) continue;
      return absl::StrCat("has step ", push.second, " of #", push.first, " in some chunks, but not in chunk ", index);
    }
  }
  return "";
}

std::string CutOracle::CheckServerParts(const Facts& facts, const v1::CutRecord& record,
                                        const CheckpointDirectory& directory) const {
  std::set<uint32_t> missing;
  for (const auto& [index, chunk] : facts.chunks) missing.insert(index);
  for (uint32_t server : record.servers()) {
    const CheckpointDirectory::Part* part = directory.Find(record.cut(), v1::TaskId::SERVER, server);
    if (part == nullptr) return absl::StrCat("is recorded without the part of server ", server);
    for (const auto& [index, state] : part->chunks) {
      missing.erase(index);
      auto captured = facts.chunks.find(index);
      if (captured == facts.chunks.end() || captured->second.state != state) {
        return absl::StrCat("has another chunk ", index, " on the disk than what was captured");
      }
    }
  }
  return missing.empty() ? "" : absl::StrCat("is recorded without chunk ", *missing.begin(), " on the disk");
}

std::string CutOracle::CheckWorkerParts(const Facts& facts, const v1::CutRecord& record,
                                        const CheckpointDirectory& directory) const {
  for (uint32_t worker : record.workers()) {
    if (directory.Find(record.cut(), v1::TaskId::WORKER, worker) != nullptr) continue;
    return absl::StrCat("is recorded without the part of worker ", worker);
  }
  for (const v1::TaskId& member : record.plan().members()) {
    if (!HasMember(decided_, member)) continue;  // It was lost, or has left.
    if (!facts.entered.contains(member.incarnation())) {
      return absl::StrCat("is recorded before ", TaskName(member), " has entered its plan");
    }
    if (std::count(record.workers().begin(), record.workers().end(), member.index()) == 0) {
      return absl::StrCat("is recorded without ", TaskName(member));
    }
  }
  return "";
}

void CutOracle::Recorded(const v1::CutRecord& record, const CheckpointDirectory& directory, uint32_t chunks) {
  Facts& facts = cuts_[record.cut().id()];
  if (std::exchange(facts.complete, true)) return;
  facts.record = record;
  std::string wrong = CheckRecord(facts, record, chunks);
  if (wrong.empty()) wrong = CheckServerParts(facts, record, directory);
  if (wrong.empty()) wrong = CheckWorkerParts(facts, record, directory);
  if (!wrong.empty()) verdict_->Note(absl::StrCat("I7: cut ", record.cut().id(), " ", wrong));
  if (open_ == record.cut().id()) open_ = 0;
  coverage_->Note(Reached::kCutComplete);
}

void CutOracle::RolledBack() {
  if (open()) coverage_->Note(Reached::kCutAbandoned);
  open_ = 0;
}

const v1::CutRecord* CutOracle::FindComplete(uint64_t id) const {
  auto it = cuts_.find(id);
  return it == cuts_.end() || !it->second.complete ? nullptr : &it->second.record;
}

ChunkStates CutOracle::StatesOf(uint64_t id) const {
  ChunkStates states;
  auto it = cuts_.find(id);
  if (it == cuts_.end()) return states;
  for (const auto& [index, chunk] : it->second.chunks) states[index] = chunk.state;
  return states;
}

bool CutOracle::IsInOpen(const v1::TaskId& worker) const {
  if (!open()) return false;
  return HasMember(cuts_.at(open_).plan, worker);
}

}  // namespace rubato::simulation
