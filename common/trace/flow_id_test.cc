#include "common/trace/flow_id.h"

#include <gtest/gtest.h>

#include <set>

namespace rubato {
namespace {

v1::TaskId Worker(uint32_t index, uint64_t incarnation) {
  v1::TaskId task;
  task.set_role(v1::TaskId::WORKER);
  task.set_index(index);
  task.set_incarnation(incarnation);
  return task;
}

TEST(FlowIdTest, DiffersForEachWorkerIncarnationStepAndChunk) {
  std::set<uint64_t> ids;
  for (uint32_t worker = 0; worker < 4; ++worker) {
    for (uint64_t incarnation : {1u, 2u}) {
      for (int64_t step = 0; step < 50; ++step) {
        for (uint32_t chunk = 0; chunk < 20; ++chunk) {
          ids.insert(PushFlowId(Worker(worker, incarnation << 32), step, chunk));
        }
      }
    }
  }
  EXPECT_EQ(ids.size(), 4u * 2 * 50 * 20);
}

TEST(FlowIdTest, IsTheSameOnBothSides) { EXPECT_EQ(PushFlowId(Worker(1, 77), 5, 3), PushFlowId(Worker(1, 77), 5, 3)); }

}  // namespace
}  // namespace rubato
