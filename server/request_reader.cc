#include "server/request_reader.h"

#include <cmath>
#include <memory>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/float_buffer.h"
#include "common/task.h"
#include "kernels/optimizer/all_finite.h"

namespace rubato::server {
namespace {

using Kind = PartitionRequest::Kind;

absl::Status Bad(absl::string_view field, absl::string_view rest) {
  return absl::InvalidArgumentError(absl::StrCat(field, ": ", rest));
}

absl::Status CheckChunk(const v1::JobDescription& job, uint32_t server, uint32_t partition, uint32_t chunk,
                        const std::string& field) {
  if (chunk >= static_cast<uint32_t>(job.chunks_size())) {
    return Bad(field, absl::StrCat("unknown chunk ", chunk, "; the job has ", job.chunks_size()));
  }
  const v1::ChunkPlacement& placement = job.chunks(chunk);
  if (placement.server() != server || placement.partition() != partition) {
    return Bad(field, absl::StrCat("chunk ", chunk, " is in partition ", placement.partition(), " of server ",
                                   placement.server(), ", not in partition ", partition, " of server ", server));
  }
  return absl::OkStatus();
}

absl::Status CheckSender(const v1::ExchangeRequest& header, const v1::JobDescription& job) {
  if (header.job_fingerprint() != job.fingerprint()) {
    return Bad("job_fingerprint", absl::StrCat(absl::Hex(header.job_fingerprint()),
                                               " is another job; this server is in ", absl::Hex(job.fingerprint())));
  }
  if (header.task().incarnation() == 0) return Bad("task.incarnation", "0; it is never 0");
  const v1::TaskId::Role role = header.task().role();
  if (role == v1::TaskId::WORKER) return absl::OkStatus();
  if (role == v1::TaskId::EVALUATOR && header.has_snapshot()) return absl::OkStatus();
  return Bad("task.role", absl::StrCat(TaskName(header.task()),
                                       " may not send this; allowed: workers, and evaluators "
                                       "with a snapshot"));
}

absl::Status ReadPushPull(const v1::ExchangeRequest& header, uint64_t payload_bytes, const v1::JobDescription& job,
                          uint32_t server, PartitionRequest* request) {
  const v1::PushPull& push = header.push_pull();
  if (!std::isfinite(push.epoch()) || push.epoch() < 0) {
    return Bad("push_pull.epoch", absl::StrCat(push.epoch(), "; allowed: 0 or more"));
  }
  uint64_t expected = 0;
  for (int i = 0; i < push.chunks_size(); ++i) {
    const v1::ChunkUpdate& update = push.chunks(i);
    const std::string field = absl::StrCat("push_pull.chunks[", i, "]");
    if (absl::Status status = CheckChunk(job, server, header.partition(), update.chunk(), field); !status.ok()) {
      return status;
    }
    const int64_t length = job.chunks(update.chunk()).length();
    if (update.length() != length) {
      return Bad(absl::StrCat(field, ".length"),
                 absl::StrCat(update.length(), "; chunk ", update.chunk(), " has ", length, " elements"));
    }
    if (update.base_version() < 0) return Bad(absl::StrCat(field, ".base_version"), "negative");
    expected += length * sizeof(float);
    request->chunks.push_back(update.chunk());
    Contribution contribution;
    contribution.task = header.task();
    contribution.generation = header.generation();
    contribution.step = push.step();
    contribution.examples = push.examples();
    contribution.epoch = push.epoch();
    contribution.base_version = update.base_version();
    request->contributions.push_back(std::move(contribution));
  }
  if (push.examples() == 0) expected = 0;
  if (payload_bytes != expected) {
    return Bad("payload", absl::StrCat(payload_bytes, " bytes; push_pull.chunks declare ", expected));
  }
  return absl::OkStatus();
}

template <typename Chunks>
absl::Status ReadChunks(const Chunks& chunks, const char* field, const v1::ExchangeRequest& header,
                        const v1::JobDescription& job, uint32_t server, PartitionRequest* request) {
  for (int i = 0; i < chunks.size(); ++i) {
    absl::Status status =
        CheckChunk(job, server, header.partition(), chunks.Get(i), absl::StrCat(field, ".chunks[", i, "]"));
    if (!status.ok()) return status;
    request->chunks.push_back(chunks.Get(i));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<PartitionRequest> ReadRequest(const v1::ExchangeRequest& header, uint64_t payload_bytes,
                                             const v1::JobDescription& job, uint32_t server) {
  if (absl::Status status = CheckSender(header, job); !status.ok()) return status;
  PartitionRequest request;
  request.task = header.task();
  request.generation = header.generation();
  absl::Status status;
  switch (header.operation_case()) {
    case v1::ExchangeRequest::kPushPull:
      request.kind = Kind::kPushPull;
      request.step = header.push_pull().step();
      status = ReadPushPull(header, payload_bytes, job, server, &request);
      break;
    case v1::ExchangeRequest::kPull:
      request.kind = Kind::kPull;
      request.step = header.pull().step();
      status = ReadChunks(header.pull().chunks(), "pull", header, job, server, &request);
      break;
    case v1::ExchangeRequest::kSnapshot:
      request.kind = Kind::kSnapshot;
      request.step = header.snapshot().at_step();
      status = ReadChunks(header.snapshot().chunks(), "snapshot", header, job, server, &request);
      break;
    default:
      status = Bad("operation", "missing; allowed: push_pull, pull, snapshot");
  }
  if (!status.ok()) return status;
  if (request.kind != Kind::kSnapshot && request.step < 0) {
    return Bad("step", absl::StrCat(request.step, "; allowed: 0 or more"));
  }
  if (request.kind != Kind::kPushPull && payload_bytes != 0) {
    return Bad("payload", absl::StrCat(payload_bytes, " bytes; only push_pull carries a payload"));
  }
  return request;
}

void AttachGradients(const v1::JobDescription& job, std::shared_ptr<const PayloadView> payload,
                     PartitionRequest* request) {
  uint64_t offset = 0;
  for (size_t i = 0; i < request->contributions.size(); ++i) {
    Contribution& contribution = request->contributions[i];
    if (contribution.examples == 0) continue;
    const int64_t length = job.chunks(request->chunks[i]).length();
    const uint64_t bytes = length * sizeof(float);
    if (const void* piece = payload->Contiguous(offset, bytes); piece != nullptr) {
      contribution.gradient = {payload, piece};
    } else {
      FloatBuffer::Ptr copy = FloatBuffer::Allocate(length);
      payload->CopyTo(offset, bytes, copy->data());
      contribution.gradient = {copy, copy->data()};
    }
    offset += bytes;
    if (!AllFinite(contribution.gradient.data, length)) {
      contribution.non_finite = true;
      contribution.examples = 0;
      contribution.gradient = {};
    }
  }
}

}  // namespace rubato::server
