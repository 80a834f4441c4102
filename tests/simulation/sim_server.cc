#include "tests/simulation/sim_server.h"

#include <algorithm>
#include <cstdlib>
#include <optional>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/rules/assignment.h"
#include "server/rules/held_start.h"

namespace rubato::simulation {

SimServer::SimServer(World* world, CoordinatorHost* host, ServerDirectory* directory, uint32_t index)
    : world_(world),
      directory_(directory),
      index_(index),
      link_(world, host, world->incarnations.New(v1::TaskId::SERVER, index),
            [this](const v1::Directive& directive) { OnDirective(directive); }),
      part_(world, link_.task(), [this] { return frozen_; }) {
  directory_->Add(index, this);
  link_.Connect();
  Tick();
}

void SimServer::End(const std::string& why, absl::Duration back) {
  if (!alive_) return;
  world_->trace.Add("server ", index_, " #", link_.task().incarnation(), " ends: ", why);
  alive_ = false;
  link_.Close();
  part_.Close();
  directory_->Remove(index_, this);
  for (auto& partition : partitions_) partition->ForgetAll();
  if (back < absl::InfiniteDuration()) world_->start_again(link_.task(), back);
}

void SimServer::Crash(absl::Duration back) { End("crash", back); }

void SimServer::Freeze(absl::Duration length) {
  if (!alive_ || frozen_) return;
  world_->trace.Add("server ", index_, " freezes for ", absl::FormatDuration(length));
  frozen_ = true;
  link_.SetFrozen(true);
  for (auto& partition : partitions_) partition->Postpone(length);
  world_->queue.After(length, [this] {
    frozen_ = false;
    link_.SetFrozen(false);
  });
}

void SimServer::Tick() {
  if (!alive_) return;
  if (!frozen_) {
    for (auto& partition : partitions_) partition->rules().OnTick(world_->queue.Now());
    v1::TaskMessage message;
    *message.mutable_heartbeat()->mutable_cut() = part_.progress();
    link_.Send(std::move(message));
  }
  world_->queue.After(kServerTick, [this] { Tick(); });
}

void SimServer::OnRequest(uint64_t job, uint32_t partition, server::PartitionRequest request,
                          std::optional<RowMessage> rows, Answer answer) {
  if (!alive_) return;
  if (frozen_) {  // It lies in the process' buffers.
    world_->queue.After(kServerTick,
                        [this, job, partition, request = std::move(request), rows = std::move(rows),
                         answer = std::move(answer)] { OnRequest(job, partition, request, rows, answer); });
    return;
  }
  // Not in a job yet, or not with as many partitions.
  if (partition >= partitions_.size()) return;
  if (job != job_) {
    world_->coverage.Note(Reached::kOldRequestRefused);
    if (world_->scenario.fingerprints) return;
  }
  partitions_[partition]->OnRequest(std::move(request), rows, std::move(answer));
}

void SimServer::OnAssign(uint64_t job, uint32_t partition, const v1::TaskId& worker, std::vector<uint32_t> chunks,
                         Answer answer) {
  if (!alive_ || (!frozen_ && (job != job_ || partition >= partitions_.size()))) return;
  if (frozen_) {
    world_->queue.After(kServerTick,
                        [this, job, partition, worker, chunks = std::move(chunks), answer = std::move(answer)] {
                          OnAssign(job, partition, worker, chunks, answer);
                        });
    return;
  }
  partitions_[partition]->OnAssign(worker, chunks, answer);
  WriteFirstCheckpoint();
}

void SimServer::WriteFirstCheckpoint() {
  const bool assigned = std::all_of(partitions_.begin(), partitions_.end(),
                                    [](const auto& partition) { return partition->assignment().complete(); });
  if (!assigned || !std::exchange(first_checkpoint_asked_, false)) return;
  WriteCheckpoint("step0");
}

void SimServer::WriteCheckpoint(const std::string& name) {
  v1::TaskMessage message;
  message.mutable_checkpoint_done()->set_name(name);
  world_->queue.After(world_->scenario.writing * (2 * world_->random.Uniform()), [this, message, name] {
    if (!alive_) return;
    if (name == "step0") {
      std::set<uint32_t>& written = world_->first_written[job_];
      written.insert(index_);
      world_->weights_written |= written.size() >= servers_.size();
    }
    link_.Send(message);
  });
}

void SimServer::ForgetTask(const v1::TaskId& task) {
  if (!alive_) return;
  for (auto& partition : partitions_) partition->ForgetTask(task);
}

void SimServer::OnEachPartition(std::function<void(SimPartition&)> work, std::function<void()> done) {
  auto missing = std::make_shared<size_t>(partitions_.size());
  for (auto& partition : partitions_) {
    const absl::Time now = world_->queue.Now();
    partition->free_at = std::max(partition->free_at, now + world_->scenario.latency * world_->random.Uniform());
    world_->queue.After(partition->free_at - now, [this, &partition = *partition, work, done, missing] {
      if (!alive_) return;
      work(partition);
      if (--*missing == 0) done();
    });
  }
}

std::unique_ptr<SimPartition> SimServer::MakePartition(const v1::JobDescription& job, uint32_t partition,
                                                       std::vector<uint32_t> chunks) {
  auto tables = server::TableStore::Create(world_->config, world_->model, job, chunks);
  // Nothing can be done without it.
  if (!tables.ok()) std::abort();
  return std::make_unique<SimPartition>(
      SimPartition::Options{.world = world_,
                            .place = {job_, index_ * 8 + partition},
                            .name = absl::StrCat("server ", index_, ".", partition),
                            .chunks = std::move(chunks),
                            .on_captured = [this](const v1::Cut& cut, uint32_t chunk,
                                                  const ChunkState& state) { OnCaptured(cut, chunk, state); }},
      *std::move(tables));
}

void SimServer::StartJob(const v1::JobDescription& job) {
  if (job_ == job.fingerprint()) {
    for (auto& partition : partitions_) {
      if (job.has_initial_weights_from()) partition->assignment().Name(job.initial_weights_from());
    }
    return;
  }
  if (job_ != 0) {
    return End("it is in another job", world_->scenario.launcher);
  }
  // Of the first checkpoint there is nothing to be read: weights are those that were assigned.
  const bool from_first = job.has_restore() && job.restore().id() == 0;
  const bool restores = job.has_restore() && !from_first &&
                        std::any_of(job.chunks().begin(), job.chunks().end(),
                                    [&](const auto& chunk) { return chunk.server() == index_; });
  std::optional<std::map<uint32_t, ChunkState>> states;
  if (restores) states = world_->checkpoints.ReadChunks(job.restore());
  if (restores && !states.has_value()) {
    v1::TaskMessage message;
    message.mutable_leaving()->set_error(absl::StrCat("checkpoint ", job.restore().name(), " is not whole"));
    message.mutable_leaving()->set_cause(v1::Leaving::CANNOT_RESTORE);
    link_.Send(std::move(message));
    return End(absl::StrCat("cut ", job.restore().id(), " is not whole"), world_->scenario.launcher);
  }
  job_ = job.fingerprint();
  for (const v1::ServerInfo& server : job.servers()) servers_.push_back(server.task().index());
  if (job.rollback_term() >= world_->job.rollback_term()) world_->job = job;
  std::vector<std::vector<uint32_t>> chunks(world_->scenario.partitions);
  for (int chunk = 0; chunk < job.chunks_size(); ++chunk) {
    if (job.chunks(chunk).server() == index_) chunks[job.chunks(chunk).partition()].push_back(chunk);
  }
  for (uint32_t p = 0; p < chunks.size(); ++p) {
    partitions_.push_back(MakePartition(job, p, chunks[p]));
    chunks_ += chunks[p].size();
    for (uint32_t chunk : chunks[p]) {
      partitions_.back()->Restore(chunk, states.has_value() ? (*states)[chunk] : ChunkState());
    }
    if (!world_->scenario.clients || job.has_restore()) continue;
    partitions_.back()->assignment().Await(chunks[p]);
    if (job.has_initial_weights_from()) partitions_.back()->assignment().Name(job.initial_weights_from());
  }
}

void SimServer::OnDirective(const v1::Directive& directive) {
  if (!alive_) return;
  if (directive.has_stop()) {
    const bool done = directive.stop().kind() == v1::Stop::DONE;
    return End(directive.stop().error(), done ? absl::InfiniteDuration() : world_->scenario.launcher);
  }
  if (directive.has_restart()) {
    return End(directive.restart().reason(), world_->scenario.latency * (10 * world_->random.Uniform()));
  }
  if (directive.has_job()) return StartJob(directive.job());
  if (directive.has_keep_checkpoints()) {
    return world_->checkpoints.Keep(link_.task(), directive.keep_checkpoints(), part_.cut());
  }
  // What comes before the job is repeated.
  if (partitions_.empty()) return;
  if (directive.has_announce()) return Announce(directive.announce().generation());
  if (directive.has_commit()) return Commit(directive.commit().plan());
  if (directive.has_abort()) {
    const uint64_t generation = directive.abort().generation();
    OnEachPartition(
        [this, generation](SimPartition& partition) { partition.rules().Abort(generation, world_->queue.Now()); },
        [] {});
  } else if (directive.has_checkpoint()) {
    if (directive.checkpoint().name() != "step0") return WriteCheckpoint(directive.checkpoint().name());
    first_checkpoint_asked_ = true;
    WriteFirstCheckpoint();
  }
}

void SimServer::Announce(uint64_t generation) {
  auto highest = std::make_shared<int64_t>(-1);
  OnEachPartition(
      [generation, highest](SimPartition& partition) {
        *highest = std::max(*highest, partition.rules().Announce(generation));
      },
      [this, generation, highest] {
        v1::TaskMessage message;
        message.mutable_announce_ack()->set_generation(generation);
        message.mutable_announce_ack()->set_highest_started_step(*highest);
        link_.Send(std::move(message));
      });
}

void SimServer::Commit(const v1::Plan& plan) {
  if (plan.has_cut()) BeginCut(plan.cut());
  auto message = std::make_shared<v1::TaskMessage>();
  message->mutable_plan_ack()->set_generation(plan.generation());
  message->mutable_plan_ack()->set_amendment(plan.amendment());
  OnEachPartition(
      [this, plan, message](SimPartition& partition) {
        partition.rules().Commit(plan, world_->queue.Now());
        const std::vector<v1::LostWorker> lost = partition.rules().Lost();
        message->mutable_plan_ack()->mutable_lost()->Add(lost.begin(), lost.end());
      },
      [this, message] { link_.Send(std::move(*message)); });
}

void SimServer::BeginCut(const v1::Cut& cut) {
  if (cut.id() <= part_.cut().id()) return;
  part_.Begin(cut);
  captured_.clear();
  // Where it has no chunks.
  if (chunks_ == 0) part_.Write({.cut = cut, .servers = servers_});
}

void SimServer::OnCaptured(const v1::Cut& cut, uint32_t chunk, const ChunkState& state) {
  BeginCut(cut);
  if (cut.id() != part_.cut().id()) return;
  captured_[chunk] = state;
  if (captured_.size() == chunks_) part_.Write({.cut = cut, .chunks = captured_, .servers = servers_});
}

std::string SimServer::Describe() {
  std::string text;
  if (!alive_) return text;
  for (auto& partition : partitions_) {
    for (const server::HeldStart& held : partition->rules().HeldStarts()) {
      absl::StrAppend(&text, "server ", index_, ": step ", held.step, " of worker ", held.worker, " waits for ",
                      server::DescribeWait(held.waiting_for, held.waits_for_coordinator), "\n");
    }
  }
  return text;
}

}  // namespace rubato::simulation
