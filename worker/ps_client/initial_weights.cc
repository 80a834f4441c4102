#include "worker/ps_client/initial_weights.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/byte_span.h"
#include "common/proto_enum.h"
#include "common/wire/exchange_codec.h"

namespace rubato::worker {
namespace {

// How soon a message is sent again that a server could not take yet.
constexpr absl::Duration kRepeat = absl::Milliseconds(100);

ServerConnections::Options ConnectionOptions(const InitialWeights::Options& options) {
  return {.task = options.task,
          .security = options.security,
          .servers = {options.job.servers().begin(), options.job.servers().end()},
          .reconnect_timeout = options.reconnect_timeout,
          .clock = options.clock,
          .log = options.log};
}

}  // namespace

InitialState InitialState::Make(const ModelSpec& spec, size_t slots, float value) {
  InitialState state{.slots = {}, .updates = std::vector<int64_t>(spec.tensors.size(), 0)};
  state.slots.resize(slots);
  for (std::vector<std::vector<float>>& tensors : state.slots) {
    for (const TensorSpec& tensor : spec.tensors) {
      tensors.emplace_back(static_cast<size_t>(NumElements(tensor.shape)), value);
    }
  }
  return state;
}

InitialWeights::InitialWeights(Options options)
    : options_(std::move(options)),
      batching_(MakeBatches(options_.job, options_.tensors, options_.message_bytes)),
      servers_(static_cast<size_t>(options_.job.servers_size())),
      connections_(ConnectionOptions(options_), this) {
  // The weights last: with them a chunk has all that it begins with.
  const size_t slots = options_.state == nullptr ? 0 : options_.state->slots.size();
  for (size_t batch = 0; batch < batching_.batches.size(); ++batch) {
    // Rows of tables begin with what the config says.
    if (batching_.batches[batch].table >= 0) break;
    std::vector<Message>& messages = servers_[batching_.batches[batch].server].messages;
    for (size_t slot = slots; slot > 0; --slot) messages.push_back({static_cast<int>(batch), slot});
    messages.push_back({static_cast<int>(batch), 0});
  }
}

const float* InitialWeights::ValuesOf(const v1::ChunkPlacement& chunk, size_t slot) const {
  if (slot == 0) return options_.memory->Weights(static_cast<int>(chunk.tensor()), chunk.offset());
  return options_.state->slots[slot - 1][chunk.tensor()].data() + chunk.offset();
}

absl::Status InitialWeights::Assign() {
  connections_.Start();
  MutexLock lock(mu_);
  const absl::Time begin = options_.clock->Now();
  while (failed_.ok() && !Done()) {
    changed_.WaitFor(mu_, kRepeat);
    for (int connection : std::exchange(to_repeat_, {})) SendNext(connection);
    if (options_.clock->Now() - begin <= options_.wait_timeout) continue;
    for (size_t server = 0; server < servers_.size(); ++server) {
      if (servers_[server].next == servers_[server].messages.size()) continue;
      Fail(absl::DeadlineExceededError(absl::StrCat(
          "initial weights: ", connections_.name(static_cast<int>(server)),
          " has not taken them within cluster.wait_timeout_seconds = ", absl::ToDoubleSeconds(options_.wait_timeout))));
    }
  }
  return failed_;
}

void InitialWeights::Cancel(absl::Status status) {
  MutexLock lock(mu_);
  Fail(std::move(status));
}

bool InitialWeights::Done() const {
  return std::all_of(servers_.begin(), servers_.end(),
                     [](const Server& server) { return server.next == server.messages.size(); });
}

void InitialWeights::Fail(absl::Status status) {
  if (failed_.ok()) failed_ = std::move(status);
  changed_.NotifyAll();
}

grpc::ByteBuffer InitialWeights::MakeRequest(const Message& message, uint64_t request) const {
  const ChunkBatch& batch = batching_.batches[static_cast<size_t>(message.batch)];
  const bool with_updates = message.slot == 0 && options_.state != nullptr && !options_.state->empty();
  v1::ExchangeRequest header;
  header.set_request_id(request);
  *header.mutable_task() = options_.task;
  header.set_job_fingerprint(options_.job.fingerprint());
  header.set_partition(batch.partition);
  header.mutable_assign()->set_slot(static_cast<uint32_t>(message.slot));
  std::vector<grpc::Slice> payload;
  for (uint32_t chunk : batch.chunks) {
    header.mutable_assign()->add_chunks(chunk);
    const v1::ChunkPlacement& placement = options_.job.chunks(static_cast<int>(chunk));
    if (with_updates) header.mutable_assign()->add_updates(options_.state->updates[placement.tensor()]);
    const ByteSpan values = BytesOf(ValuesOf(placement, message.slot), placement.length());
    payload.emplace_back(values.data(), values.size(), grpc::Slice::STATIC_SLICE);
  }
  return EncodeRequest(header, std::move(payload));
}

void InitialWeights::SendNext(int connection) {
  Server& server = servers_[static_cast<size_t>(connection)];
  if (server.next == server.messages.size()) return;
  server.request = ++last_request_;
  const Message& message = server.messages[server.next];
  connections_.Send(connection, 0, [&](const SharedMemoryLink*) { return MakeRequest(message, server.request); });
}

void InitialWeights::OnConnected(int connection) {
  MutexLock lock(mu_);
  if (failed_.ok()) SendNext(connection);
}

void InitialWeights::OnMessages(int connection, std::vector<grpc::ByteBuffer> messages,
                                std::shared_ptr<const SharedMemoryLink>) {
  MutexLock lock(mu_);
  for (const grpc::ByteBuffer& message : messages) TakeReply(connection, DecodeReply(message));
  changed_.NotifyAll();
}

void InitialWeights::TakeReply(int connection, const absl::StatusOr<DecodedReply>& reply) {
  Server& server = servers_[static_cast<size_t>(connection)];
  if (!reply.ok() || !failed_.ok() || reply->header.request_id() != server.request) return;
  server.request = 0;
  switch (reply->header.outcome()) {
    case v1::ExchangeReply::OK:
      ++server.next;
      SendNext(connection);
      break;
    case v1::ExchangeReply::REFUSED:
    case v1::ExchangeReply::NOT_A_MEMBER:
      Fail(absl::FailedPreconditionError(
          absl::StrCat("initial weights: ", connections_.name(connection), ": ", reply->header.message())));
      break;
    case v1::ExchangeReply::WAITING:
    case v1::ExchangeReply::MOVED:
    case v1::ExchangeReply::LATE:
    case v1::ExchangeReply::OUTCOME_UNSPECIFIED:
      // Not yet, or something of a newer server.
      RUBATO_NO_VALUE_OF(v1::ExchangeReply_Outcome_ExchangeReply_Outcome) : to_repeat_.push_back(connection);
      break;
  }
}

void InitialWeights::OnUnreachable(absl::Status status) {
  MutexLock lock(mu_);
  Fail(std::move(status));
}

std::vector<bool> InitialWeights::AwaitsAnswer() {
  MutexLock lock(mu_);
  std::vector<bool> awaits;
  for (const Server& server : servers_) awaits.push_back(server.request != 0);
  return awaits;
}

}  // namespace rubato::worker
