#include "tests/simulation/sim_evaluator.h"

#include <utility>

namespace rubato::simulation {
namespace {

constexpr absl::Duration kMeanInterval = absl::Milliseconds(500);

}  // namespace

SimEvaluator::SimEvaluator(World* world, ServerDirectory* servers)
    : world_(world), servers_(servers), task_(world->incarnations.New(v1::TaskId::EVALUATOR, 0)) {
  Evaluate();
}

void SimEvaluator::Evaluate() {
  const bool sync = world_->oracle.newest_plan().mode() == v1::SYNC;
  const int64_t ahead = static_cast<int64_t>(world_->random.Below(4));
  const int64_t at_step = sync ? world_->oracle.highest_begun() + ahead : -1;
  const auto& chunks = world_->job.chunks();
  for (ChunkGroup& group : GroupChunks({chunks.begin(), chunks.end()}, world_->random)) Ask(std::move(group), at_step);
  world_->queue.After(kMeanInterval * (2 * world_->random.Uniform()), [this] { Evaluate(); });
}

void SimEvaluator::Ask(ChunkGroup group, int64_t at_step) {
  world_->network.Send([this, group = std::move(group), job = world_->job.fingerprint(), at_step] {
    server::PartitionRequest request;
    request.kind = server::PartitionRequest::Kind::kSnapshot;
    request.task = task_;
    request.step = at_step;
    request.chunks = group.chunks;
    SimServer* server = servers_->Find(group.server);
    if (server != nullptr) server->OnRequest(job, group.partition, std::move(request), [](const v1::ExchangeReply&) {});
  });
}

}  // namespace rubato::simulation
