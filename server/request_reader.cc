#include "server/request_reader.h"

#include <cmath>
#include <cstring>
#include <numeric>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/status.h"
#include "common/task.h"
#include "kernels/codec/codec.h"
#include "server/gradient.h"

namespace rubato::server {
namespace {

using Kind = PartitionRequest::Kind;

bool IsPacked(v1::Codec codec) { return codec != v1::CODEC_UNSPECIFIED && codec != v1::NONE; }

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

// Bytes that the chunk's gradient takes.
absl::StatusOr<uint64_t> CheckEncodedBytes(const v1::ChunkUpdate& update, int64_t length, const std::string& field) {
  if (!v1::Codec_IsValid(update.codec())) {
    return Bad(absl::StrCat(field, ".codec"),
               absl::StrCat(update.codec(), " is not known here; allowed: 0 to ", static_cast<int>(v1::Codec_MAX)));
  }
  if (!IsPacked(update.codec())) {
    const uint64_t bytes = length * sizeof(float);
    if (update.encoded_bytes() == 0 || update.encoded_bytes() == bytes) return bytes;
    return Bad(absl::StrCat(field, ".encoded_bytes"),
               absl::StrCat(update.encoded_bytes(), "; ", length, " float32 take ", bytes));
  }
  const CodecSpec widest{update.codec(), 1.0};
  const uint64_t most = MaxEncodedBytes(widest, length);
  const bool fixed = !TraitsOf(update.codec()).takes_fraction();
  if (update.encoded_bytes() == 0 || update.encoded_bytes() > most || (fixed && update.encoded_bytes() != most)) {
    return Bad(absl::StrCat(field, ".encoded_bytes"),
               absl::StrCat(update.encoded_bytes(), "; ", length, " elements as ", v1::Codec_Name(update.codec()),
                            " take ", fixed ? "" : "at most ", most));
  }
  return update.encoded_bytes();
}

// `sizes`: bytes of each gradient; empty when there are none.
absl::Status CheckSizes(const v1::ExchangeRequest& header, const std::vector<uint64_t>& sizes, uint64_t payload_bytes) {
  if (header.shared().empty()) {
    const uint64_t expected = std::accumulate(sizes.begin(), sizes.end(), uint64_t{0});
    if (payload_bytes == expected) return absl::OkStatus();
    return Bad("payload", absl::StrCat(payload_bytes, " bytes; push_pull.chunks declare ", expected));
  }
  if (header.shared_session() == 0) return Bad("shared_session", "0, but shared is not empty");
  if (payload_bytes != 0) return Bad("payload", absl::StrCat(payload_bytes, " bytes, but shared is not empty"));
  if (header.shared_size() != static_cast<int>(sizes.size())) {
    return Bad("shared", absl::StrCat(header.shared_size(), " entries; push_pull.chunks has ", sizes.size()));
  }
  for (int i = 0; i < header.shared_size(); ++i) {
    if (header.shared(i).bytes() == sizes[i]) continue;
    return Bad(absl::StrCat("shared[", i, "].bytes"),
               absl::StrCat(header.shared(i).bytes(), "; push_pull.chunks[", i, "] declares ", sizes[i]));
  }
  return absl::OkStatus();
}

absl::Status ReadPushPull(const v1::ExchangeRequest& header, uint64_t payload_bytes, const v1::JobDescription& job,
                          uint32_t server, PartitionRequest* request) {
  const v1::PushPull& push = header.push_pull();
  if (!std::isfinite(push.epoch()) || push.epoch() < 0) {
    return Bad("push_pull.epoch", absl::StrCat(push.epoch(), "; allowed: 0 or more"));
  }
  std::vector<uint64_t> sizes;
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
    absl::StatusOr<uint64_t> bytes = CheckEncodedBytes(update, length, field);
    if (!bytes.ok()) return bytes.status();
    sizes.push_back(*bytes);
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
  if (push.examples() == 0) sizes.clear();
  return CheckSizes(header, sizes, payload_bytes);
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
  if (request.kind != Kind::kPushPull && (payload_bytes != 0 || header.shared_size() != 0)) {
    return Bad("payload", absl::StrCat(payload_bytes, " bytes and ", header.shared_size(),
                                       " entries in shared; only push_pull carries gradients"));
  }
  return request;
}

absl::StatusOr<PushBytes> LocatePush(const DecodedRequest& message, std::shared_ptr<const SharedRegion> region,
                                     const v1::JobDescription& job) {
  PushBytes push;
  const v1::ExchangeRequest& header = message.header;
  if (header.push_pull().examples() == 0) return push;
  push.payload = message.payload;
  for (int i = 0; i < header.push_pull().chunks_size(); ++i) {
    const v1::ChunkUpdate& update = header.push_pull().chunks(i);
    PushBytes::Part part;
    part.codec = IsPacked(update.codec()) ? update.codec() : v1::NONE;
    part.length = job.chunks(update.chunk()).length();
    part.bytes = part.codec == v1::NONE ? part.length * sizeof(float) : update.encoded_bytes();
    if (header.shared_size() > 0) {
      const v1::SharedSpan& span = header.shared(i);
      part.shared = region == nullptr ? nullptr : region->Find(span.offset(), span.bytes());
      if (part.shared == nullptr) {
        return Bad(absl::StrCat("shared[", i, "]"),
                   absl::StrCat(span.bytes(), " bytes from ", span.offset(), " are not inside the ",
                                region == nullptr ? 0 : region->size(), " bytes of the worker's shared memory"));
      }
    }
    push.parts.push_back(part);
  }
  if (header.shared_size() > 0) push.region = std::move(region);
  return push;
}

namespace {

// The part in one piece that nobody changes any more.
absl::Status AttachPacked(const std::shared_ptr<const PushBytes>& bytes, const PushBytes::Part& part, uint64_t offset,
                          Gradient* gradient) {
  const void* data = part.shared != nullptr ? part.shared : bytes->payload.Contiguous(offset, part.bytes);
  gradient->owner = bytes;
  // Indices are checked first and used afterwards: they must be the same ones.
  const bool unsafe = part.shared != nullptr && TraitsOf(part.codec).has_indices;
  if (data == nullptr || unsafe) {
    auto copy = std::make_shared<std::vector<uint8_t>>(part.bytes);
    if (unsafe) {
      std::memcpy(copy->data(), part.shared, part.bytes);
    } else {
      bytes->payload.CopyTo(offset, part.bytes, copy->data());
    }
    data = copy->data();
    gradient->owner = std::move(copy);
  }
  const auto size = static_cast<int64_t>(part.bytes);
  gradient->pieces.push_back({data, size});
  return CheckEncoded(part.codec, static_cast<const uint8_t*>(data), size, part.length);
}

}  // namespace

absl::Status AttachGradients(std::shared_ptr<const PushBytes> bytes, PartitionRequest* request) {
  uint64_t offset = 0;
  for (size_t i = 0; i < bytes->parts.size(); ++i) {
    const PushBytes::Part& part = bytes->parts[i];
    auto gradient = std::make_shared<Gradient>();
    gradient->codec = part.codec;
    if (part.codec != v1::NONE) {
      RUBATO_RETURN_IF_ERROR(
          Annotate(AttachPacked(bytes, part, offset, gradient.get()), absl::StrCat("push_pull.chunks[", i, "]")));
    } else if (part.shared != nullptr) {
      gradient->owner = bytes;
      gradient->pieces.push_back({part.shared, static_cast<int64_t>(part.bytes)});
    } else {
      gradient->owner = bytes;
      for (const PayloadView::Segment& segment : bytes->payload.Pieces(offset, part.bytes)) {
        gradient->pieces.push_back({segment.data, static_cast<int64_t>(segment.bytes)});
      }
    }
    offset += part.bytes;
    request->contributions[i].gradient = std::move(gradient);
  }
  return absl::OkStatus();
}

}  // namespace rubato::server
