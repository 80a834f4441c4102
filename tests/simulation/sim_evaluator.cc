#include "tests/simulation/sim_evaluator.h"

#include <utility>
#include <vector>

#include "tests/simulation/sim_rows.h"

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
  std::vector<ChunkGroup> groups = GroupChunks({chunks.begin(), chunks.end()}, world_->random);
  SimRows rows(world_, world_->job, groups);
  ++evaluations_;
  for (size_t i = 0; i < groups.size(); ++i) {
    std::optional<RowMessage> asked = rows.Message(i, {task_.incarnation(), evaluations_});
    const int64_t step = asked.has_value() ? -1 : at_step;
    Ask(std::move(groups[i]), std::move(asked), step);
  }
  world_->queue.After(kMeanInterval * (2 * world_->random.Uniform()), [this] { Evaluate(); });
}

void SimEvaluator::Ask(ChunkGroup group, std::optional<RowMessage> rows, int64_t at_step) {
  const uint64_t job = world_->job.fingerprint();
  world_->network.Send([this, group = std::move(group), rows = std::move(rows), job, at_step] {
    server::PartitionRequest request;
    request.kind = server::PartitionRequest::Kind::kSnapshot;
    request.task = task_;
    request.step = at_step;
    request.chunks = group.chunks;
    SimServer* server = servers_->Find(group.server);
    if (server == nullptr) return;
    server->OnRequest(job, group.partition, std::move(request), rows, [](const v1::ExchangeReply&) {});
  });
}

}  // namespace rubato::simulation
