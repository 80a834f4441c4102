#include "common/wire/exchange_codec.h"

#include <grpc/slice.h>

#include <algorithm>
#include <string>
#include <utility>

#include "absl/container/inlined_vector.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/status.h"
#include "common/tsan.h"
#include "common/wire/field_reader.h"
#include "common/wire/varint.h"

namespace rubato {
namespace {

constexpr uint32_t kPayloadField = v1::ExchangeRequest::kPayloadFieldNumber;
static_assert(v1::ExchangeReply::kPayloadFieldNumber == kPayloadField);

// Of a message of one chunk, with some room.
constexpr size_t kHeaderBytesUsual = 256;

using Owner = std::shared_ptr<const void>;

void ReleaseOwner(void* cell) {
  TsanAcquire(cell);
  delete static_cast<Owner*>(cell);
}

grpc::ByteBuffer Encode(const google::protobuf::Message& header, std::vector<grpc::Slice> payload) {
  size_t payload_bytes = 0;
  for (const grpc::Slice& slice : payload) payload_bytes += slice.size();
  std::string payload_front;
  if (payload_bytes > 0) {
    AppendVarint(kPayloadField << 3 | 2, &payload_front);
    AppendVarint(payload_bytes, &payload_front);
  }
  const size_t header_bytes = header.ByteSizeLong();
  grpc_slice front = grpc_slice_malloc(header_bytes + payload_front.size());
  header.SerializeWithCachedSizesToArray(GRPC_SLICE_START_PTR(front));
  std::copy(payload_front.begin(), payload_front.end(), GRPC_SLICE_START_PTR(front) + header_bytes);
  absl::InlinedVector<grpc::Slice, 4> all;
  all.reserve(1 + payload.size());
  all.emplace_back(front, grpc::Slice::STEAL_REF);
  all.insert(all.end(), payload.begin(), payload.end());
  return grpc::ByteBuffer(all.data(), all.size());
}

// After protobuf refused `header` as a whole: the status that names the field at fault. Fields are independent of each
// other, so one of them is refused alone too.
absl::Status NameBadField(const std::string& header, const google::protobuf::Message& prototype) {
  const grpc::Slice slice(header.data(), header.size(), grpc::Slice::STATIC_SLICE);
  FieldReader reader(absl::MakeConstSpan(&slice, 1), *prototype.GetDescriptor());
  const std::unique_ptr<google::protobuf::Message> message(prototype.New());
  while (!reader.AtEnd()) {
    RUBATO_ASSIGN_OR_RETURN(const FieldReader::Field field, reader.Next());
    const int bytes = static_cast<int>(field.end - field.begin);
    if (!message->ParseFromArray(header.data() + field.begin, bytes)) {
      return absl::InvalidArgumentError(
          absl::StrCat(reader.Name(field.number), ": its ", bytes, " bytes are not what protobuf allows there"));
    }
  }
  return absl::InvalidArgumentError(absl::StrCat(prototype.GetDescriptor()->name(), ": is not a protobuf message"));
}

absl::StatusOr<PayloadView> Decode(const grpc::ByteBuffer& buffer, size_t payload_bytes_max,
                                   google::protobuf::Message* message) {
  std::vector<grpc::Slice> slices;
  // A buffer that was never filled is an empty message.
  if (buffer.Valid() && !buffer.Dump(&slices).ok()) {
    return absl::InvalidArgumentError(
        absl::StrCat(message->GetDescriptor()->name(), ": the buffer could not be decompressed"));
  }
  FieldReader reader(slices, *message->GetDescriptor());
  std::string header;
  header.reserve(kHeaderBytesUsual);
  size_t payload_offset = 0;
  size_t payload_bytes = 0;
  while (!reader.AtEnd()) {
    RUBATO_ASSIGN_OR_RETURN(FieldReader::Field field, reader.Next());
    if (field.number == kPayloadField) {
      payload_offset = field.content;
      payload_bytes = field.end - field.content;
      if (payload_bytes > payload_bytes_max) {
        return absl::InvalidArgumentError(absl::StrCat(reader.Name(field.number), ": has ", payload_bytes,
                                                       " bytes, at most ", payload_bytes_max, " are allowed"));
      }
    } else if (field.end - field.begin > kHeaderBytesMax - header.size()) {
      return absl::InvalidArgumentError(absl::StrCat(reader.Name(field.number), ": with it the fields besides payload ",
                                                     "take more than the allowed ", kHeaderBytesMax, " bytes"));
    } else {
      field.start.Append(field.end - field.begin, &header);
    }
  }
  if (!message->ParseFromString(header)) return NameBadField(header, *message);
  return PayloadView(std::move(slices), payload_offset, payload_bytes);
}

}  // namespace

grpc::Slice SliceOf(std::shared_ptr<const void> owner, const void* data, size_t bytes) {
  if (bytes == 0) return grpc::Slice();
  Owner* cell = new Owner(std::move(owner));
  TsanRelease(cell);
  // gRPC only reads; its C interface has no const.
  return grpc::Slice(const_cast<void*>(data), bytes, ReleaseOwner, cell);
}

grpc::ByteBuffer EncodeRequest(const v1::ExchangeRequest& header, std::vector<grpc::Slice> payload) {
  return Encode(header, std::move(payload));
}

grpc::ByteBuffer EncodeReply(const v1::ExchangeReply& header, std::vector<grpc::Slice> payload) {
  return Encode(header, std::move(payload));
}

absl::StatusOr<DecodedRequest> DecodeRequest(const grpc::ByteBuffer& buffer, size_t payload_bytes_max) {
  DecodedRequest request;
  RUBATO_ASSIGN_OR_RETURN(request.payload, Decode(buffer, payload_bytes_max, &request.header));
  return request;
}

absl::StatusOr<DecodedReply> DecodeReply(const grpc::ByteBuffer& buffer, size_t payload_bytes_max) {
  DecodedReply reply;
  RUBATO_ASSIGN_OR_RETURN(reply.payload, Decode(buffer, payload_bytes_max, &reply.header));
  return reply;
}

absl::Status DecodeRequest(const grpc::ByteBuffer& buffer, DecodedRequest* request) {
  RUBATO_ASSIGN_OR_RETURN(request->payload, Decode(buffer, kPayloadBytesMax, &request->header));
  return absl::OkStatus();
}

absl::Status DecodeReply(const grpc::ByteBuffer& buffer, DecodedReply* reply) {
  RUBATO_ASSIGN_OR_RETURN(reply->payload, Decode(buffer, kPayloadBytesMax, &reply->header));
  return absl::OkStatus();
}

}  // namespace rubato
