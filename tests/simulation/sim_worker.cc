#include "tests/simulation/sim_worker.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "common/task.h"
#include "tests/simulation/coordinator_host.h"
#include "tests/simulation/messages.h"
#include "tests/simulation/sim_push.h"

namespace rubato::simulation {

using worker::StepMachine;
using Request = worker::StepMachine::Request;

SimWorker::SimWorker(World* world, CoordinatorHost* host, ServerDirectory* servers, uint32_t index)
    : world_(world),
      host_(host),
      servers_(servers),
      streams_(world->scenario.servers, 0),
      link_(world, host, world->incarnations.New(v1::TaskId::WORKER, index),
            [this](const v1::Directive& directive) { OnDirective(directive); }),
      part_(world, link_.task(), [this] { return frozen_; }),
      data_([this](const v1::ShardRequest& request) {
        v1::TaskMessage message;
        *message.mutable_shard_request() = request;
        // A session says how far it is before it sends what was queued.
        link_.Send(std::vector<v1::TaskMessage>{HeartbeatMessage(), std::move(message)});
      }) {
  link_.Connect();
  Heartbeat();
}

void SimWorker::Kill(const std::string& why) {
  if (state_ != State::kRuns) return;
  world_->trace.Add(TaskName(task()), " #", task().incarnation(), " dies: ", why);
  state_ = State::kDead;
  why_dead_ = why;
  HangUp();
}

void SimWorker::Freeze(absl::Duration length) {
  if (state_ != State::kRuns || frozen_) return;
  world_->trace.Add(TaskName(task()), " freezes for ", absl::FormatDuration(length));
  frozen_ = true;
  link_.SetFrozen(true);
  world_->queue.After(length, [this] {
    frozen_ = false;
    link_.SetFrozen(false);
    Advance();
  });
}

void SimWorker::BreakStream(uint32_t server) {
  if (state_ != State::kRuns || streams_[server] % 2 == 1) return;
  world_->trace.Add(TaskName(task()), ": the stream to server ", server, " breaks");
  ++streams_[server];
  if (SimServer* process = servers_->Find(server)) process->ForgetTask(task());
  world_->queue.After(world_->scenario.latency * (10 * world_->random.Uniform()), [this, server] {
    ++streams_[server];
    if (state_ != State::kRuns) return;
    for (size_t batch = 0; batch < batches_.size(); ++batch) {
      if (machine_.has_value() && batches_[batch].server == server) machine_->Resend(static_cast<int>(batch));
    }
  });
}

v1::TaskMessage SimWorker::HeartbeatMessage() {
  v1::TaskMessage message;
  v1::WorkerProgress* progress = message.mutable_heartbeat()->mutable_progress();
  progress->set_step(std::max<int64_t>(last_.second, 0));
  progress->set_generation(last_.first);
  *message.mutable_heartbeat()->mutable_cut() = part_.progress();
  return message;
}

void SimWorker::Heartbeat() {
  if (state_ != State::kRuns) return;
  link_.Send(HeartbeatMessage());
  if (machine_.has_value() && !world_->scenario.own) data_.Ask();
  world_->queue.After(world_->scenario.lease / 6, [this] { Heartbeat(); });
}

void SimWorker::OnDirective(const v1::Directive& directive) {
  if (state_ == State::kDone) {
    if (directive.has_stop() || directive.has_restart()) link_.Close();
    if (directive.has_restart()) world_->start_again(task(), absl::ZeroDuration());
    return;
  }
  if (state_ != State::kRuns) return;
  if (directive.has_stop()) {
    Kill(directive.stop().error());
    // A job that has not started waits for its workers, and whoever launches them starts this one again.
    const bool waits = world_->oracle.newest_plan().generation() == 0 || world_->assigning();
    if (waits) world_->start_again(task(), world_->scenario.launcher);
    return;
  }
  if (directive.has_restart()) {
    Kill(directive.restart().reason());
    return world_->start_again(task(), world_->scenario.latency * (10 * world_->random.Uniform()));
  }
  if (directive.has_keep_checkpoints())
    return world_->checkpoints.Keep(task(), directive.keep_checkpoints(), part_.cut());
  if (directive.has_shard_grant()) {
    const v1::ShardGrant& grant = directive.shard_grant();
    if (!data_.OnGrant(grant)) return;
    world_->trace.Add(TaskName(task()), " #", task().incarnation(), " gets shard ", grant.shard(), " from example ",
                      grant.begin());
    return world_->oracle.Granted(job_, grant);
  }
  if (directive.has_job()) JoinJob(directive.job());
  if (SameTask(directive.job().initial_weights_from(), task()) && assigned_.empty()) {
    assigned_.resize(batches_.size());
    for (size_t batch = 0; batch < batches_.size(); ++batch) Assign(batch);
  }
  MaybeStart(directive.has_job() ? directive.job().plan() : directive.commit().plan());
}

void SimWorker::JoinJob(const v1::JobDescription& job) {
  if (job_ != 0) return;
  job_ = job.fingerprint();
  batches_ = GroupChunks({job.chunks().begin(), job.chunks().end()}, world_->random);
  rows_.emplace(world_, job, batches_);
  if (!job.has_restore()) return;
  const CheckpointDirectory::Part* part = world_->checkpoints.Find(job.restore(), v1::TaskId::WORKER, task().index());
  if (part == nullptr) return;
  world_->coverage.Note(Reached::kWorkerRestored);
  steps_ = part->steps;
}

void SimWorker::Assign(size_t batch) {
  if (state_ != State::kRuns || assigned_[batch] || machine_.has_value()) return;
  const ChunkGroup& group = batches_[batch];
  auto answer = [this, batch](const v1::ExchangeReply& reply) {
    world_->network.Send([this, batch, outcome = reply.outcome()] {
      if (outcome == v1::ExchangeReply::OK) assigned_[batch] = true;
    });
  };
  world_->network.Send([this, &group, answer] {
    SimServer* server = servers_->Find(group.server);
    if (server != nullptr) server->OnAssign(job_, group.partition, task(), group.chunks, answer);
  });
  // Until it is answered; other workers wait for it meanwhile.
  world_->queue.After(world_->scenario.resend, [this, batch] { Assign(batch); });
}

void SimWorker::MaybeStart(const v1::Plan& plan) {
  if (batches_.empty() || machine_.has_value()) return;
  const bool member = std::any_of(plan.members().begin(), plan.members().end(),
                                  [this](const v1::TaskId& other) { return SameTask(other, task()); });
  if (!member) return;
  phase_ = Phase::kForward;
  machine_.emplace(static_cast<int>(batches_.size()), static_cast<StepMachine::Sink*>(this));
  machine_->Start(plan);
  world_->training.insert(job_);
  if (!world_->scenario.own) data_.Ask();
}

std::shared_ptr<const server::PushHyperparameters> SimWorker::ReadHyperparameters(int64_t step) const {
  const auto groups = HyperparametersOf({task().incarnation(), step});
  if (!world_->scenario.clients || groups.empty()) return nullptr;
  const v1::OptimizerConfig optimizer = MakeOptimizer(world_->scenario);
  auto read = server::PushHyperparameters::Read(groups, {.optimizer = &optimizer, .groups = kGroups});
  if (read.ok()) return *std::move(read);
  world_->oracle.Violate(absl::StrCat("I1: a push is refused: ", read.status().message()));
  return nullptr;
}

server::PartitionRequest SimWorker::ToWire(const Request& request) const {
  server::PushHeader push;
  push.slice = slice_;
  push.hyperparameters = ReadHyperparameters(request.step);
  server::PartitionRequest wire = ToPartitionRequest(request, task(), batches_[request.batch].chunks,
                                                     static_cast<uint64_t>(examples_), std::move(push));
  for (size_t i = 0; i < wire.contributions.size(); ++i) {
    wire.contributions[i].base_version = versions_.at(wire.chunks[i]);
    if (IsAbsent(wire.chunks[i])) wire.contributions[i].examples = 0;
  }
  return wire;
}

std::optional<RowMessage> SimWorker::RowsOf(const Request& request) {
  const uint64_t self = task().incarnation();
  const auto group = static_cast<size_t>(request.batch);
  if (request.kind == StepMachine::Kind::kPull) return rows_->Message(group, {self, request.step});
  return rows_->Message(group, {self, request.step + 1}, {self, request.step}, examples_);
}

void SimWorker::Send(const Request& request) {
  const ChunkGroup& batch = batches_[request.batch];
  const uint32_t stream = streams_[batch.server];
  auto answer = [this, request, stream](const v1::ExchangeReply& reply) {
    world_->network.Send([this, request, stream, reply] { OnReply(request, stream, reply); });
  };
  // A stream that is broken delivers nothing; the last messages of a process that died may still come.
  if (stream % 2 == 0) {
    world_->network.Send([this, &batch, stream, answer, wire = ToWire(request), rows = RowsOf(request)] {
      SimServer* server = servers_->Find(batch.server);
      if (server == nullptr || streams_[batch.server] != stream) return;
      server->OnRequest(job_, batch.partition, wire, rows, answer);
    });
  }
  // Streams are reliable, this network is not: what stays open for long may have been lost.
  world_->queue.After(world_->scenario.timeout + world_->scenario.resend, [this, request] {
    if (state_ == State::kRuns && machine_->BatchOf(request.id) == request.batch) machine_->Resend(request.batch);
  });
}

void SimWorker::StoreVersions(const v1::ExchangeReply& reply) {
  for (const v1::ChunkWeights& entry : reply.chunks()) versions_[entry.chunk()] = entry.version();
}

void SimWorker::OnReply(const Request& request, uint32_t stream, v1::ExchangeReply reply) {
  if (state_ != State::kRuns || streams_[batches_[request.batch].server] != stream) return;
  if (machine_->BatchOf(request.id) < 0) return;
  if (frozen_) {  // It lies in the process' buffers.
    world_->queue.After(world_->scenario.latency, [this, request, stream, reply] { OnReply(request, stream, reply); });
    return;
  }
  StoreVersions(reply);
  absl::Status status = machine_->OnReply(request.id, reply);
  if (status.ok()) return Advance();
  // What servers say that have gone back says nothing about what it does; it will be told.
  if (!IsInNewestJob()) return;
  if (!absl::IsAborted(status)) {
    world_->oracle.Refused(task(), request.kind == StepMachine::Kind::kPushPull, std::string(status.message()));
  }
  if (absl::IsAborted(status) && host_->CountsOn(task())) {
    world_->oracle.Violate(absl::StrCat("I4: a member is sent away: ", status.message()));
  }
  Kill(std::string(status.message()));
}

void SimWorker::Compute(std::function<void()> then) {
  computing_ = true;
  const absl::Duration time = world_->scenario.compute[task().index()] * (2 * world_->random.Uniform());
  world_->queue.After(time, [this, then = std::move(then)] {
    computing_ = false;
    if (state_ != State::kRuns) return;
    then();
    Advance();
  });
}

void SimWorker::Advance() {
  if (state_ != State::kRuns || computing_ || frozen_) return;
  switch (phase_) {
    case Phase::kStarting:
      return;
    case Phase::kForward:
      return AdvanceForward();
    case Phase::kBackward:
      return AdvanceBackward();
    case Phase::kLeaving:
      return EndStep();
  }
}

void SimWorker::AdvanceForward() {
  if (machine_->moved()) {
    layer_ = 0;
    machine_->Restart();
  }
  if (layer_ < static_cast<int>(batches_.size())) {
    if (machine_->Have(layer_)) Compute([this] { ++layer_; });
    return;
  }
  if (!machine_->complete()) return;
  if (!data_.used_up()) return BeginStep();
  phase_ = Phase::kLeaving;
  EndStep();
}

void SimWorker::BeginStep() {
  const std::pair<uint64_t, int64_t> next(machine_->generation(), machine_->step());
  world_->trace.Add(TaskName(task()), " #", task().incarnation(), " begins step ", next.second, " of generation ",
                    next.first);
  const v1::Plan& plan = machine_->plan();
  world_->oracle.StepBegins(job_, task(), plan, last_, next);
  data_.StepBegins();
  if (plan.has_cut() && plan.generation() != last_.first) EnterCut(plan.cut());
  last_ = next;
  TakeExamples();
  machine_->BeginStep();
  phase_ = Phase::kBackward;
  layer_ = static_cast<int>(batches_.size()) - 1;
  AdvanceBackward();
}

void SimWorker::EnterCut(const v1::Cut& cut) {
  part_.Begin(cut);
  v1::CutProgress& progress = part_.progress();
  if (progress.id() != cut.id() || progress.entered()) return;
  progress.set_entered(true);
  for (const v1::ShardPosition& position : data_.Positions()) *progress.add_shards() = position;
  world_->trace.Add(TaskName(task()), " #", task().incarnation(), " enters cut ", cut.id(), " with ",
                    progress.shards_size(), " shards");
  part_.Write({.cut = cut, .steps = steps_});
}

bool SimWorker::IsAbsent(uint32_t chunk) const {
  return world_->scenario.clients && (task().incarnation() + static_cast<uint64_t>(last_.second) + chunk) % 5 == 0;
}

void SimWorker::TakeExamples() {
  // Some steps are empty.
  const int64_t most = static_cast<int64_t>((task().incarnation() * 7 + static_cast<uint64_t>(last_.second)) % 9);
  if (world_->scenario.own) {
    examples_ = most;
    return;
  }
  const SimData::Batch batch = data_.Take(most);
  examples_ = batch.end - batch.begin;
  slice_.Clear();
  data_.Ask();
  if (examples_ == 0) return;
  slice_.set_shard(batch.shard);
  slice_.set_begin(batch.begin);
  slice_.set_end(batch.end);
  world_->trace.Add(TaskName(task()), " #", task().incarnation(), " takes examples ", batch.begin, " to ", batch.end,
                    " of shard ", batch.shard);
}

void SimWorker::AdvanceBackward() {
  if (layer_ < 0) {
    ++steps_;
    layer_ = 0;
    const bool did_last = world_->scenario.examples == 0 && steps_ >= world_->scenario.steps;
    phase_ = did_last ? Phase::kLeaving : Phase::kForward;
    return Advance();
  }
  Compute([this] { machine_->Push(layer_--); });
}

void SimWorker::EndStep() {
  if (machine_->open_pushes() > 0) return;
  if (last_.second >= 0) world_->oracle.StepAcknowledged(job_, task(), last_.second);
  world_->trace.Add(TaskName(task()), " #", task().incarnation(), " leaves");
  state_ = State::kDone;
  part_.Close();
  ForgetRequests();
  const v1::TaskMessage last = HeartbeatMessage();
  link_.Send(last);
  link_.RegisterDone(last.heartbeat().progress());
}

void SimWorker::HangUp() {
  link_.Close();
  part_.Close();
  ForgetRequests();
}

void SimWorker::ForgetRequests() {
  for (const auto& [index, server] : servers_->all()) server->ForgetTask(task());
}

std::string SimWorker::Describe() const {
  std::string text = absl::StrCat(TaskName(task()), " #", task().incarnation(), ": ");
  if (state_ == State::kDone) return absl::StrCat(text, "done");
  if (state_ == State::kDead) return absl::StrCat(text, "dead, ", why_dead_);
  absl::StrAppend(&text, steps_, " steps done; ",
                  phase_ == Phase::kStarting  ? "waits for a plan"
                  : phase_ == Phase::kForward ? "is to begin step "
                                              : "works on step ");
  if (phase_ == Phase::kForward) absl::StrAppend(&text, machine_->step(), " of generation ", machine_->generation());
  if (phase_ == Phase::kBackward || phase_ == Phase::kLeaving) absl::StrAppend(&text, last_.second);
  return text;
}

}  // namespace rubato::simulation
