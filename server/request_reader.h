#ifndef RUBATO_SERVER_REQUEST_READER_H_
#define RUBATO_SERVER_REQUEST_READER_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "common/shared_memory/region.h"
#include "common/wire/exchange_codec.h"
#include "proto/coordinator.pb.h"
#include "server/rules/partition.h"
#include "server/rules/push_hyperparameters.h"
#include "server/table_message.h"

namespace rubato::server {

// A message from the wire as a partition takes it.
struct ReceivedRequest {
  // Without its token. The gradients are where they arrived, and their owner keeps the message, or the worker's memory,
  // until the last contribution is gone.
  PartitionRequest request;
  // Of all gradients.
  uint64_t gradient_bytes = 0;
  // They are in the worker's shared memory, not in the message.
  bool in_shared_memory = false;
  // It assigns weights (rules/assignment.h), which are where a push has its gradients; `request` has a task and chunks.
  bool assigns = false;
  // Of an assignment or a snapshot: which slot of the optimizer's state it is about, counted from 1; 0: the weights.
  uint32_t slot = 0;
  // Of an assignment of weights: Assign.updates.
  std::vector<int64_t> updates;
  // What the message is about, if that is a table: its chunks are shards, and their gradients RowGradients.
  std::shared_ptr<const TableMessage> table;
};

// Checks a message against the job and finds its gradients, in one walk over its chunks. `region` is the memory that
// header.shared_session names, null if there is none or it is not known. Nothing is copied but encoded gradients
// that are cut in pieces or that their writer could still change while they are decoded; the contents of encoded
// gradients are looked at. InvalidArgument names the field, its value and what is allowed. Pure.
absl::StatusOr<ReceivedRequest> ReadRequest(const DecodedRequest& message, std::shared_ptr<const SharedRegion> region,
                                            const v1::JobDescription& job, uint32_t server,
                                            const PushHyperparameters::Rules& rules = {},
                                            const TableRules& tables = {});

}  // namespace rubato::server

#endif  // RUBATO_SERVER_REQUEST_READER_H_
