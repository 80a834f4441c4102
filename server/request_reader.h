#ifndef RUBATO_SERVER_REQUEST_READER_H_
#define RUBATO_SERVER_REQUEST_READER_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/shared_memory/region.h"
#include "common/wire/exchange_codec.h"
#include "proto/coordinator.pb.h"
#include "server/rules/partition.h"

namespace rubato::server {

// The bytes of a push, where they arrived. Immutable.
struct PushBytes {
  struct Part {
    v1::Codec codec = v1::NONE;
    int64_t length = 0;  // Elements of the chunk.
    uint64_t bytes = 0;
    // In the worker's shared memory; null when it is in the payload, after the parts before it.
    const uint8_t* shared = nullptr;
  };
  std::vector<Part> parts;  // By chunk of the request; empty when there is no gradient.
  PayloadView payload;
  std::shared_ptr<const SharedRegion> region;  // Null: nothing is in shared memory.
};

// Checks a message from the wire against the job and turns it into a request to a partition, without its gradients and
// its token. InvalidArgument names the field, its value and what is allowed. Pure.
absl::StatusOr<PartitionRequest> ReadRequest(const v1::ExchangeRequest& header, uint64_t payload_bytes,
                                             const v1::JobDescription& job, uint32_t server);

// Finds the gradients of a request that ReadRequest accepted. `region` is the memory that header.shared_session names,
// null for none. InvalidArgument: a span is not inside it.
absl::StatusOr<PushBytes> LocatePush(const DecodedRequest& message, std::shared_ptr<const SharedRegion> region,
                                     const v1::JobDescription& job);

// Gives each contribution of a PushPull its part of the bytes. Nothing is copied but packed gradients that are cut in
// pieces or that their writer could still change while they are unpacked. InvalidArgument: a packed gradient is not
// what its codec allows; the request is then to be refused. May touch every byte: it is for whoever is at work on the
// partition.
absl::Status AttachGradients(std::shared_ptr<const PushBytes> bytes, PartitionRequest* request);

}  // namespace rubato::server

#endif  // RUBATO_SERVER_REQUEST_READER_H_
