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
          .servers = {options.job.servers().begin(), options.job.servers().end()},
          .reconnect_timeout = options.reconnect_timeout,
          .clock = options.clock,
          .log = options.log};
}

}  // namespace

InitialWeights::InitialWeights(Options options)
    : options_(std::move(options)),
      batching_(MakeBatches(options_.job, options_.tensors, options_.message_bytes)),
      servers_(static_cast<size_t>(options_.job.servers_size())),
      connections_(ConnectionOptions(options_), this) {
  for (size_t batch = 0; batch < batching_.batches.size(); ++batch) {
    servers_[batching_.batches[batch].server].batches.push_back(static_cast<int>(batch));
  }
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
      if (servers_[server].next == servers_[server].batches.size()) continue;
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
                     [](const Server& server) { return server.next == server.batches.size(); });
}

void InitialWeights::Fail(absl::Status status) {
  if (failed_.ok()) failed_ = std::move(status);
  changed_.NotifyAll();
}

grpc::ByteBuffer InitialWeights::MakeRequest(const ChunkBatch& batch, uint64_t request) const {
  v1::ExchangeRequest header;
  header.set_request_id(request);
  *header.mutable_task() = options_.task;
  header.set_job_fingerprint(options_.job.fingerprint());
  header.set_partition(batch.partition);
  std::vector<grpc::Slice> payload;
  for (uint32_t chunk : batch.chunks) {
    header.mutable_assign()->add_chunks(chunk);
    const v1::ChunkPlacement& placement = options_.job.chunks(static_cast<int>(chunk));
    const ByteSpan weights =
        BytesOf(options_.memory->Weights(static_cast<int>(placement.tensor()), placement.offset()), placement.length());
    payload.emplace_back(weights.data(), weights.size(), grpc::Slice::STATIC_SLICE);
  }
  return EncodeRequest(header, std::move(payload));
}

void InitialWeights::SendNext(int connection) {
  Server& server = servers_[static_cast<size_t>(connection)];
  if (server.next == server.batches.size()) return;
  server.request = ++last_request_;
  const ChunkBatch& batch = batching_.batches[static_cast<size_t>(server.batches[server.next])];
  connections_.Send(connection, 0, [&](const SharedMemoryLink*) { return MakeRequest(batch, server.request); });
}

void InitialWeights::OnConnected(int connection) {
  MutexLock lock(mu_);
  if (failed_.ok()) SendNext(connection);
}

void InitialWeights::OnMessage(int connection, grpc::ByteBuffer message, const SharedRegion*) {
  const absl::StatusOr<DecodedReply> reply = DecodeReply(message);
  MutexLock lock(mu_);
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
  changed_.NotifyAll();
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
