#include "tests/simulation/sim_rows.h"

#include <algorithm>
#include <utility>

#include "common/table_keys.h"
#include "tests/simulation/sim_push.h"
#include "worker/data/table_keys_of_batch.h"

namespace rubato::simulation {
namespace {

worker::TableKeysOfBatch Merge(const World& world, std::vector<uint64_t> keys) {
  worker::Batch batch;
  batch.examples = static_cast<int64_t>(keys.size()) / kKeysPerExample;
  batch.keys = std::move(keys);
  return worker::KeysOfBatch(world.model, worker::HashesOfTables(world.model, world.config.seed()), batch)[0];
}

}  // namespace

SimRows::SimRows(const World* world, const v1::JobDescription& job, const std::vector<ChunkGroup>& groups)
    : world_(world),
      parts_{.hash = HashOfTable(world->config.seed(), 0),
             .shards = world->scenario.shards,
             .dimension = kRowDimension,
             .batches = {},
             .part_of_shard = std::vector<size_t>(world->scenario.shards)} {
  for (size_t group = 0; group < groups.size(); ++group) {
    for (uint32_t chunk : groups[group].chunks) {
      const v1::ChunkPlacement& placement = job.chunks(static_cast<int>(chunk));
      if (!IsShard(placement)) break;
      if (chunk == groups[group].chunks.front()) parts_.batches.push_back(static_cast<int>(group));
      parts_.part_of_shard[static_cast<size_t>(placement.offset())] = parts_.batches.size() - 1;
    }
  }
}

SimRows::Dealt SimRows::DealRead(const PushId& reader) const {
  const worker::TableKeysOfBatch merged = Merge(*world_, KeysRead(reader));
  return {.of = reader, .keys = merged.keys, .parts = parts_.Split(merged.keys)};
}

SimRows::Dealt SimRows::DealPush(const PushId& push, int64_t examples) const {
  const TableSpec& table = world_->model.tables[0];
  const int64_t inputs = NumElements(world_->model.input);
  std::vector<uint64_t> keys;
  std::vector<float> gradients(static_cast<size_t>(examples * inputs));
  for (int64_t example = 0; example < examples; ++example) {
    float* at = gradients.data() + example * inputs + table.input_offset;
    for (int64_t place = 0; place < kKeysPerExample; ++place) {
      keys.push_back(KeyOf(push, example, place));
      for (int64_t i = 0; i < kRowDimension; ++i) *at++ = RowGradientOf(push, example, place, i);
    }
  }
  const worker::TableKeysOfBatch merged = Merge(*world_, std::move(keys));
  return {.of = push,
          .examples = examples,
          .keys = merged.keys,
          .parts = parts_.Split(merged.keys),
          .gradients = worker::SumRowGradients(table, merged, gradients.data(), examples, inputs)};
}

std::optional<RowMessage> SimRows::Message(size_t group, const PushId& reader, const PushId& push, int64_t examples) {
  const auto batch = std::find(parts_.batches.begin(), parts_.batches.end(), static_cast<int>(group));
  if (batch == parts_.batches.end()) return std::nullopt;
  const auto part = static_cast<size_t>(batch - parts_.batches.begin());
  RowMessage message;
  const auto add = [&message](const worker::KeyPart& part_of, const void* all, size_t each) {
    const size_t at = message.payload.size();
    message.payload.resize(at + part_of.count * each);
    part_of.Gather(all, each, message.payload.data() + at);
  };
  if (examples > 0) {
    if (!pushed_.has_value() || pushed_->of != push || pushed_->examples != examples) {
      pushed_ = DealPush(push, examples);
    }
    const worker::KeyPart& pushed = pushed_->parts[part];
    message.keys.set_pushed(pushed.count);
    add(pushed, pushed_->keys.data(), sizeof(uint64_t));
    add(pushed, pushed_->gradients.data(), kRowDimension * sizeof(float));
  }
  if (!read_.has_value() || read_->of != reader) read_ = DealRead(reader);
  const worker::KeyPart& asked = read_->parts[part];
  message.keys.set_asked(asked.count);
  add(asked, read_->keys.data(), sizeof(uint64_t));
  return message;
}

}  // namespace rubato::simulation
