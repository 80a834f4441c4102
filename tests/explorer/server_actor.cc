#include "tests/explorer/server_actor.h"

#include <algorithm>
#include <iterator>
#include <optional>

#include "absl/strings/str_join.h"
#include "common/task.h"
#include "tests/explorer/coordinator_actor.h"
#include "tests/explorer/worker_actor.h"
#include "tests/simulation/messages.h"

namespace rubato::explorer {
namespace {

using simulation::ChunkState;
using simulation::Oracle;
using Kind = server::PartitionRequest::Kind;

uint64_t FingerprintOfRequest(const DataRequest& data) {
  const server::PartitionRequest& request = data.request;
  uint64_t fingerprint = FingerprintOf("request", data.stream.Tag(), data.id, static_cast<uint64_t>(request.kind),
                                       request.generation, static_cast<uint64_t>(request.step));
  for (uint32_t chunk : request.chunks) fingerprint = Mix(fingerprint, uint64_t{chunk});
  return fingerprint;
}

}  // namespace

// One partition; shows everything that crosses its interface to the oracle.
class ServerActor::PartitionActor : public server::PartitionSink {
 public:
  PartitionActor(Model* model, ServerActor* server, const Oracle::Place& place, const std::vector<uint32_t>& chunks,
                 const std::map<uint32_t, ChunkState>& restored)
      : model_(model),
        oracle_(&model->oracle),
        server_(server),
        place_(place),
        rules_(chunks, kTimeout, static_cast<server::PartitionSink*>(this)) {
    for (uint32_t chunk : chunks) {
      auto found = restored.find(chunk);
      const ChunkState& state = weights_[chunk] = found == restored.end() ? ChunkState() : found->second;
      rules_.Restore(chunk, state.version);
      oracle_->Restored(place_, chunk, state);
    }
  }

  void OnRequest(const DataRequest& data);
  void OnStreamEnd(const Stream& stream);
  void OnTimeout();
  // The process ends: no answer is due.
  void End();
  void AppendState(std::string* state) const;
  bool HasEnded(const Stream& stream) const { return ended_.contains(stream.Tag()); }
  server::Partition& rules() { return rules_; }

  bool IsFinite(uint32_t, const server::Contribution&) override { return true; }
  void Apply(const server::ChunkRules::Update& update) override;
  void Answer(const server::PartitionReply& reply) override;
  void Capture(uint64_t token, uint32_t chunk) override { oracle_->Captured(token, chunk); }
  void CaptureCut(const v1::Cut& cut, uint32_t chunk) override;
  void Log(const v1::UpdateLogRecord& record) override;

 private:
  Model* const model_;
  Oracle* const oracle_;
  ServerActor* const server_;
  const Oracle::Place place_;
  server::Partition rules_;
  std::map<uint32_t, ChunkState> weights_;
  // Says something to the oracle: what it knows of this partition is the set of all that it was told, but for the order
  // of updates, which it compares with nothing but the order of the same updates here.
  void Told(uint64_t fact) {
    if (facts_.insert(fact).second) facts_sum_ += fact;
  }

  std::map<uint64_t, DataRequest> open_;  // By token, without their contributions.
  std::set<uint64_t> facts_;
  uint64_t facts_sum_ = 0;
  std::set<uint64_t> ended_;  // Tags of streams.
};

void ServerActor::PartitionActor::OnRequest(const DataRequest& data) {
  server::PartitionRequest request = data.request;
  request.token = ++model_->last_token;
  Oracle::Request seen;
  seen.place = place_;
  seen.push = request.kind == Kind::kPushPull;
  seen.task = request.task;
  seen.generation = request.generation;
  seen.step = seen.push ? request.step + 1 : request.step;
  seen.chunks = request.chunks;
  seen.deadline = absl::InfiniteFuture();
  DataRequest& open = open_[request.token] = data;
  open.request.contributions.clear();
  for (uint32_t chunk : request.chunks) {
    Told(FingerprintOf("asks", uint64_t{chunk}, seen.task.incarnation(), seen.generation,
                       static_cast<uint64_t>(seen.step), uint64_t{seen.push}));
  }
  for (const server::Contribution& contribution : request.contributions) seen.examples.push_back(contribution.examples);
  oracle_->Arrived(request.token, seen);
  rules_.OnRequest(std::move(request), Start());
  if (seen.push) oracle_->Taken(place_, seen.task, seen.step - 1, seen.chunks);
}

void ServerActor::PartitionActor::OnStreamEnd(const Stream& stream) {
  ended_.insert(stream.Tag());
  std::vector<uint64_t> tokens;
  for (const auto& [token, open] : open_) {
    if (open.stream.Tag() == stream.Tag()) tokens.push_back(token);
  }
  for (uint64_t token : tokens) {
    rules_.Forget(token);
    oracle_->Forgotten(token);
    open_.erase(token);
  }
}

void ServerActor::PartitionActor::End() {
  for (const auto& [token, open] : open_) oracle_->Forgotten(token);
  open_.clear();
}

void ServerActor::PartitionActor::OnTimeout() { rules_.OnTick(Start() + kTimeout); }

void ServerActor::PartitionActor::Apply(const server::ChunkRules::Update& update) {
  std::vector<v1::UpdateRecord> records;
  ChunkState& weights = weights_[update.chunk];
  ++weights.version;
  for (const server::Contribution& contribution : update.contributions) {
    records.push_back(simulation::ToRecord(update.chunk, contribution));
    weights.pushes.emplace_back(contribution.header->task.incarnation(), contribution.header->step);
  }
  oracle_->Applied(place_, update.chunk, records);
}

void ServerActor::PartitionActor::CaptureCut(const v1::Cut& cut, uint32_t chunk) {
  const ChunkState& state = weights_[chunk];
  Told(FingerprintOf("captures", cut.id(), uint64_t{chunk}));
  oracle_->CutCaptured(place_, cut, chunk, state);
  server_->OnCaptured(cut, chunk, state);
}

void ServerActor::PartitionActor::Log(const v1::UpdateLogRecord& record) {
  if (record.has_plan()) {
    Told(FingerprintOf("plan", record.plan().SerializeAsString()));
    oracle_->PlanHolds(place_, record.plan());
  }
  if (!record.has_update()) return;
  const v1::UpdateRecord& update = record.update();
  Told(FingerprintOf("update", uint64_t{update.chunk()}, update.incarnation(), update.generation(),
                     static_cast<uint64_t>(update.step()), uint64_t{update.ineffective()}));
  oracle_->Logged(place_, update);
}

void ServerActor::PartitionActor::Answer(const server::PartitionReply& reply) {
  auto node = open_.extract(reply.token);
  v1::ExchangeReply wire = simulation::ToWire(reply);
  v1::ExchangeReply with_versions = wire;
  for (uint32_t chunk : reply.chunks) {
    v1::ChunkWeights* entry = with_versions.add_chunks();
    entry->set_chunk(chunk);
    entry->set_version(rules_.Find(chunk)->version());
  }
  oracle_->Answered(reply.token, with_versions);
  if (node.empty()) return;
  const DataRequest& open = node.mapped();
  const bool strict = rules_.plan().mode() == v1::SYNC && rules_.plan().quorum() == 0;
  for (const v1::ChunkWeights& weights : with_versions.chunks()) {
    Told(FingerprintOf("begins", uint64_t{weights.chunk()}, open.stream.task.incarnation(), open.request.generation,
                       static_cast<uint64_t>(open.request.step), static_cast<uint64_t>(open.request.kind),
                       strict ? static_cast<uint64_t>(weights.version()) : 0));
  }
  // The worker goes by its steps, whatever the versions are.
  model_->workers[open.stream.task.index()]->ReceiveReply(open.stream, open.id, wire);
}

void ServerActor::PartitionActor::AppendState(std::string* state) const {
  rules_.AppendState(state);
  for (const auto& [token, open] : open_) absl::StrAppend(state, open.stream.Tag(), ",", open.id, ";");
  absl::StrAppend(state, absl::StrJoin(ended_, ","), ";", facts_sum_, ";");
}

ServerActor::ServerActor(Model* model, uint32_t index, uint64_t term)
    : model_(model),
      index_(index),
      link_(model, {.task = model->NewProcess(v1::TaskId::SERVER, index),
                    .actor = IdOf(Actor::kServer, index),
                    .threads = Threads(),
                    .term = term,
                    .receiver = [this](const v1::Directive& directive) { OnDirective(directive); },
                    .on_new_session = [this] { OnNewSession(); }}) {}

ServerActor::~ServerActor() = default;

std::vector<uint64_t> ServerActor::Threads() const {
  std::vector<uint64_t> actors;
  for (uint32_t p = 0; p < model_->scope.partitions; ++p) actors.push_back(ActorOf(p));
  return actors;
}

void ServerActor::OnNewSession() {
  // What one partition knows of has come, for all of them.
  for (auto joint = joints_.begin(); joint != joints_.end();) {
    const bool has_come = joint->second.missing < model_->scope.partitions;
    if (!has_come) model_->schedule.Withdraw(TagOfPlan(joint->first));
    joint = has_come ? std::next(joint) : joints_.erase(joint);
  }
  if (cut_.id() != 0 && written_ == cut_.id()) ReportPart();
}

void ServerActor::Die() {
  model_->schedule.Withdraw(TagOf(Once::kCrashServer));
  End();
  model_->coordinator->AwaitLease(task());
  model_->schedule.Post({.actor = link_.actor(),
                         .content = FingerprintOf("starts again"),
                         .run = [this] { model_->start_again(task(), 0); },
                         .label = model_->Label("server ", index_, " is started again")});
}

void ServerActor::End() {
  alive_ = false;
  link_.Close();
  model_->schedule.WithdrawInputs(link_.actor());
  for (uint64_t thread : Threads()) model_->schedule.WithdrawInputs(thread);
  for (const auto& partition : partitions_) partition->End();
  joints_.clear();
}

void ServerActor::OnDirective(const v1::Directive& directive) {
  if (directive.has_stop()) {
    return model_->oracle.Violate(absl::StrCat("I4: a living server is stopped: ", directive.stop().error()));
  }
  if (directive.has_restart()) {
    End();
    return model_->start_again(task(), link_.term());
  }
  if (directive.has_job()) return StartJob(directive.job());
  if (directive.has_keep_checkpoints()) {
    return model_->checkpoints.Keep(link_.task(), directive.keep_checkpoints(), cut_);
  }
  if (!directive.has_checkpoint()) return;
  v1::TaskMessage message;
  message.mutable_checkpoint_done()->set_name(directive.checkpoint().name());
  link_.Send(std::move(message));
}

void ServerActor::StartJob(const v1::JobDescription& job) {
  if (works()) return;
  std::optional<std::map<uint32_t, ChunkState>> restored;
  if (job.has_restore()) restored = model_->checkpoints.ReadChunks(job.restore());
  if (job.has_restore() && !restored.has_value()) {
    return model_->oracle.Violate(absl::StrCat("I7: checkpoint ", job.restore().name(), " is not whole"));
  }
  model_->job = job;
  job_ = job.fingerprint();
  for (const v1::ServerInfo& server : job.servers()) servers_.push_back(server.task().index());
  std::vector<std::vector<uint32_t>> chunks(model_->scope.partitions);
  for (int chunk = 0; chunk < job.chunks_size(); ++chunk) {
    if (job.chunks(chunk).server() == index_) chunks[job.chunks(chunk).partition()].push_back(chunk);
  }
  for (uint32_t p = 0; p < chunks.size(); ++p) {
    const Oracle::Place place{job.fingerprint(), index_ * model_->scope.partitions + p};
    partitions_.push_back(std::make_unique<PartitionActor>(model_, this, place, chunks[p],
                                                           restored.value_or(std::map<uint32_t, ChunkState>())));
    chunks_ += chunks[p].size();
  }
}

void ServerActor::ReceivePlan(const v1::Directive& directive) {
  const uint64_t number = ++last_joint_;
  joints_[number].missing = model_->scope.partitions;
  for (uint32_t p = 0; p < model_->scope.partitions; ++p) {
    const uint64_t actor = ActorOf(p);
    Schedule::Event event;
    event.actor = actor;
    event.content = FingerprintOf("plan", directive.SerializeAsString());
    event.channel = FingerprintOf("plans of", actor);
    event.tag = TagOfPlan(number);
    // On the stream the job comes before it.
    event.possible = [this] { return works(); };
    event.label = model_->Label("server ", index_, ".", p, " is told ", directive);
    event.run = [this, p, directive, number] { OnPlan(*partitions_[p], directive, number); };
    model_->schedule.Post(std::move(event));
  }
}

void ServerActor::OnPlan(PartitionActor& partition, const v1::Directive& directive, uint64_t number) {
  Joint& joint = joints_.at(number);
  v1::TaskMessage message;
  if (directive.has_abort()) {
    partition.rules().Abort(directive.abort().generation(), Start());
  } else if (directive.has_announce()) {
    const uint64_t generation = directive.announce().generation();
    joint.highest = std::max(joint.highest, partition.rules().Announce(generation));
    message.mutable_announce_ack()->set_generation(generation);
    message.mutable_announce_ack()->set_highest_started_step(joint.highest);
  } else {
    const v1::Plan& plan = directive.commit().plan();
    if (plan.has_cut()) BeginCut(plan.cut());
    partition.rules().Commit(plan, Start());
    message.mutable_plan_ack()->set_generation(plan.generation());
    message.mutable_plan_ack()->set_amendment(plan.amendment());
  }
  if (--joint.missing > 0) return;
  joints_.erase(number);
  if (!directive.has_abort()) link_.Send(std::move(message));
}

void ServerActor::ReceiveRequest(uint32_t partition, DataRequest request) {
  Schedule::Event event;
  event.actor = ActorOf(partition);
  event.content = FingerprintOfRequest(request);
  event.tag = request.stream.Tag();
  event.label = model_->Label("server ", index_, ".", partition, ": ", TaskName(request.request.task),
                              request.request.kind == Kind::kPull ? " pulls " : " pushes ", request.request.step,
                              " of generation ", request.request.generation, ", chunks ",
                              absl::StrJoin(request.request.chunks, ","), " on stream ", request.stream.number);
  event.run = [this, partition, event, request = std::move(request)] {
    partitions_[partition]->OnRequest(request);
    OfferRepeat(partition, event, request);
  };
  model_->schedule.Post(std::move(event));
}

void ServerActor::OfferRepeat(uint32_t partition, Schedule::Event event, const DataRequest& request) {
  if (!model_->may_repeat) return;
  event.content = Mix(event.content, "again");
  event.tag = TagOf(Once::kRepeat);
  event.label = model_->Label(event.label, ", again");
  event.possible = [this, partition, request] { return !partitions_[partition]->HasEnded(request.stream); };
  event.run = [this, partition, request] {
    model_->may_repeat = false;
    model_->schedule.Withdraw(TagOf(Once::kRepeat));
    partitions_[partition]->OnRequest(request);
  };
  model_->schedule.Post(std::move(event));
}

void ServerActor::EndStream(const Stream& stream) {
  for (uint32_t p = 0; p < model_->scope.partitions; ++p) {
    const uint64_t actor = ActorOf(p);
    Schedule::Event event;
    event.actor = actor;
    event.content = FingerprintOf("stream ends", stream.Tag());
    event.label = model_->Label("server ", index_, ".", p, ": stream ", stream.number, " of ", TaskName(stream.task),
                                " has ended");
    event.run = [this, p, stream, actor] {
      model_->schedule.Withdraw(stream.Tag(), actor);
      partitions_[p]->OnStreamEnd(stream);
    };
    model_->schedule.Post(std::move(event));
  }
}

void ServerActor::OfferFaults() {
  OfferTimeouts();
  if (!model_->scope.crash_server) return;
  model_->schedule.Post({.actor = link_.actor(),
                         .content = FingerprintOf("dies"),
                         .tag = TagOf(Once::kCrashServer),
                         .run = [this] { Die(); },
                         .label = model_->Label("server ", index_, " dies"),
                         .also = Threads()});
}

void ServerActor::OfferTimeouts() {
  if (!model_->scope.timeout) return;
  for (uint32_t p = 0; p < partitions_.size(); ++p) {
    PartitionActor* partition = partitions_[p].get();
    model_->schedule.Post({.actor = ActorOf(p),
                           .content = FingerprintOf("timeout"),
                           .tag = TagOf(Once::kTimeout),
                           .run =
                               [this, partition] {
                                 model_->schedule.Withdraw(TagOf(Once::kTimeout));
                                 partition->OnTimeout();
                               },
                           .possible = [partition] { return !partition->rules().HeldStarts().empty(); },
                           .label = model_->Label("server ", index_, ".", p, ": what is open times out")});
  }
}

void ServerActor::BeginCut(const v1::Cut& cut) {
  if (cut.id() <= cut_.id()) return;
  cut_ = cut;
  captured_.clear();
  if (chunks_ == 0) WritePart();
}

void ServerActor::OnCaptured(const v1::Cut& cut, uint32_t chunk, const ChunkState& state) {
  BeginCut(cut);
  if (cut.id() != cut_.id()) return;
  captured_[chunk] = state;
  if (captured_.size() == chunks_) WritePart();
}

void ServerActor::WritePart() {
  auto write = [this, part = simulation::CheckpointDirectory::Part{cut_, captured_, servers_}] {
    if (part.cut.id() != cut_.id()) return;
    model_->checkpoints.BeginWrite(link_.task(), part.cut);
    model_->checkpoints.Write(link_.task(), part);
    written_ = part.cut.id();
    ReportPart();
  };
  model_->schedule.Post({.actor = link_.actor(),
                         .content = FingerprintOf("part", cut_.id()),
                         .run = std::move(write),
                         .label = model_->Label("server ", index_, " has written its part of cut ", cut_.id())});
}

void ServerActor::ReportPart() {
  v1::TaskMessage message;
  message.mutable_heartbeat()->mutable_cut()->set_id(written_);
  message.mutable_heartbeat()->mutable_cut()->set_written(true);
  link_.Send(std::move(message));
}

void ServerActor::AppendState(std::string* state) const {
  for (const auto& partition : partitions_) partition->AppendState(state);
  absl::StrAppend(state, alive_, ",", link_.term(), ",", cut_.id(), ",", written_, ";");
  for (const auto& [chunk, captured] : captured_) absl::StrAppend(state, chunk, ",", captured.version, ";");
  for (const auto& [number, joint] : joints_) absl::StrAppend(state, joint.missing, ",", joint.highest, ";");
}

std::vector<server::HeldStart> ServerActor::HeldStarts() const {
  std::vector<server::HeldStart> all;
  for (const auto& partition : partitions_) {
    for (server::HeldStart& held : partition->rules().HeldStarts()) all.push_back(std::move(held));
  }
  return all;
}

std::string ServerActor::Describe() const {
  std::string text;
  for (const server::HeldStart& held : HeldStarts()) {
    absl::StrAppend(&text, "server ", index_, ": step ", held.step, " of worker ", held.worker, " waits for ",
                    server::DescribeWait(held.waiting_for, held.waits_for_coordinator), "\n");
  }
  return text;
}

}  // namespace rubato::explorer
