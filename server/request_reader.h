#ifndef RUBATO_SERVER_REQUEST_READER_H_
#define RUBATO_SERVER_REQUEST_READER_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "common/wire/exchange_codec.h"
#include "proto/coordinator.pb.h"
#include "server/rules/partition.h"

namespace rubato::server {

// Checks a message from the wire against the job and turns it into a request to a partition, without its gradients and
// its token. InvalidArgument names the field, its value and what is allowed. Pure.
absl::StatusOr<PartitionRequest> ReadRequest(const v1::ExchangeRequest& header, uint64_t payload_bytes,
                                             const v1::JobDescription& job, uint32_t server);

// Gives each contribution of a PushPull its part of the payload, without a copy where that part lies in one piece, and
// marks those with an element that is not finite. Touches every byte: call it on the partition's thread.
void AttachGradients(const v1::JobDescription& job, std::shared_ptr<const PayloadView> payload,
                     PartitionRequest* request);

}  // namespace rubato::server

#endif  // RUBATO_SERVER_REQUEST_READER_H_
