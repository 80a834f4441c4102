#include "tests/simulation/sim_partition.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/task.h"
#include "server/rules/update_mix.h"
#include "tests/simulation/messages.h"
#include "tests/simulation/sim_push.h"

namespace rubato::simulation {

using Kind = server::PartitionRequest::Kind;

SimPartition::SimPartition(const Options& options)
    : options_(options),
      world_(options.world),
      oracle_(&options.world->oracle),
      rules_(options.chunks, options.world->scenario.timeout, this) {}

void SimPartition::Restore(uint32_t chunk, const ChunkState& state) {
  weights_[chunk] = state;
  rules_.Restore(chunk, state.version);
  oracle_->Restored(options_.place, chunk, state);
}

void SimPartition::OnAssign(const v1::TaskId& worker, const std::vector<uint32_t>& chunks, const SendReply& send) {
  const server::Assignment::Answer taken = assignment_.OnAssign(worker, chunks);
  world_->trace.Add(name(), ": ", TaskName(worker), " #", worker.incarnation(), " assigns ", absl::StrJoin(chunks, ","),
                    ": ", v1::ExchangeReply::Outcome_Name(taken.outcome), ", takes ", absl::StrJoin(taken.taken, ","));
  if (!taken.taken.empty() && rules_.highest_begun() >= 0) {
    oracle_->Violate(absl::StrCat("I1: weights are assigned to ", name(), " after a step has begun there"));
  }
  v1::ExchangeReply reply;
  reply.set_outcome(taken.outcome);
  send(reply);
}

void SimPartition::TraceRequest(const server::PartitionRequest& request) const {
  if (!world_->trace.on()) return;
  const char* what = request.kind == Kind::kPushPull   ? " pushes "
                     : request.kind == Kind::kSnapshot ? " looks at "
                                                       : " pulls ";
  world_->trace.Add(name(), ": ", TaskName(request.task), " #", request.task.incarnation(), what, request.step,
                    " of generation ", request.generation, ", chunks ", absl::StrJoin(request.chunks, ","), " [",
                    request.token, "]");
}

void SimPartition::OnRequest(server::PartitionRequest request, SendReply send) {
  request.token = ++world_->last_token;
  Oracle::Request seen;
  seen.place = options_.place;
  seen.snapshot = request.kind == Kind::kSnapshot;
  seen.push = request.kind == Kind::kPushPull;
  seen.task = request.task;
  seen.generation = request.generation;
  seen.step = seen.push ? request.step + 1 : request.step;
  seen.chunks = request.chunks;
  for (const server::Contribution& push : request.contributions) seen.examples.push_back(push.examples);
  // The look at waiting requests comes in intervals, and twice as late if a tick has just passed.
  seen.deadline = world_->queue.Now() + world_->scenario.timeout + 2 * kServerTick;
  TraceRequest(request);
  open_[request.token] = {request.task, std::move(send), seen.snapshot};
  oracle_->Arrived(request.token, seen);
  rules_.OnRequest(std::move(request), world_->queue.Now());
  if (seen.push) oracle_->Taken(options_.place, seen.task, seen.step - 1, seen.chunks);
}

void SimPartition::ForgetTask(const v1::TaskId& task) {
  std::vector<uint64_t> tokens;
  for (const auto& [token, open] : open_) {
    if (SameTask(open.task, task)) tokens.push_back(token);
  }
  for (uint64_t token : tokens) {
    rules_.Forget(token);
    oracle_->Forgotten(token);
    open_.erase(token);
  }
}

void SimPartition::ForgetAll() {
  for (const auto& [token, open] : open_) oracle_->Forgotten(token);
  open_.clear();
}

void SimPartition::Postpone(absl::Duration length) {
  for (const auto& [token, open] : open_) oracle_->Postponed(token, length);
}

void SimPartition::Apply(const server::ChunkRules::Update& update) {
  std::vector<v1::UpdateRecord> records;
  ChunkState& weights = weights_[update.chunk];
  ++weights.version;
  for (const server::Contribution& contribution : update.contributions) {
    records.push_back(ToRecord(update.chunk, contribution));
    weights.pushes.emplace_back(contribution.header->task.incarnation(), contribution.header->step);
  }
  oracle_->Applied(options_.place, update.chunk, records);
  const bool disagreement = ChangeValue(update, &weights.value);
  oracle_->Updated(options_.place, update.chunk, world_->scenario, records, {weights.value, disagreement});
}

bool SimPartition::ChangeValue(const server::ChunkRules::Update& update, double* value) const {
  const Scenario& scenario = world_->scenario;
  const server::UpdateMix mix = server::MixContributions(
      update, {.group = scenario.clients ? GroupOf(update.chunk, scenario.chunks) : 0, .is_mean = scenario.mean});
  if (!mix.has_effect) return false;
  double gradient = 0;
  for (const server::UpdateMix::Part& part : mix.parts) {
    const PushId push(part.contribution->header->task.incarnation(), part.contribution->header->step);
    gradient += part.weight * GradientOf(push, update.chunk);
  }
  const v1::OptimizerConfig optimizer = mix.hyperparameters == nullptr ? MakeOptimizer(scenario) : *mix.hyperparameters;
  *value = scenario.mean ? gradient
                         : *value - optimizer.learning_rate() * update.learning_rate_scale * mix.share_with_examples *
                                        (gradient + optimizer.weight_decay() * *value);
  return mix.disagreement;
}

void SimPartition::CaptureCut(const v1::Cut& cut, uint32_t chunk) {
  const ChunkState& state = weights_[chunk];
  world_->trace.Add(name(), ": chunk ", chunk, " is captured for cut ", cut.id(), ", version ", state.version);
  oracle_->CutCaptured(options_.place, cut, chunk, state);
  options_.on_captured(cut, chunk, state);
}

void SimPartition::Log(const v1::UpdateLogRecord& record) {
  if (world_->on_record) world_->on_record(options_.place.job, options_.place.partition, record);
  if (record.has_plan()) {
    world_->trace.Add(name(), ": plan ", record.plan().generation(), ".", record.plan().amendment(), " holds");
    oracle_->PlanHolds(options_.place, record.plan());
    if (world_->scenario.mean && record.plan().mode() != v1::SYNC) {
      oracle_->Violate(absl::StrCat("I1: plan ", record.plan().generation(), " of a job of means is not in SYNC"));
    }
    if (oracle_->IsNewest(options_.place.job)) world_->rollback.End(world_->job.servers_size());
  }
  if (!record.has_update()) return;
  const v1::UpdateRecord& update = record.update();
  world_->trace.Add(name(), ": step ", update.step(), " of worker ", update.worker(), " on chunk ", update.chunk(),
                    update.ineffective() ? " is dropped at version " : " makes version ", update.applied_version());
  oracle_->Logged(options_.place, update);
}

void SimPartition::Answer(const server::PartitionReply& reply) {
  auto node = open_.extract(reply.token);
  if (world_->trace.on()) {
    world_->trace.Add(name(), ": answers [", reply.token, "] ", v1::ExchangeReply::Outcome_Name(reply.outcome), " ",
                      v1::ExchangeReply::PushOutcome_Name(reply.push), " ", reply.next_step, " ", reply.message);
  }
  v1::ExchangeReply wire = ToWire(reply);
  std::vector<double> values;
  for (uint32_t chunk : reply.chunks) {
    v1::ChunkWeights* entry = wire.add_chunks();
    entry->set_chunk(chunk);
    entry->set_version(rules_.Find(chunk)->version());
    values.push_back(weights_[chunk].value);
  }
  if (!node.empty() && !node.mapped().snapshot && !reply.chunks.empty() && !assignment_.complete()) {
    oracle_->Violate(absl::StrCat("I1: weights of ", name(), " are handed out before all of them were assigned"));
  }
  oracle_->Answered(reply.token, wire, values);
  if (!node.empty()) node.mapped().send(wire);
}

}  // namespace rubato::simulation
