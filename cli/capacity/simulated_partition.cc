#include "cli/capacity/simulated_partition.h"

#include <algorithm>
#include <memory>
#include <utility>

namespace rubato::capacity {
namespace {

// Events beside the slots of requests that have come: the thread is free, and an answer leaves.
constexpr uint64_t kFree = ~uint64_t{0};
constexpr uint64_t kLeaves = uint64_t{1} << 63;

// Rules want a clock for timeouts alone, and there are none: who waits long would only ask again.
constexpr absl::Time kNow = absl::UnixEpoch();

using worker::StepMachine;

}  // namespace

SimulatedPartition::SimulatedPartition(SimulatedCluster* cluster, uint32_t server, const std::vector<uint32_t>& chunks)
    : cluster_(*cluster),
      server_(server),
      first_chunk_(chunks.front()),
      rules_(chunks, absl::InfiniteDuration(), this) {
  rules_.Commit(cluster_.layout.plan, kNow);
}

void SimulatedPartition::OnEvent(uint64_t what) {
  if (what == kFree) {
    at_work_ = false;
  } else if ((what & kLeaves) != 0) {
    return SendAnswer(what & ~kLeaves);
  } else {
    cluster_.exchanges[what].arrived = cluster_.queue.now();
    waiting_.push_back(what);
  }
  if (!at_work_ && !waiting_.empty()) Begin();
}

server::PartitionRequest SimulatedPartition::RequestOf(uint64_t slot) const {
  const StepMachine::Request& asked = cluster_.exchanges[slot].request;
  const uint32_t worker = cluster_.WorkerOf(slot);
  const JobLayout& layout = cluster_.layout;
  server::PartitionRequest request;
  request.token = slot + 1;
  request.kind = asked.kind == StepMachine::Kind::kPull ? server::PartitionRequest::Kind::kPull
                                                        : server::PartitionRequest::Kind::kPushPull;
  request.task = layout.plan.members(static_cast<int>(worker));
  request.generation = asked.generation;
  request.step = asked.step;
  request.chunks = layout.batching.batches[static_cast<size_t>(asked.batch)].chunks;
  if (asked.kind == StepMachine::Kind::kPull) return request;
  auto header = std::make_shared<server::PushHeader>();
  header->task = request.task;
  header->generation = asked.generation;
  header->step = asked.step;
  request.contributions.reserve(request.chunks.size());
  for (uint32_t chunk : request.chunks) {
    request.contributions.push_back(
        {.header = header, .gradient = nullptr, .examples = 1, .base_version = cluster_.VersionAt(worker, chunk)});
  }
  return request;
}

void SimulatedPartition::Begin() {
  at_work_ = true;
  slot_ = waiting_.front();
  waiting_.pop_front();
  Exchange& exchange = cluster_.exchanges[slot_];
  exchange.taken = cluster_.queue.now();
  server::PartitionRequest request = RequestOf(slot_);
  const auto chunks = static_cast<int64_t>(request.chunks.size());
  const int64_t bytes = cluster_.layout.batching.batches[static_cast<size_t>(exchange.request.batch)].bytes;
  const int64_t pushed = request.contributions.empty() ? 0 : bytes;
  const ServerCosts& costs = cluster_.costs.server;
  spent_ = costs.receive.Of(chunks, pushed) + costs.rules.Of(chunks, pushed);
  answered_.clear();
  rules_.OnRequest(std::move(request), kNow);
  busy_ += spent_;
  const ServiceQueue::Service work = cluster_.Work(spent_);
  for (const Answered& answered : answered_) {
    cluster_.queue.At(work.begin + answered.after, this, answered.slot | kLeaves);
  }
  cluster_.queue.At(work.end, this, kFree);
}

void SimulatedPartition::Apply(const server::ChunkRules::Update& update) {
  const auto contributions = static_cast<int64_t>(update.contributions.size());
  spent_ += cluster_.costs.server.update.Of(cluster_.layout.chunk_bytes[update.chunk], contributions);
  if (update.chunk != first_chunk_) return;
  ++updates_;
  contributions_ += contributions;
}

void SimulatedPartition::Answer(const server::PartitionReply& reply) {
  const uint64_t slot = reply.token - 1;
  Exchange& exchange = cluster_.exchanges[slot];
  const ServerCosts& costs = cluster_.costs.server;
  const auto chunks = static_cast<int64_t>(reply.chunks.size());
  if (slot != slot_) spent_ += costs.wake.Of(chunks, 0);
  exchange.outcome = reply.outcome;
  exchange.next_step = reply.next_step;
  exchange.released = cluster_.queue.now();
  int64_t bytes = 0;
  for (size_t i = 0; i < reply.chunks.size(); ++i) {
    const uint32_t chunk = reply.chunks[i];
    bytes += cluster_.layout.chunk_bytes[chunk];
    uint32_t& version = cluster_.VersionAt(cluster_.WorkerOf(slot), chunk);
    if (i < reply.applied_to.size() && reply.applied_to[i] >= 0) {
      exchange.staleness = std::max(exchange.staleness, reply.applied_to[i] - int64_t{version});
    }
    version = static_cast<uint32_t>(rules_.Find(chunk)->version());
  }
  spent_ += costs.answer.Of(chunks, bytes);
  answered_.push_back({slot, spent_});
}

void SimulatedPartition::SendAnswer(uint64_t slot) {
  Exchange& exchange = cluster_.exchanges[slot];
  exchange.left = cluster_.queue.now();
  const uint32_t worker = cluster_.WorkerOf(slot);
  const bool carries = exchange.outcome == v1::ExchangeReply::OK;
  cluster_.network.Send(
      {.from = &cluster_.servers[server_],
       .to = &cluster_.workers[worker],
       .bytes = carries ? cluster_.layout.pulled_bytes[static_cast<size_t>(exchange.request.batch)] : 0,
       .target = cluster_.worker_targets[worker],
       .what = slot,
       .queued = &exchange.network_queue},
      slot);
}

}  // namespace rubato::capacity
