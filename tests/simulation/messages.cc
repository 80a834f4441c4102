#include "tests/simulation/messages.h"

#include <memory>
#include <utility>

namespace rubato::simulation {

server::PartitionRequest ToPartitionRequest(const worker::StepMachine::Request& request, const v1::TaskId& task,
                                            const std::vector<uint32_t>& chunks, uint64_t examples,
                                            server::PushHeader push) {
  const bool pulls = request.kind == worker::StepMachine::Kind::kPull;
  server::PartitionRequest wire;
  wire.kind = pulls ? server::PartitionRequest::Kind::kPull : server::PartitionRequest::Kind::kPushPull;
  wire.task = task;
  wire.generation = request.generation;
  wire.step = request.step;
  wire.chunks = chunks;
  if (pulls) return wire;
  push.task = task;
  push.generation = request.generation;
  push.step = request.step;
  const auto header = std::make_shared<const server::PushHeader>(std::move(push));
  wire.contributions.assign(chunks.size(), {.header = header, .gradient = nullptr, .examples = examples});
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
  const server::PushHeader& push = *contribution.header;
  record.set_worker(push.task.index());
  record.set_incarnation(push.task.incarnation());
  record.set_generation(push.generation);
  record.set_step(push.step);
  record.set_chunk(chunk);
  record.set_examples(contribution.examples);
  if (push.slice.shard() != 0) *record.mutable_slice() = push.slice;
  return record;
}

}  // namespace rubato::simulation
