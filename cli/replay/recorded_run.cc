#include "cli/replay/recorded_run.h"

#include "absl/strings/str_cat.h"
#include "common/status.h"
#include "common/task.h"

namespace rubato {
namespace {

// "step 7 of worker 1"
std::string Describe(uint32_t worker, int64_t step) { return absl::StrCat("step ", step, " of worker ", worker); }

absl::Status Contradiction(const std::string& where, const std::string& what) {
  return absl::DataLossError(absl::StrCat(where, ": ", what));
}

bool SameSlice(const v1::ShardSlice& a, const v1::ShardSlice& b) {
  return a.shard() == b.shard() && a.begin() == b.begin() && a.end() == b.end();
}

}  // namespace

absl::Status RecordedRunBuilder::Add(const std::string& where, const v1::UpdateLogRecord& record) {
  switch (record.body_case()) {
    case v1::UpdateLogRecord::kPlan:
      AddPlan(record.plan());
      return absl::OkStatus();
    case v1::UpdateLogRecord::kUpdate:
      return AddUpdate(where, record.update());
    case v1::UpdateLogRecord::kServed:
      return AddServed(where, record.served());
    case v1::UpdateLogRecord::kHeader:
    case v1::UpdateLogRecord::BODY_NOT_SET:
      break;
  }
  return Contradiction(where, "a record that says nothing");
}

RecordedRunBuilder::Served& RecordedRunBuilder::ServedOf(StepRecord& step, uint32_t chunk) const {
  step.served.resize(updates_.size());
  return step.served[chunk];
}

void RecordedRunBuilder::AddPlan(const v1::Plan& plan) {
  // As it was decided: amendments change who is waited for, and nothing of what a step computes.
  const auto [known, added] = plans_.emplace(plan.generation(), plan);
  if (!added && plan.amendment() < known->second.amendment()) known->second = plan;
}

absl::Status RecordedRunBuilder::CheckChunk(const std::string& where, uint32_t chunk) {
  if (chunk >= updates_.size()) {
    return Contradiction(where, absl::StrCat("chunk ", chunk, "; the job has ", updates_.size()));
  }
  std::string& source = sources_[chunk];
  if (source.empty()) source = where;
  if (source == where) return absl::OkStatus();
  return Contradiction(where, absl::StrCat("chunk ", chunk, ", which ", source, " has, too"));
}

absl::Status RecordedRunBuilder::AddServed(const std::string& where, const v1::ServedRecord& served) {
  if (served.chunks_size() != served.versions_size()) {
    return Contradiction(where,
                         absl::StrCat(Describe(served.worker(), served.step()), " was served ", served.chunks_size(),
                                      " chunks and ", served.versions_size(), " versions"));
  }
  StepRecord& step = steps_[{served.worker(), served.incarnation()}][served.step()];
  step.where = where;
  for (int i = 0; i < served.chunks_size(); ++i) {
    const uint32_t chunk = served.chunks(i);
    RUBATO_RETURN_IF_ERROR(CheckChunk(where, chunk));
    const auto reached = static_cast<int64_t>(updates_[chunk].size());
    if (served.versions(i) != reached) {
      return Contradiction(where, absl::StrCat(Describe(served.worker(), served.step()), " was served version ",
                                               served.versions(i), " of chunk ", chunk, ", which was at ", reached));
    }
    ServedOf(step, chunk) = {.version = reached};
  }
  return absl::OkStatus();
}

absl::Status RecordedRunBuilder::AddUpdate(const std::string& where, const v1::UpdateRecord& update) {
  RUBATO_RETURN_IF_ERROR(CheckChunk(where, update.chunk()));
  std::vector<std::vector<PushRecord>>& updates = updates_[update.chunk()];
  const auto reached = static_cast<int64_t>(updates.size());
  const std::string push = absl::StrCat(Describe(update.worker(), update.step()), " on chunk ", update.chunk());
  RUBATO_RETURN_IF_ERROR(AddPush(where, update));
  if (update.ineffective()) {
    if (update.applied_version() == reached) return absl::OkStatus();
    return Contradiction(where, absl::StrCat(push, " changed nothing at version ", update.applied_version(),
                                             "; the chunk was at ", reached));
  }
  // Several with the same version make it together.
  if (update.applied_version() == reached + 1) updates.emplace_back();
  if (update.applied_version() != static_cast<int64_t>(updates.size()) || updates.empty()) {
    return Contradiction(
        where, absl::StrCat(push, " made version ", update.applied_version(), "; the chunk was at ", reached));
  }
  if (update.base_version() >= update.applied_version()) {
    return Contradiction(where, absl::StrCat(push, " was computed from version ", update.base_version(),
                                             " and made version ", update.applied_version()));
  }
  for (const PushRecord& other : updates.back()) {
    if (other.worker == Key(update.worker(), update.incarnation())) {
      return Contradiction(where,
                           absl::StrCat(push, ": the worker is in version ", update.applied_version(), " twice"));
    }
  }
  PushRecord made = {{update.worker(), update.incarnation()}, update.step(), update.examples(), std::nullopt};
  if (update.has_gradient_crc32()) made.gradient_crc = update.gradient_crc32();
  updates.back().push_back(std::move(made));
  return absl::OkStatus();
}

absl::Status RecordedRunBuilder::AddPush(const std::string& where, const v1::UpdateRecord& update) {
  StepRecord& step = steps_[{update.worker(), update.incarnation()}][update.step()];
  const std::string name = Describe(update.worker(), update.step());
  if (step.pushed && (step.generation != update.generation() || !SameSlice(step.slice, update.slice()))) {
    return Contradiction(where, absl::StrCat(name, " has another plan or batch on chunk ", update.chunk(),
                                             " than what ", step.where, " says of it"));
  }
  Served& served = ServedOf(step, update.chunk());
  if (served.pushed) {
    return Contradiction(where, absl::StrCat(name, " was pushed to chunk ", update.chunk(), " twice"));
  }
  // An answer that was lost may have had a later version than the one that the step was computed from, but none is
  // computed from one that was never served.
  if (served.version >= 0 && update.base_version() > served.version) {
    return Contradiction(where, absl::StrCat(name, " was computed from version ", update.base_version(), " of chunk ",
                                             update.chunk(), ", and was served ", served.version));
  }
  step.pushed = true;
  step.generation = update.generation();
  step.slice = update.slice();
  step.where = where;
  served = {.version = update.base_version(), .pushed = true};
  return absl::OkStatus();
}

absl::StatusOr<RecordedRun> RecordedRunBuilder::Build() && {
  RecordedRun run;
  run.plans = std::move(plans_);
  std::map<Key, std::pair<size_t, std::map<int64_t, size_t>>> places;
  for (const auto& [key, steps] : steps_) {
    RecordedRun::Member member;
    member.task.set_role(v1::TaskId::WORKER);
    member.task.set_index(key.first);
    member.task.set_incarnation(key.second);
    auto& place = places[key];
    for (const auto& [number, record] : steps) {
      if (!record.pushed) continue;  // Served, and then moved, or not finished by a worker that was killed.
      if (!run.plans.contains(record.generation)) {
        return Contradiction(record.where, absl::StrCat(Describe(key.first, number), " is of plan ", record.generation,
                                                        ", which no log has"));
      }
      RecordedRun::Step step = {number, record.generation, record.slice, {}};
      for (uint32_t chunk = 0; chunk < updates_.size(); ++chunk) {
        const int64_t version = record.served[chunk].version;
        if (version < 0) {
          return Contradiction(record.where, absl::StrCat(Describe(key.first, number), ": which version of chunk ",
                                                          chunk, " it was computed from is not recorded"));
        }
        step.versions.push_back(version);
      }
      place.second[number] = member.steps.size();
      member.steps.push_back(std::move(step));
    }
    if (member.steps.empty()) continue;
    place.first = run.members.size();
    run.members.push_back(std::move(member));
  }
  for (const auto& updates : updates_) {
    std::vector<RecordedRun::Update>& replayed = run.updates.emplace_back();
    for (const auto& update : updates) {
      RecordedRun::Update& pushes = replayed.emplace_back();
      for (const PushRecord& push : update) {
        const auto& place = places.at(push.worker);
        pushes.push_back({place.first, place.second.at(push.step), push.examples, push.gradient_crc});
      }
    }
  }
  return run;
}

}  // namespace rubato
