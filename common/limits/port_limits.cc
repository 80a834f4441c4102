#include "common/limits/port_limits.h"

#include <grpcpp/resource_quota.h>

#include <algorithm>
#include <climits>
#include <cstdint>

#include "common/model_spec.h"
#include "common/shape.h"
#include "proto/job_config.pb.h"

namespace rubato {
namespace {

constexpr size_t kMiB = size_t{1} << 20;
// Beside payload: a message's header, and a manifest of a part.
constexpr size_t kHeaderRoom = kMiB;
// Of a chunk in a message's header: its number, its length, its codec.
constexpr size_t kChunkHeaderBytes = 64;
// The greatest message of rows: how many a batch has is the data's matter, and not in the config.
constexpr size_t kRowMessageBytes = (size_t{256} << 20) + kMiB;
// A copy of a part travels in pieces of so much, the first of them with its manifest: of each chunk where it is, and
// how far each worker has come.
constexpr size_t kPartPieceBytes = size_t{16} << 20;
constexpr size_t kChunkRecordBytes = 256;
constexpr size_t kWatermarkBytes = 32;
// Weights, and as much for each of an optimizer's slots, of which none has more than three: what a client may ask for,
// or assign, at a time.
constexpr size_t kCopiesOfModel = 4;
// Top-k with everything kept has an index beside each value.
constexpr size_t kCodecGrowth = 2;

struct ModelSize {
  size_t bytes = 0;
  size_t chunks = 0;
};

ModelSize SizeOf(const ModelSpec& model, size_t chunk_bytes) {
  ModelSize size;
  for (const TensorSpec& tensor : model.tensors) {
    const size_t bytes = static_cast<size_t>(NumElements(tensor.shape)) * sizeof(float);
    size.bytes += bytes;
    size.chunks += (bytes + chunk_bytes - 1) / chunk_bytes;
  }
  for (const TableSpec& table : model.tables) size.chunks += table.config.shards();
  return size;
}

int Milliseconds(absl::Duration duration) {
  return static_cast<int>(std::clamp<int64_t>(absl::ToInt64Milliseconds(duration), 1, INT_MAX));
}

}  // namespace

PortLimits CoordinatorLimits() { return PortLimits(); }

PortLimits ServerLimits(const v1::JobConfig& config, const ModelSpec& model) {
  const v1::ClusterConfig& cluster = config.cluster();
  const size_t chunk_bytes = std::max<size_t>(cluster.chunk_bytes(), 64);
  const ModelSize size = SizeOf(model, chunk_bytes);
  const size_t payload = kCodecGrowth * std::max<size_t>(cluster.message_bytes(), chunk_bytes);
  PortLimits limits;
  limits.message_bytes = payload + kHeaderRoom + kChunkHeaderBytes * size.chunks;
  if (!model.tables.empty()) limits.message_bytes = std::max(limits.message_bytes, kRowMessageBytes);
  if (config.checkpoint().copies() > 1) {
    const size_t manifest = size.chunks * (kChunkRecordBytes + kWatermarkBytes * cluster.workers());
    limits.message_bytes = std::max(limits.message_bytes, kPartPieceBytes + kHeaderRoom + manifest);
  }
  limits.message_bytes = std::min<size_t>(limits.message_bytes, INT_MAX);
  // Those that a task keeps, twice because one that lost them opens others before the server has noticed, and some for
  // rows and snapshots.
  limits.streams_per_task = 2 * std::max<size_t>(cluster.connections_per_server(), 1) + 16;
  // On one machine the whole job; and whoever joins it later.
  const size_t tasks = 2 * (size_t{cluster.workers()} + cluster.evaluators() + cluster.servers()) + 32;
  limits.streams_per_host = tasks * limits.streams_per_task;
  limits.calls_per_connection = static_cast<int>(2 * limits.streams_per_task + 64);
  const size_t rows = model.tables.empty() ? 0 : 4 * kRowMessageBytes;
  limits.unanswered_requests = 4 * size.chunks + 1024;
  limits.unanswered_bytes = kCopiesOfModel * kCodecGrowth * size.bytes + 2 * limits.message_bytes + rows;
  limits.queued_bytes = kCopiesOfModel * size.bytes + 64 * kMiB + rows;
  // What all workers have pushed in a step that is not complete lies where gRPC received it.
  limits.memory_bytes = std::max<size_t>(1024 * kMiB, 2 * tasks * (kCodecGrowth * size.bytes + limits.message_bytes));
  return limits;
}

PortLimits ProbeLimits() {
  PortLimits limits;
  limits.message_bytes = size_t{64} << 10;
  limits.calls_per_connection = 16;
  limits.memory_bytes = 64 * kMiB;
  limits.threads = 8;
  limits.idle_timeout = absl::Minutes(1);
  return limits;
}

void ApplyLimits(const PortLimits& limits, const std::string& name, grpc::ServerBuilder* builder) {
  builder->SetMaxReceiveMessageSize(static_cast<int>(limits.message_bytes));
  builder->AddChannelArgument(GRPC_ARG_MAX_CONCURRENT_STREAMS, limits.calls_per_connection);
  builder->AddChannelArgument(GRPC_ARG_MAX_METADATA_SIZE, limits.header_bytes);
  builder->AddChannelArgument(GRPC_ARG_SERVER_HANDSHAKE_TIMEOUT_MS, Milliseconds(limits.handshake_timeout));
  builder->AddChannelArgument(GRPC_ARG_MAX_CONNECTION_IDLE_MS, Milliseconds(limits.idle_timeout));
  // Pings tell that a peer is gone also while it has no call.
  builder->AddChannelArgument(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1);
  // The bound on a message holds for what is received, not for what it would inflate to.
  builder->SetCompressionAlgorithmSupportStatus(GRPC_COMPRESS_DEFLATE, false);
  builder->SetCompressionAlgorithmSupportStatus(GRPC_COMPRESS_GZIP, false);
  grpc::ResourceQuota quota(name);
  quota.Resize(limits.memory_bytes);
  quota.SetMaxThreads(limits.threads);
  builder->SetResourceQuota(quota);
}

}  // namespace rubato
