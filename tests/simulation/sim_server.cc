#include "tests/simulation/sim_server.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/task.h"

namespace rubato::simulation {
namespace {

using Kind = server::PartitionRequest::Kind;

constexpr absl::Duration kTick = absl::Milliseconds(50);

v1::ExchangeReply ToWire(const server::PartitionReply& reply) {
  v1::ExchangeReply wire;
  wire.set_outcome(reply.outcome);
  wire.set_push(reply.push);
  wire.set_message(reply.message);
  wire.set_next_step(reply.next_step);
  if (reply.outcome == v1::ExchangeReply::MOVED) *wire.mutable_plan() = reply.plan;
  return wire;
}

v1::UpdateRecord RecordOf(uint32_t chunk, const server::Contribution& contribution) {
  v1::UpdateRecord record;
  record.set_worker(contribution.task.index());
  record.set_incarnation(contribution.task.incarnation());
  record.set_generation(contribution.generation);
  record.set_step(contribution.step);
  record.set_chunk(chunk);
  record.set_examples(contribution.examples);
  return record;
}

}  // namespace

// One partition; shows everything that crosses its interface to the oracle.
class SimServer::SimPartition : public server::PartitionSink {
 public:
  SimPartition(World* world, uint32_t number, std::string name, const std::vector<uint32_t>& chunks)
      : world_(world), number_(number), name_(std::move(name)), rules_(chunks, world->scenario.timeout, this) {}

  void OnRequest(server::PartitionRequest request, SimServer::Answer answer);
  void ForgetTask(const v1::TaskId& task);
  server::Partition& rules() { return rules_; }

  bool IsFinite(uint32_t, const server::Contribution&) override { return true; }
  void Apply(const server::ChunkRules::Update& update) override;
  void Answer(const server::PartitionReply& reply) override;
  void Capture(uint64_t token, uint32_t chunk) override { world_->oracle.Captured(token, chunk); }
  void Log(const v1::UpdateLogRecord& record) override;

  // Work of the coordinator is done in order: no earlier than this.
  absl::Time free_at = absl::InfinitePast();

 private:
  struct Open {
    v1::TaskId task;
    SimServer::Answer answer;
  };

  World* const world_;
  const uint32_t number_;  // Over all servers.
  const std::string name_;
  server::Partition rules_;
  absl::flat_hash_map<uint64_t, Open> open_;  // By token.
  uint64_t requests_ = 0;
};

void SimServer::SimPartition::OnRequest(server::PartitionRequest request, SimServer::Answer answer) {
  request.token = ++requests_ * 1000 + number_;
  Oracle::Request seen;
  seen.partition = number_;
  seen.snapshot = request.kind == Kind::kSnapshot;
  seen.push = request.kind == Kind::kPushPull;
  seen.task = request.task;
  seen.generation = request.generation;
  seen.step = seen.push ? request.step + 1 : request.step;
  seen.chunks = request.chunks;
  // The look at waiting requests comes in intervals, and twice as late if a tick has just passed.
  seen.deadline = world_->queue.Now() + world_->scenario.timeout + 2 * kTick;
  if (world_->trace.on()) {
    world_->trace.Add(name_, ": ", TaskName(request.task), " #", request.task.incarnation(),
                      seen.push       ? " pushes "
                      : seen.snapshot ? " looks at "
                                      : " pulls ",
                      request.step, " of generation ", request.generation, ", chunks ",
                      absl::StrJoin(request.chunks, ","), " [", request.token, "]");
  }
  open_[request.token] = {request.task, std::move(answer)};
  world_->oracle.Arrived(request.token, std::move(seen));
  rules_.OnRequest(std::move(request), world_->queue.Now());
}

void SimServer::SimPartition::ForgetTask(const v1::TaskId& task) {
  std::vector<uint64_t> tokens;
  for (const auto& [token, open] : open_) {
    if (SameTask(open.task, task)) tokens.push_back(token);
  }
  std::sort(tokens.begin(), tokens.end());
  for (uint64_t token : tokens) {
    rules_.Forget(token);
    world_->oracle.Forgotten(token);
    open_.erase(token);
  }
}

void SimServer::SimPartition::Apply(const server::ChunkRules::Update& update) {
  std::vector<v1::UpdateRecord> records;
  for (const server::Contribution& contribution : update.contributions) {
    records.push_back(RecordOf(update.chunk, contribution));
  }
  world_->oracle.Applied(number_, update.chunk, records);
}

void SimServer::SimPartition::Log(const v1::UpdateLogRecord& record) {
  if (world_->on_record) world_->on_record(number_, record);
  if (record.has_plan()) {
    world_->trace.Add(name_, ": plan ", record.plan().generation(), ".", record.plan().amendment(), " holds");
    world_->oracle.PlanHolds(number_, record.plan());
  }
  if (!record.has_update()) return;
  const v1::UpdateRecord& update = record.update();
  world_->trace.Add(name_, ": step ", update.step(), " of worker ", update.worker(), " on chunk ", update.chunk(),
                    update.ineffective() ? " is dropped at version " : " makes version ", update.applied_version());
  world_->oracle.Logged(number_, update);
}

void SimServer::SimPartition::Answer(const server::PartitionReply& reply) {
  auto node = open_.extract(reply.token);
  if (world_->trace.on()) {
    world_->trace.Add(name_, ": answers [", reply.token, "] ", v1::ExchangeReply::Outcome_Name(reply.outcome), " ",
                      v1::ExchangeReply::PushOutcome_Name(reply.push), " ", reply.next_step, " ", reply.message);
  }
  v1::ExchangeReply wire = ToWire(reply);
  for (uint32_t chunk : reply.chunks) {
    v1::ChunkWeights* entry = wire.add_chunks();
    entry->set_chunk(chunk);
    entry->set_version(rules_.Find(chunk)->version());
  }
  world_->oracle.Answered(reply.token, wire);
  if (!node.empty()) node.mapped().answer(wire);
}

SimServer::SimServer(World* world, CoordinatorHost* host, uint32_t index)
    : world_(world),
      index_(index),
      link_(world, host, world->NewTask(v1::TaskId::SERVER, index),
            [this](const v1::Directive& directive) { OnDirective(directive); }) {
  link_.Connect();
  Tick();
}

SimServer::~SimServer() = default;

void SimServer::Tick() {
  for (auto& partition : partitions_) partition->rules().OnTick(world_->queue.Now());
  v1::TaskMessage message;
  message.mutable_heartbeat();
  link_.Send(std::move(message));
  world_->queue.After(kTick, [this] { Tick(); });
}

void SimServer::OnRequest(uint32_t partition, server::PartitionRequest request, Answer answer) {
  if (partitions_.empty()) return;  // Not in a job yet; only the evaluator asks as early as that.
  partitions_[partition]->OnRequest(std::move(request), std::move(answer));
}

void SimServer::ForgetTask(const v1::TaskId& task) {
  for (auto& partition : partitions_) partition->ForgetTask(task);
}

void SimServer::OnEachPartition(std::function<void(SimPartition&)> work, std::function<void()> done) {
  auto missing = std::make_shared<size_t>(partitions_.size());
  for (auto& partition : partitions_) {
    const absl::Time now = world_->queue.Now();
    partition->free_at = std::max(partition->free_at, now + world_->scenario.latency * world_->random.Uniform());
    world_->queue.After(partition->free_at - now, [&partition = *partition, work, done, missing] {
      work(partition);
      if (--*missing == 0) done();
    });
  }
}

void SimServer::StartJob(const v1::JobDescription& job) {
  if (!partitions_.empty()) return;
  world_->chunks.assign(job.chunks().begin(), job.chunks().end());
  std::vector<std::vector<uint32_t>> chunks(world_->scenario.partitions);
  for (int chunk = 0; chunk < job.chunks_size(); ++chunk) {
    if (job.chunks(chunk).server() == index_) chunks[job.chunks(chunk).partition()].push_back(chunk);
  }
  for (uint32_t p = 0; p < chunks.size(); ++p) {
    partitions_.push_back(
        std::make_unique<SimPartition>(world_, index_ * 8 + p, absl::StrCat("server ", index_, ".", p), chunks[p]));
  }
}

void SimServer::OnDirective(const v1::Directive& directive) {
  if (directive.has_job()) return StartJob(directive.job());
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
    v1::TaskMessage message;
    message.mutable_checkpoint_done()->set_name(directive.checkpoint().name());
    link_.Send(std::move(message));
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
  OnEachPartition([this, plan](SimPartition& partition) { partition.rules().Commit(plan, world_->queue.Now()); },
                  [this, generation = plan.generation(), amendment = plan.amendment()] {
                    v1::TaskMessage message;
                    message.mutable_plan_ack()->set_generation(generation);
                    message.mutable_plan_ack()->set_amendment(amendment);
                    link_.Send(std::move(message));
                  });
}

std::string SimServer::Describe() {
  std::string text;
  for (auto& partition : partitions_) {
    for (const server::HeldStart& held : partition->rules().HeldStarts()) {
      absl::StrAppend(&text, "server ", index_, ": step ", held.step, " of worker ", held.worker, " waits for ",
                      server::DescribeWait(held.waiting_for, held.waits_for_coordinator), "\n");
    }
  }
  return text;
}

}  // namespace rubato::simulation
