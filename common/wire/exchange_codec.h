#ifndef RUBATO_COMMON_WIRE_EXCHANGE_CODEC_H_
#define RUBATO_COMMON_WIRE_EXCHANGE_CODEC_H_

#include <grpcpp/support/byte_buffer.h>
#include <grpcpp/support/slice.h>

#include <cstddef>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "common/wire/payload_view.h"
#include "proto/parameter_server.pb.h"

namespace rubato {

// ExchangeRequest and ExchangeReply between messages without their payload and gRPC's byte buffers, with the payload
// never copied. What is on the wire is plain protobuf: any generated stub reads and writes it. All functions are pure.
//
//   grpc::Slice weights = SliceOf(version, version->data(), version->size() * sizeof(float));
//   connection->Send(EncodeReply(header, {weights}));

// Bytes that the fields besides the payload may take in a message that is decoded.
inline constexpr size_t kHeaderBytesMax = size_t{1} << 20;
// Bytes of payload that a message may have: more than the largest message of a valid config.
inline constexpr size_t kPayloadBytesMax = size_t{1} << 28;

// A message whose payload is still in the slices it arrived in; header.payload() is empty.
struct DecodedRequest {
  v1::ExchangeRequest header;
  PayloadView payload;
};
struct DecodedReply {
  v1::ExchangeReply header;
  PayloadView payload;
};

// The `bytes` bytes at `data`, which `owner` keeps alive and nobody changes until gRPC has let go of them. The last
// reference to `owner` may be dropped on any thread.
grpc::Slice SliceOf(std::shared_ptr<const void> owner, const void* data, size_t bytes);

// The message with the slices of `payload`, one after another, as its payload. REQUIRES: header.payload() is empty.
grpc::ByteBuffer EncodeRequest(const v1::ExchangeRequest& header, std::vector<grpc::Slice> payload);
grpc::ByteBuffer EncodeReply(const v1::ExchangeReply& header, std::vector<grpc::Slice> payload);

// As protobuf reads it: the payload may stand anywhere and be cut into any slices, of several the last counts, unknown
// fields are passed over. InvalidArgument, naming the field, when the bytes are no such message, a field has another
// wire type than it should, or the header or the payload is over its limit.
absl::StatusOr<DecodedRequest> DecodeRequest(const grpc::ByteBuffer& buffer,
                                             size_t payload_bytes_max = kPayloadBytesMax);
absl::StatusOr<DecodedReply> DecodeReply(const grpc::ByteBuffer& buffer, size_t payload_bytes_max = kPayloadBytesMax);

// The same into a message whose header's memory is used again. After an error its contents say nothing.
absl::Status DecodeRequest(const grpc::ByteBuffer& buffer, DecodedRequest* request);
absl::Status DecodeReply(const grpc::ByteBuffer& buffer, DecodedReply* reply);

}  // namespace rubato

#endif  // RUBATO_COMMON_WIRE_EXCHANGE_CODEC_H_
