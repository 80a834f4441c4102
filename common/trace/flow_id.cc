#include "common/trace/flow_id.h"

#include "common/random.h"

namespace rubato {

uint64_t PushFlowId(const v1::TaskId& worker, int64_t step, uint32_t chunk) {
  // The incarnation is random and different for each worker; the index only helps if a test gives all the same one.
  uint64_t id = SplitMix64(worker.incarnation() ^ worker.index());
  id = SplitMix64(id ^ static_cast<uint64_t>(step));
  return SplitMix64(id ^ chunk);
}

}  // namespace rubato
