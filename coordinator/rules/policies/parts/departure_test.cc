#include "coordinator/rules/policies/parts/departure.h"

#include <gtest/gtest.h>

#include <cmath>

#include "coordinator/rules/policies/parts/step_order.h"

namespace rubato::coordinator {
namespace {

class DepartureTest : public testing::Test {
 protected:
  DepartureTest() {
    pace_.set_window_steps(1);
    pace_.set_windows_agreeing(2);
    pace_.set_windows_of_rest(1);
    pace_.set_changes_max(9);
  }

  Departure Make() { return {pace_, "POST_LOCAL"}; }
  // A window with this loss.
  void Window(Departure& departure, double loss) {
    ++step_;
    departure.WindowEnds(step_, static_cast<double>(step_), 1, loss);
  }

  v1::PolicyPace pace_;
  int64_t step_ = 0;
};

TEST_F(DepartureTest, LeavesOnceAndReturnsForGoodWhenTheLossRises) {
  Departure departure = Make();
  for (double loss : {9.0, 1.0, 2.0, 1.0}) Window(departure, loss);
  EXPECT_TRUE(departure.is_before());
  EXPECT_FALSE(departure.Confirms(true));
  EXPECT_TRUE(departure.Confirms(true));
  departure.Leave();
  EXPECT_TRUE(departure.is_away());
  for (int window = 0; window < 2; ++window) {
    Window(departure, 99);
    EXPECT_FALSE(departure.Returns());
  }
  Window(departure, 99);
  EXPECT_TRUE(departure.Returns());
  EXPECT_FALSE(departure.is_before());
  EXPECT_FALSE(departure.is_away());
}

TEST_F(DepartureTest, LooksAtWindowsEndsAndAfterSomeSteps) {
  Departure departure = Make();
  const auto steps = static_cast<int64_t>(kStepsToJudge);
  EXPECT_FALSE(departure.IsToLook(steps - 1, false));
  EXPECT_TRUE(departure.IsToLook(steps, false));
  EXPECT_TRUE(departure.IsToLook(steps + 1, true));
  EXPECT_FALSE(departure.IsToLook(2 * steps, false));
  EXPECT_TRUE(departure.IsToLook(2 * steps + 1, false));
}

TEST_F(DepartureTest, ARestartKnowsWhereItIs) {
  Departure departure = Make();
  Departure restarted = Make();
  ASSERT_TRUE(restarted.Restore("").ok());
  EXPECT_TRUE(restarted.is_before());
  departure.Leave();
  ASSERT_TRUE(restarted.Restore(departure.Memory()).ok());
  EXPECT_TRUE(restarted.is_away());
  for (int window = 0; window < 4; ++window) Window(restarted, std::nan(""));
  EXPECT_TRUE(restarted.Returns()) << "what the loss was is not known, but this is none";
  Departure back = Make();
  ASSERT_TRUE(back.Restore(restarted.Memory()).ok());
  EXPECT_FALSE(back.is_before() || back.is_away());
  for (const char* memory : {"x", "ab"}) {
    EXPECT_EQ(Make().Restore(memory).code(), absl::StatusCode::kInvalidArgument) << memory;
  }
}

}  // namespace
}  // namespace rubato::coordinator
