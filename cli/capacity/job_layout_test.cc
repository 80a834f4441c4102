#include "cli/capacity/job_layout.h"

#include "cli/capacity/testing/jobs.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace rubato::capacity {
namespace {

using testing::ElementsAre;

TEST(JobLayoutTest, SmallTensorsOfAPartitionTravelTogether) {
  const JobLayout layout = SmallLayout();
  EXPECT_EQ(layout.batches(), 1);
  EXPECT_THAT(layout.chunk_bytes, ElementsAre(64 * 16 * 4, 16 * 4));
  EXPECT_THAT(layout.pushed_bytes, ElementsAre(65 * 16 * 4));
  ASSERT_EQ(layout.layers.size(), 1u);
  EXPECT_EQ(layout.layers[0].name, "fc");
  EXPECT_THAT(layout.layers[0].due, ElementsAre(0));
}

TEST(JobLayoutTest, ABatchIsDueWithTheLastOfItsTensors) {
  // Both layers are in the one batch of the one partition, and the first is pushed last.
  const JobLayout layout = SmallLayout({"model.layers[1]={ name: 'out' linear { units: 4 } }"});
  ASSERT_EQ(layout.layers.size(), 2u);
  EXPECT_THAT(layout.layers[0].due, ElementsAre(0));
  EXPECT_THAT(layout.layers[1].due, ElementsAre());
  EXPECT_THAT(layout.layers[1].needed, testing::Each(0));
}

TEST(JobLayoutTest, PlacesChunksOnAllServersAsTheCoordinatorDoes) {
  const JobLayout layout = SmallLayout({"cluster.servers=2", "cluster.workers=3"});
  EXPECT_EQ(layout.servers(), 2);
  EXPECT_EQ(layout.workers(), 3);
  EXPECT_EQ(layout.batches(), 2);
  EXPECT_NE(layout.job.chunks(0).server(), layout.job.chunks(1).server());
}

TEST(JobLayoutTest, EncodedBytesAreTheCodecs) {
  const JobLayout layout = SmallLayout({"compression.push.codec=BF16"});
  EXPECT_THAT(layout.pushed_bytes, ElementsAre(65 * 16 * 2));
  EXPECT_THAT(layout.pulled_bytes, ElementsAre(65 * 16 * 4));
}

TEST(JobLayoutTest, ThePlanIsTheConfigs) {
  const JobLayout layout = SmallLayout({"cluster.workers=4", "consistency.mode=SSP", "consistency.staleness_bound=3"});
  EXPECT_EQ(layout.plan.mode(), v1::SSP);
  EXPECT_EQ(layout.plan.staleness_bound(), 3);
  EXPECT_EQ(layout.plan.members_size(), 4);
}

}  // namespace
}  // namespace rubato::capacity
