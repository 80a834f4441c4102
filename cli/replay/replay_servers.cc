#include "cli/replay/replay_servers.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/status.h"
#include "common/task.h"
#include "kernels/optimizer/gradient_crc.h"
#include "server/rules/chunk_rules.h"

namespace rubato {

using server::ChunkRules;
using server::ChunkStore;

// How often progress is told.
constexpr int64_t kReports = 1000;
// How often a wait looks at the clock.
constexpr absl::Duration kPoll = absl::Milliseconds(200);

ReplayServers::ReplayServers(const Options& options) : options_(options) {
  MutexLock lock(mu_);
  pushed_at_ = options_.clock->Now();
  const RecordedRun& run = *options_.run;
  members_.resize(run.members.size());
  chunks_.resize(run.updates.size());
  std::vector<std::vector<uint32_t>> of_server(options_.servers);
  for (uint32_t chunk = 0; chunk < chunks_.size(); ++chunk) {
    if (!IsShard(chunk)) of_server[options_.job->chunks(static_cast<int>(chunk)).server()].push_back(chunk);
  }
  for (const std::vector<uint32_t>& held : of_server) {
    stores_.push_back(std::make_unique<ChunkStore>(*options_.config, *options_.model, *options_.job, held));
    for (uint32_t chunk : held) chunks_[chunk].store = stores_.back().get();
  }
  for (size_t member = 0; member < run.members.size(); ++member) {
    const std::vector<RecordedRun::Step>& steps = run.members[member].steps;
    for (size_t step = 0; step < steps.size(); ++step) {
      for (uint32_t chunk = 0; chunk < chunks_.size(); ++chunk) {
        chunks_[chunk].readers.push_back({steps[step].versions[chunk], member, step});
      }
    }
  }
  for (uint32_t chunk = 0; chunk < chunks_.size(); ++chunk) {
    all_updates_ += static_cast<int64_t>(run.updates[chunk].size());
    for (const RecordedRun::Update& update : run.updates[chunk]) {
      for (const RecordedRun::Push& push : update) chunks_[chunk].recorded[{push.member, push.step}] = &push;
    }
    std::sort(chunks_[chunk].readers.begin(), chunks_[chunk].readers.end());
    SetAside(chunk);
  }
}

std::string ReplayServers::Describe(size_t member, size_t step) const {
  return absl::StrCat("step ", options_.run->members[member].steps[step].step, " of ", TaskName(TaskOf(member)));
}

std::string ReplayServers::DescribeWait(size_t member, size_t step, uint32_t chunk) const {
  return absl::StrCat(Describe(member, step), " waits for version ",
                      options_.run->members[member].steps[step].versions[chunk], " of chunk ", chunk);
}

server::ChunkSnapshot ReplayServers::KeepAsIs(uint32_t chunk) {
  server::ChunkSnapshot snapshot;
  if (IsShard(chunk)) {
    const std::shared_ptr<server::ShardSnapshot> shard = options_.tables->Keep(chunk);
    shard->record.set_version(chunks_[chunk].version);
    snapshot.shard = shard;
    return snapshot;
  }
  snapshot = chunks_[chunk].store->Keep(chunk);
  snapshot.record.set_version(chunks_[chunk].version);
  return snapshot;
}

void ReplayServers::SetAside(uint32_t index) {
  Chunk& chunk = chunks_[index];
  for (; chunk.next_reader < chunk.readers.size(); ++chunk.next_reader) {
    const auto [version, member, step] = chunk.readers[chunk.next_reader];
    if (version > chunk.version) break;
    if (IsShard(index)) {
      if (!ReadRows(member, step, index)) chunk.unread.insert({member, step});
      continue;
    }
    aside_[{member, step, index}] = chunk.store->ForWire(index, chunk.version);
    if (!chunk.store->keeps_pulled()) continue;
    const bool may_be_stale = PlanOf(member, step).mode() != v1::SYNC;
    chunk.store->NotePulled(index, TaskOf(member), chunk.version, may_be_stale);
  }
  const auto last = static_cast<int64_t>(options_.run->updates[index].size());
  if (chunk.version != std::min(last, options_.until_version.value_or(last))) return;
  chunk.kept = KeepAsIs(index);
  ++complete_;
  if (options_.until_version.has_value() && complete_ == chunks_.size() && failed_.ok()) {
    failed_ = absl::CancelledError("all chunks have come as far as was asked for");
  }
}

absl::StatusOr<ChunkStore::Wire> ReplayServers::Await(size_t member, size_t step, uint32_t chunk) {
  const Key key = {member, step, chunk};
  MutexLock lock(mu_);
  RUBATO_RETURN_IF_ERROR(Wait(
      member, [&]() ABSL_NO_THREAD_SAFETY_ANALYSIS { return aside_.contains(key); },
      DescribeWait(member, step, chunk)));
  return aside_.extract(key).mapped();
}

absl::Status ReplayServers::Push(size_t member, size_t step, uint32_t chunk, const Pushed& pushed) {
  const Key key = {member, step, chunk};
  const RecordedRun::Push* recorded = nullptr;
  {
    MutexLock lock(mu_);
    pushed_at_ = options_.clock->Now();
    const auto found = chunks_[chunk].recorded.find({member, step});
    // Of no update: the run's push came too late, or never.
    if (found == chunks_[chunk].recorded.end()) return absl::OkStatus();
    recorded = found->second;
  }
  auto arrived = std::make_unique<Arrived>(Arrived{pushed, {}, pushed.bytes});
  arrived->of_tensor = {.pieces = {&arrived->piece, 1}, .codec = pushed.codec};
  // Gradients of rows are as long as their pieces are.
  const int64_t length = options_.job->chunks(static_cast<int>(chunk)).length();
  if (pushed.examples > 0 && !IsFinite(arrived->gradient(), length)) arrived->pushed.examples = 0;
  if (options_.same_config) RUBATO_RETURN_IF_ERROR(CheckAgainstRecord(key, *recorded, *arrived));
  MutexLock lock(mu_);
  RUBATO_RETURN_IF_ERROR(failed_);
  chunks_[chunk].arrived[{member, step}] = std::move(arrived);
  ++members_[member].open;
  ApplyWhatIsDue(chunk);
  return absl::OkStatus();
}

absl::Status ReplayServers::CheckAgainstRecord(const Key& key, const RecordedRun::Push& recorded,
                                               const Arrived& arrived) const {
  if (arrived.pushed.examples != recorded.examples) {
    return absl::DataLossError(absl::StrCat(Describe(key.member, key.step), " pushes a gradient of ",
                                            arrived.pushed.examples, " examples to chunk ", key.chunk,
                                            "; the record says of ", recorded.examples));
  }
  if (!recorded.gradient_crc.has_value() || arrived.pushed.examples == 0) return absl::OkStatus();
  if (GradientCrc(arrived.gradient()) == *recorded.gradient_crc) return absl::OkStatus();
  const RecordedRun::Step& step = options_.run->members[key.member].steps[key.step];
  return absl::DataLossError(absl::StrCat(Describe(key.member, key.step), " pushes another gradient to chunk ",
                                          key.chunk, ", computed from ", "its version ", step.versions[key.chunk],
                                          ", than the run did"));
}

void ReplayServers::ApplyWhatIsDue(uint32_t index) {
  Chunk& chunk = chunks_[index];
  const std::vector<RecordedRun::Update>& updates = options_.run->updates[index];
  bool applied = false;
  while (chunk.unread.empty() && HasNextUpdate(chunk, updates)) {
    ApplyNext(index, updates[static_cast<size_t>(chunk.version)]);
    applied = true;
  }
  if (applied) changed_.NotifyAll();
}

bool ReplayServers::HasNextUpdate(const Chunk& chunk, const std::vector<RecordedRun::Update>& updates) const {
  if (chunk.version == static_cast<int64_t>(updates.size())) return false;
  const RecordedRun::Update& next = updates[static_cast<size_t>(chunk.version)];
  return std::all_of(next.begin(), next.end(), [&](const RecordedRun::Push& push) {
    return chunk.arrived.contains({push.member, push.step});
  });
}

void ReplayServers::ApplyNext(uint32_t index, const RecordedRun::Update& next) {
  Chunk& chunk = chunks_[index];
  ChunkRules::Update update = {.chunk = index, .contributions = {}, .from_version = chunk.version};
  std::vector<std::unique_ptr<Arrived>> used;
  for (const RecordedRun::Push& push : next) {
    const RecordedRun::Step& step = options_.run->members[push.member].steps[push.step];
    used.push_back(std::move(chunk.arrived.extract({push.member, push.step}).mapped()));
    const Arrived& arrived = *used.back();
    server::Contribution& contribution = update.contributions.emplace_back();
    auto header = std::make_shared<server::PushHeader>();
    header->task = TaskOf(push.member);
    header->generation = step.generation;
    header->step = step.step;
    header->epoch = arrived.pushed.epoch;
    header->slice = step.slice;
    contribution.header = std::move(header);
    contribution.examples = arrived.pushed.examples;
    contribution.base_version = step.versions[index];
    // Not owned: it outlives the update.
    contribution.gradient = {std::shared_ptr<void>(), &arrived.gradient()};
    const v1::Plan& plan = PlanOf(push.member, push.step);
    update.learning_rate_scale = LearningRateScale(plan);
    update.momentum = MomentumOf(plan);
    update.is_one_push = plan.mode() != v1::SYNC;
    --members_[push.member].open;
  }
  if (IsShard(index)) {
    const absl::Status status = options_.tables->Apply(update);
    if (failed_.ok()) failed_ = status;
  } else {
    chunk.store->Apply(update);
  }
  ++chunk.version;
  SetAside(index);
  ++updates_;
  const bool tells = updates_ % std::max<int64_t>(all_updates_ / kReports, 1) == 0;
  if (options_.progress && tells) options_.progress(updates_, all_updates_);
}

absl::Status ReplayServers::AwaitApplied(size_t member) {
  MutexLock lock(mu_);
  return Wait(
      member, [&]() ABSL_NO_THREAD_SAFETY_ANALYSIS { return members_[member].open == 0; },
      absl::StrCat("the last step of ", TaskName(TaskOf(member)), " waits for its pushes' updates"));
}

void ReplayServers::Leave(size_t member) {
  MutexLock lock(mu_);
  members_[member].there = false;
  CheckStall();
}

void ReplayServers::Cancel(const absl::Status& status) {
  MutexLock lock(mu_);
  if (failed_.ok()) failed_ = status;
  changed_.NotifyAll();
}

absl::Status ReplayServers::failed() {
  MutexLock lock(mu_);
  return failed_;
}

bool ReplayServers::IsComplete() {
  MutexLock lock(mu_);
  return complete_ == chunks_.size();
}

std::vector<server::ChunkSnapshot> ReplayServers::Keep(uint32_t server) {
  MutexLock lock(mu_);
  std::vector<server::ChunkSnapshot> kept;
  for (uint32_t chunk = 0; chunk < chunks_.size(); ++chunk) {
    if (options_.job->chunks(static_cast<int>(chunk)).server() != server) continue;
    kept.push_back(*chunks_[chunk].kept);
  }
  return kept;
}

absl::Status ReplayServers::Wait(size_t member, const std::function<bool()>& done, std::string waits) {
  if (failed_.ok() && done()) return absl::OkStatus();
  members_[member].awaited = &done;
  members_[member].waits = std::move(waits);
  CheckStall();
  const absl::Time begin = options_.clock->Now();
  const absl::Duration timeout = absl::Seconds(options_.config->cluster().wait_timeout_seconds());
  while (failed_.ok() && !done()) {
    changed_.WaitFor(mu_, kPoll);
    if (!failed_.ok() || done() || options_.clock->Now() - std::max(begin, pushed_at_) <= timeout) continue;
    failed_ = absl::DeadlineExceededError(
        absl::StrCat(members_[member].waits, ", and nobody has pushed anything for longer than ",
                     "cluster.wait_timeout_seconds = ", absl::ToDoubleSeconds(timeout)));
    changed_.NotifyAll();
  }
  members_[member].awaited = nullptr;
  return failed_;
}

void ReplayServers::CheckStall() {
  std::vector<std::string> waits;
  for (const Member& member : members_) {
    if (!member.there) continue;
    if (member.awaited == nullptr || (*member.awaited)()) return;
    waits.push_back(member.waits);
  }
  if (waits.empty() || !failed_.ok()) return;
  for (std::string& wait : UpdatesThatWaitForReaders()) waits.push_back(std::move(wait));
  failed_ = absl::DataLossError(
      absl::StrCat("the record contradicts itself: nobody can go on: ", absl::StrJoin(waits, "; ")));
  changed_.NotifyAll();
}

}  // namespace rubato
