#ifndef RUBATO_SERVER_RULES_CONTRIBUTION_H_
#define RUBATO_SERVER_RULES_CONTRIBUTION_H_

#include <cstdint>
#include <memory>

#include "proto/parameter_server.pb.h"

namespace rubato {
// Of kernels/optimizer. The rules never look into it.
struct EncodedGradient;
}  // namespace rubato

namespace rubato::server {

class PushHyperparameters;

// What a worker's push says once for all of its chunks.
struct PushHeader {
  v1::TaskId task;
  uint64_t generation = 0;
  int64_t step = 0;
  // Position in epochs, for schedules.
  double epoch = 0;
  // The batch; without a shard: there is none, or the plan says which examples are whose.
  v1::ShardSlice slice;
  // Of a client's push. Null: it says nothing of them.
  std::shared_ptr<const PushHyperparameters> hyperparameters;
};

// One worker's push to one chunk.
struct Contribution {
  // Never null.
  std::shared_ptr<const PushHeader> header;
  // For the chunk, as it came. Null when the contribution is empty.
  std::shared_ptr<const EncodedGradient> gradient;
  // Weight in the mean. 0: counts as present and changes nothing.
  uint64_t examples = 0;
  int64_t base_version = 0;
};

}  // namespace rubato::server

#endif  // RUBATO_SERVER_RULES_CONTRIBUTION_H_
