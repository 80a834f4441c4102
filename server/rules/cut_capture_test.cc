#include "server/rules/cut_capture.h"

#include <gtest/gtest.h>

#include "server/rules/testing/builders.h"

namespace rubato::server {
namespace {

TEST(CutCaptureTest, HoldsPushesOfItsPlanToChunksThatItLacks) {
  CutCapture capture;
  EXPECT_FALSE(capture.open());
  capture.EnterPlan(WithCut(MakePlan(3, v1::ASYNC, 0, {0}), 7), {4, 5});
  EXPECT_EQ(capture.cut().id(), 7u);
  EXPECT_TRUE(capture.Holds(3, {4}));
  EXPECT_FALSE(capture.Holds(2, {4}));
  capture.Take(4);
  EXPECT_FALSE(capture.Holds(3, {4}));
  EXPECT_TRUE(capture.Holds(3, {4, 5}));
  capture.Take(5);
  EXPECT_FALSE(capture.open());
  EXPECT_FALSE(capture.Holds(3, {4, 5}));
}

TEST(CutCaptureTest, APlanWithoutACutGivesUpTheOneBefore) {
  CutCapture capture;
  capture.EnterPlan(WithCut(MakePlan(3, v1::ASYNC, 0, {0}), 7), {4});
  capture.EnterPlan(MakePlan(4, v1::ASYNC, 0, {0}), {4});
  EXPECT_FALSE(capture.open());
  EXPECT_FALSE(capture.Lacks(4));
  EXPECT_EQ(capture.cut().id(), 0u);
}

TEST(CutCaptureTest, IsCompleteWhereThereAreNoChunks) {
  CutCapture capture;
  capture.EnterPlan(WithCut(MakePlan(3, v1::ASYNC, 0, {0}), 7), {});
  EXPECT_FALSE(capture.open());
}

}  // namespace
}  // namespace rubato::server
