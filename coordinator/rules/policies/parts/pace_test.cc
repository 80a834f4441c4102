#include "coordinator/rules/policies/parts/pace.h"

#include <gtest/gtest.h>

namespace rubato::coordinator {
namespace {

v1::PolicyPace Options() {
  v1::PolicyPace options;
  options.set_window_steps(50);
  options.set_window_seconds(5);
  options.set_windows_agreeing(3);
  options.set_windows_of_rest(2);
  options.set_changes_max(2);
  return options;
}

TEST(PaceTest, AWindowTakesItsStepsAndItsSeconds) {
  Pace pace(Options());
  EXPECT_FALSE(pace.WindowEnds(10, 1, 1));
  EXPECT_FALSE(pace.WindowEnds(59, 9, 1));
  EXPECT_FALSE(pace.WindowEnds(90, 5.9, 1)) << "of an earlier heartbeat";
  EXPECT_TRUE(pace.WindowEnds(60, 6, 1));
  EXPECT_FALSE(pace.WindowEnds(109, 20, 1));
  EXPECT_TRUE(pace.WindowEnds(110, 20, 1));
}

TEST(PaceTest, APlanBeginsAWindow) {
  Pace pace(Options());
  EXPECT_FALSE(pace.WindowEnds(0, 0, 1));
  EXPECT_FALSE(pace.WindowEnds(60, 6, 2));
  EXPECT_FALSE(pace.WindowEnds(100, 10, 2));
  EXPECT_TRUE(pace.WindowEnds(110, 11, 2));
}

TEST(PaceTest, JudgementsInARowMustAgree) {
  Pace pace(Options());
  EXPECT_FALSE(pace.Confirms(1));
  EXPECT_FALSE(pace.Confirms(1));
  EXPECT_FALSE(pace.Confirms(0));
  EXPECT_FALSE(pace.Confirms(1));
  EXPECT_FALSE(pace.Confirms(-1));
  EXPECT_FALSE(pace.Confirms(1));
  EXPECT_FALSE(pace.Confirms(1));
  EXPECT_TRUE(pace.Confirms(1));
}

TEST(PaceTest, WhereTheGainIsClearOneWindowIsEnough) {
  Pace pace(Options());
  EXPECT_FALSE(pace.Confirms(1, 0.74));
  EXPECT_FALSE(pace.Confirms(0, 2));
  EXPECT_TRUE(pace.Confirms(1, 0.75));
  for (int window = 0; window < 2; ++window) EXPECT_FALSE(pace.Confirms(1, 5)) << "rests all the same";
  EXPECT_TRUE(pace.Confirms(1, 5));
  EXPECT_FALSE(pace.Confirms(1, 5)) << "too many changes";
}

TEST(PaceTest, NothingIsChangedSoonAfterAChangeNorTooOften) {
  Pace pace(Options());
  for (int change = 1; change <= 2; ++change) {
    EXPECT_FALSE(pace.Confirms(1));
    EXPECT_FALSE(pace.Confirms(1));
    EXPECT_TRUE(pace.Confirms(1)) << "change " << change;
    EXPECT_FALSE(pace.Confirms(1)) << "rests";
    EXPECT_FALSE(pace.Confirms(1)) << "rests";
  }
  for (int window = 0; window < 10; ++window) EXPECT_FALSE(pace.Confirms(1)) << "too many changes";
  EXPECT_EQ(pace.changes(), 2u);
}

TEST(PaceTest, ARestartRestsAndCountsOn) {
  Pace pace(Options());
  pace.Restore(1);
  for (int window = 0; window < 4; ++window) EXPECT_FALSE(pace.Confirms(1));
  EXPECT_TRUE(pace.Confirms(1));
  EXPECT_EQ(pace.changes(), 2u);
}

}  // namespace
}  // namespace rubato::coordinator
