#ifndef RUBATO_CLIENT_SIDECAR_RESULTS_H_
#define RUBATO_CLIENT_SIDECAR_RESULTS_H_

#include "absl/status/status.h"
#include "client/rubato_client.h"

namespace rubato::client {

// What a client is told of a status. All functions are pure.

// Of a request to the coordinator.
rubato_result ResultOfRequest(const absl::Status& status);
// Of rubato_define.
rubato_result ResultOfOffer(const absl::Status& status);
// Of the worker's end, which is OK or Cancelled if it is no failure.
rubato_result ResultOfEnd(const absl::Status& status);

}  // namespace rubato::client

#endif  // RUBATO_CLIENT_SIDECAR_RESULTS_H_
