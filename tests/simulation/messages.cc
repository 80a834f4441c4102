#include "tests/simulation/messages.h"

#include <cstddef>

namespace rubato::simulation {

server::PartitionRequest ToPartitionRequest(const worker::StepMachine::Request& request, const v1::TaskId& task,
                                            const std::vector<uint32_t>& chunks, uint64_t examples) {
  const bool pulls = request.kind == worker::StepMachine::Kind::kPull;
  server::PartitionRequest wire;
  wire.kind = pulls ? server::PartitionRequest::Kind::kPull : server::PartitionRequest::Kind::kPushPull;
  wire.task = task;
  wire.generation = request.generation;
  wire.step = request.step;
  wire.chunks = chunks;
  for (size_t i = 0; !pulls && i < chunks.size(); ++i) {
    server::Contribution& contribution = wire.contributions.emplace_back();
    contribution.task = task;
    contribution.generation = request.generation;
    contribution.step = request.step;
    contribution.examples = examples;
  }
  return wire;
}

v1::ExchangeReply ToWire(const server::PartitionReply& reply) {
  v1::ExchangeReply wire;
  wire.set_outcome(reply.outcome);
  wire.set_push(reply.push);
  wire.set_message(reply.message);
  wire.set_next_step(reply.next_step);
  if (reply.outcome == v1::ExchangeReply::MOVED) *wire.mutable_plan() = reply.plan;
  return wire;
}

v1::UpdateRecord ToRecord(uint32_t chunk, const server::Contribution& contribution) {
  v1::UpdateRecord record;
  record.set_worker(contribution.task.index());
  record.set_incarnation(contribution.task.incarnation());
  record.set_generation(contribution.generation);
  record.set_step(contribution.step);
  record.set_chunk(chunk);
  record.set_examples(contribution.examples);
  if (contribution.slice.shard() != 0) *record.mutable_slice() = contribution.slice;
  return record;
}

}  // namespace rubato::simulation
