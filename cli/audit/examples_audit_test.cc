#include "cli/audit/examples_audit.h"

#include <gtest/gtest.h>

namespace rubato {
namespace {

class ExamplesAuditTest : public testing::Test {
 protected:
  void Push(int64_t step, uint64_t shard, int64_t begin, int64_t end, uint32_t chunk = 0) {
    v1::UpdateRecord push;
    push.set_worker(1);
    push.set_step(step);
    push.set_chunk(chunk);
    push.mutable_slice()->set_shard(shard);
    push.mutable_slice()->set_begin(begin);
    push.mutable_slice()->set_end(end);
    audit_.OnPush("server 0", push);
  }
  int64_t violations() const { return report_.of(Invariant::kExamples).violations; }

  AuditReport report_;
  ExamplesAudit audit_{&report_};
};

TEST_F(ExamplesAuditTest, CountsWhatWasTrained) {
  audit_.Begin(100);
  for (uint32_t chunk : {0u, 1u}) {
    Push(0, 1, 0, 10, chunk);
    Push(1, 2, 20, 30, chunk);
    Push(2, 1, 10, 20, chunk);  // Of a shard that another goes on with.
    Push(3, 9, 0, 10, chunk);   // The same examples in the next epoch.
  }
  Push(4, 9, 10, 15, 1);  // Its worker was lost in this step.
  audit_.Finish();
  EXPECT_EQ(violations(), 0);
  EXPECT_EQ(report_.of(Invariant::kExamples).checked, 9);
  EXPECT_EQ(report_.examples.trained, 45);
  EXPECT_EQ(report_.examples.chunk_least, 40);
  EXPECT_EQ(report_.examples.chunk_most, 45);
}

TEST_F(ExamplesAuditTest, FindsExamplesThatAreTrainedTwice) {
  audit_.Begin(100);
  Push(0, 1, 10, 20);
  Push(1, 1, 0, 10);
  EXPECT_EQ(violations(), 0);
  Push(2, 1, 19, 22);
  EXPECT_EQ(violations(), 1);
  EXPECT_EQ(report_.of(Invariant::kExamples).counterexample,
            "server 0, chunk 0: step 2 of worker 1 trains examples 19 to 22 of shard 1, and some of these were trained "
            "before");
  Push(3, 1, 0, 2);
  Push(4, 1, 0, 22);
  EXPECT_EQ(violations(), 3);
  Push(5, 1, 22, 23);
  EXPECT_EQ(violations(), 3);
}

TEST_F(ExamplesAuditTest, WhatWasUndoneDoesNotCount) {
  audit_.Begin(5);
  Push(4, 1, 0, 10);
  Push(5, 1, 10, 20);
  audit_.Begin(100);
  Push(5, 1, 10, 20);
  audit_.Finish();
  EXPECT_EQ(violations(), 0);
  EXPECT_EQ(report_.examples.trained, 20);
}

TEST_F(ExamplesAuditTest, StepsWithoutABatchSayNothing) {
  audit_.Begin(100);
  v1::UpdateRecord push;
  audit_.OnPush("server 0", push);
  Push(1, 1, 5, 5);
  audit_.Finish();
  EXPECT_EQ(report_.of(Invariant::kExamples).checked, 0);
  EXPECT_EQ(report_.examples.trained, 0);
}

}  // namespace
}  // namespace rubato
