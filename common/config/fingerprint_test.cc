#include "common/config/fingerprint.h"

#include "gtest/gtest.h"

namespace rubato {
namespace {

TEST(ConfigDifferenceTest, NamesEachFieldWithItsValues) {
  v1::JobConfig before;
  before.set_name("job");
  before.mutable_training()->set_max_steps(4000);
  v1::JobConfig after = before;
  EXPECT_EQ(ConfigDifference(before, after), "");
  after.mutable_training()->set_max_steps(400);
  EXPECT_EQ(ConfigDifference(before, after), "training.max_steps: 4000 -> 400");
  after.mutable_training()->set_epochs(7);
  EXPECT_EQ(ConfigDifference(before, after), "added: training.epochs: 7, training.max_steps: 4000 -> 400");
  EXPECT_EQ(ConfigDifference(after, before), "deleted: training.epochs: 7, training.max_steps: 400 -> 4000");
}

TEST(ConfigDifferenceTest, LeavesOutWhatMayDifferWhereAJobGoesOn) {
  v1::JobConfig before;
  before.mutable_cluster()->set_lease_seconds(2);
  v1::JobConfig after = before;
  after.set_run_directory("runs/other");
  after.mutable_cluster()->set_servers(3);
  after.mutable_checkpoint()->set_every_steps(50);
  after.mutable_security()->set_credentials("/etc/rubato/credentials");
  EXPECT_EQ(ConfigDifference(before, after), "");
  EXPECT_EQ(ConfigFingerprint(before), ConfigFingerprint(after));
}

}  // namespace
}  // namespace rubato
