#include "cli/replay/replay_parameters.h"

#include <cstring>
#include <utility>

#include "common/byte_span.h"
#include "common/status.h"
#include "common/table_keys.h"
#include "common/wire/exchange_codec.h"
#include "kernels/codec/codec.h"
#include "worker/ps_client/arrived_rows.h"
#include "worker/ps_client/batching.h"
#include "worker/ps_client/table_payload.h"

namespace rubato {

ReplayParameters::ReplayParameters(const Options& options) : options_(options), chunks_(options.model->tensors.size()) {
  std::vector<std::vector<uint32_t>> shards(options_.model->tables.size());
  for (int index = 0; index < options_.job->chunks_size(); ++index) {
    const v1::ChunkPlacement& chunk = options_.job->chunks(index);
    std::vector<uint32_t>& chunks = IsShard(chunk) ? shards[chunk.tensor() - chunks_.size()] : chunks_[chunk.tensor()];
    chunks.push_back(static_cast<uint32_t>(index));
  }
  worker::Batching one_message;
  for (const std::vector<uint32_t>& chunks : shards) one_message.batch_of_shard.emplace_back(chunks.size(), 0);
  std::vector<worker::TableParts> parts = worker::PartsOfTables(options_.model->tables, options_.seed, one_message);
  for (size_t table = 0; table < shards.size(); ++table) {
    tables_.push_back({.parts = std::move(parts[table]), .chunks = std::move(shards[table]), .rows = {}});
  }
}

worker::Parameters::Step ReplayParameters::next_step() {
  const bool done = next_ == steps().size();
  const RecordedRun::Step& step = done ? steps().back() : steps()[next_];
  return {step.generation, step.step + (done ? 1 : 0), options_.run->plans.at(step.generation)};
}

absl::StatusOr<bool> ReplayParameters::AwaitTensor(int tensor) {
  RUBATO_RETURN_IF_ERROR(failed_);
  for (uint32_t chunk : chunks_[static_cast<size_t>(tensor)]) {
    RUBATO_ASSIGN_OR_RETURN(const server::ChunkStore::Wire wire,
                            options_.servers->Await(options_.member, next_, chunk));
    const v1::ChunkPlacement& place = options_.job->chunks(static_cast<int>(chunk));
    float* const weights = options_.memory->Weights(tensor, place.offset());
    if (wire.codec == v1::NONE) {
      std::memcpy(weights, wire.buffer->data(), static_cast<size_t>(wire.bytes));
    } else {
      Decode(wire.codec, reinterpret_cast<const uint8_t*>(wire.buffer->data()), wire.bytes, place.length(), weights);
    }
  }
  return true;
}

absl::StatusOr<bool> ReplayParameters::BeginStep(Step* step) {
  RUBATO_RETURN_IF_ERROR(failed_);
  // Also of a step that needs none.
  for (int table = 0; table < static_cast<int>(tables_.size()); ++table) {
    if (tables_[static_cast<size_t>(table)].is_open) RUBATO_RETURN_IF_ERROR(AwaitRows(table).status());
  }
  *step = next_step();
  compress_ = !step->plan.uncompressed();
  ++next_;
  return true;
}

void ReplayParameters::PushTensor(int tensor, const Pushed& pushed) {
  const size_t step = next_ - 1;
  for (uint32_t chunk : chunks_[static_cast<size_t>(tensor)]) {
    const v1::ChunkPlacement& place = options_.job->chunks(static_cast<int>(chunk));
    ReplayServers::Pushed gradient = {.examples = pushed.examples, .epoch = pushed.epoch};
    if (pushed.examples > 0) {
      float* const values = options_.memory->Gradient(tensor, place.offset());
      options_.encoder->EncodeChunk(chunk, values, steps()[step].step, compress_);
      gradient.codec = options_.encoder->codec(chunk);
      gradient.bytes = gradient.codec == v1::NONE ? BytesOf(values, place.length()) : options_.encoder->Encoded(chunk);
    }
    const absl::Status status = options_.servers->Push(options_.member, step, chunk, gradient);
    if (failed_.ok()) failed_ = status;
  }
}

absl::StatusOr<std::shared_ptr<const server::TableMessage>> ReplayParameters::MessageOf(
    int number, const std::vector<uint64_t>& keys, const std::vector<float>* gradients) const {
  const Table& table = tables_[static_cast<size_t>(number)];
  const worker::KeyPart part = table.parts.Split(keys).front();
  const size_t bytes = PayloadBytes(table.parts, part, gradients != nullptr);
  const auto payload = std::make_shared<uint64_t[]>((bytes + sizeof(uint64_t) - 1) / sizeof(uint64_t));
  WritePayload(table.parts, part, keys.data(), gradients == nullptr ? nullptr : gradients->data(), payload.get());
  v1::TableKeys header;
  header.set_table(static_cast<uint32_t>(number));
  if (gradients != nullptr) {
    header.set_pushed(part.count);
  } else {
    header.set_asked(part.count);
  }
  DecodedRequest request;
  if (bytes > 0) request.payload = PayloadView({SliceOf(payload, payload.get(), bytes)}, 0, bytes);
  return server::ReadTable(header, gradients != nullptr, table.chunks, request, /*region=*/nullptr,
                           {.model = options_.model, .seed = options_.seed}, *options_.job);
}

void ReplayParameters::AskRows(int number, const std::vector<uint64_t>& keys) {
  Table& table = tables_[static_cast<size_t>(number)];
  absl::StatusOr<std::shared_ptr<const server::TableMessage>> message = MessageOf(number, keys, /*gradients=*/nullptr);
  if (!message.ok()) {
    if (failed_.ok()) failed_ = message.status();
    return;
  }
  table.asked = keys.size();
  table.is_open = true;
  options_.servers->AskRows(options_.member, next_, *std::move(message));
}

void ReplayParameters::AskNothing() {
  for (int table = 0; table < static_cast<int>(tables_.size()); ++table) AskRows(table, {});
}

absl::StatusOr<bool> ReplayParameters::AwaitRows(int number) {
  RUBATO_RETURN_IF_ERROR(failed_);
  Table& table = tables_[static_cast<size_t>(number)];
  RUBATO_ASSIGN_OR_RETURN(const auto by_shard, options_.servers->AwaitRows(options_.member, next_, number));
  table.is_open = false;
  table.rows.resize(table.asked * static_cast<size_t>(table.parts.dimension));
  float* to = table.rows.data();
  for (const std::vector<uint8_t>& rows : by_shard) {
    const size_t count = rows.size() / worker::AnsweredRowBytes(table.parts);
    if (count == 0) continue;
    const worker::ArrivedRows arrived = {.shared = rows.data(), .payload = {}};
    arrived.Decode(table.parts, 0, count, to);
    to += count * static_cast<size_t>(table.parts.dimension);
  }
  return true;
}

void ReplayParameters::PushRows(int number, const std::vector<uint64_t>& keys, const std::vector<float>& gradients,
                                const Pushed& pushed) {
  std::shared_ptr<const server::TableMessage> message;
  absl::Status status;
  if (pushed.examples > 0) {
    absl::StatusOr<std::shared_ptr<const server::TableMessage>> read = MessageOf(number, keys, &gradients);
    status = read.status();
    if (read.ok()) message = *std::move(read);
  }
  const std::vector<uint32_t>& chunks = tables_[static_cast<size_t>(number)].chunks;
  for (size_t shard = 0; shard < chunks.size() && status.ok(); ++shard) {
    ReplayServers::Pushed gradient = {.examples = pushed.examples, .epoch = pushed.epoch};
    if (message != nullptr) gradient.rows = {message, &message->by_chunk[shard]};
    status = options_.servers->Push(options_.member, next_ - 1, chunks[shard], gradient);
  }
  if (failed_.ok()) failed_ = status;
}

absl::Status ReplayParameters::AwaitAcknowledgements() {
  RUBATO_RETURN_IF_ERROR(failed_);
  return options_.servers->AwaitApplied(options_.member);
}

}  // namespace rubato
