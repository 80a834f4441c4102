#ifndef RUBATO_SERVER_PUSH_READER_H_
#define RUBATO_SERVER_PUSH_READER_H_

#include <cstdint>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/shared_memory/region.h"
#include "common/wire/exchange_codec.h"
#include "proto/coordinator.pb.h"
#include "server/rules/partition.h"
#include "server/rules/push_hyperparameters.h"
#include "server/table_message.h"

namespace rubato::server {

// Whether the job has the chunk in this partition of this server. InvalidArgument otherwise.
absl::Status CheckChunk(const v1::JobDescription& job, uint32_t server, uint32_t partition, uint32_t chunk);

// The push of `message`, which has one: adds its chunks and their contributions to the request and returns the bytes of
// its gradients. Each chunk is checked, and its gradient found where it arrived, in one walk; see ReadRequest, which is
// for everybody else. `table`: what it pushes to one, if the message is about a table; otherwise null.
absl::StatusOr<uint64_t> ReadPush(const DecodedRequest& message, std::shared_ptr<const SharedRegion> region,
                                  const v1::JobDescription& job, uint32_t server,
                                  const PushHyperparameters::Rules& rules, const TableRules& tables,
                                  PartitionRequest* request, std::shared_ptr<const TableMessage>* table);

// The same for weights that `message` assigns: they are where a push has its gradients.
absl::StatusOr<uint64_t> ReadAssign(const DecodedRequest& message, std::shared_ptr<const SharedRegion> region,
                                    const v1::JobDescription& job, uint32_t server, PartitionRequest* request);

}  // namespace rubato::server

#endif  // RUBATO_SERVER_PUSH_READER_H_
