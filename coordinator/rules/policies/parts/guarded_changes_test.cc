#include "coordinator/rules/policies/parts/guarded_changes.h"

#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"

namespace rubato::coordinator {
namespace {

v1::PolicyPace Options() {
  v1::PolicyPace options;
  options.set_window_steps(1);
  options.set_windows_agreeing(1);
  options.set_windows_of_rest(1);
  options.set_changes_max(9);
  return options;
}

TEST(GuardedChangesTest, GivesUpWhenTheLossHasRisenSinceAChange) {
  GuardedChanges changes(Options(), "QUORUM");
  for (double loss : {1.0, 2.0, 1.0}) EXPECT_FALSE(changes.GivesUp(loss));
  EXPECT_TRUE(changes.Confirms(1));
  EXPECT_FALSE(changes.GivesUp(9));
  EXPECT_FALSE(changes.GivesUp(9));
  EXPECT_FALSE(changes.given_up());
  EXPECT_TRUE(changes.GivesUp(9));
  EXPECT_TRUE(changes.given_up());
}

TEST(GuardedChangesTest, LossesCountFromAChangeOnThatIsMade) {
  GuardedChanges changes(Options(), "QUORUM");
  for (double loss : {1.0, 2.0, 1.0}) EXPECT_FALSE(changes.GivesUp(loss));
  EXPECT_FALSE(changes.Confirms(0));
  for (int window = 0; window < 5; ++window) EXPECT_FALSE(changes.GivesUp(9));
}

TEST(GuardedChangesTest, RemembersHowManyThereWereAndThatItHasGivenUp) {
  GuardedChanges changes(Options(), "QUORUM");
  EXPECT_EQ(changes.Memory(), "0 0");
  EXPECT_TRUE(changes.Confirms(1));
  EXPECT_TRUE(changes.GivesUp(INFINITY));
  EXPECT_EQ(changes.Memory(), "1 1");
  GuardedChanges restarted(Options(), "QUORUM");
  ASSERT_TRUE(restarted.Restore(changes.Memory()).ok());
  EXPECT_TRUE(restarted.given_up());
  EXPECT_EQ(restarted.Memory(), "1 1");
  GuardedChanges begun(Options(), "QUORUM");
  ASSERT_TRUE(begun.Restore("").ok());
  EXPECT_EQ(begun.Memory(), "0 0");
}

TEST(GuardedChangesTest, OtherMemoryIsRefusedWithThePolicysName) {
  for (const char* text : {"x", "1", "1 2", "-1 0", "1 0 "}) {
    GuardedChanges changes(Options(), "DSSP");
    const absl::Status status = changes.Restore(text);
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << text;
    EXPECT_EQ(status.message(), absl::StrCat("the memory of policy DSSP: value \"", text,
                                             "\"; allowed: the number of changes, a space, and 0 or 1"));
  }
}

}  // namespace
}  // namespace rubato::coordinator
