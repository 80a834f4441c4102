#include "server/pulled_weights.h"

#include <gtest/gtest.h>

#include "server/rules/testing/builders.h"

namespace rubato::server {
namespace {

TEST(PulledWeightsTest, APushGetsTheWeightsThatItsWorkerPulledLast) {
  PulledWeights pulled;
  const FloatBuffer::Ptr first = FloatBuffer::Allocate(1), second = FloatBuffer::Allocate(1);
  pulled.Note(Worker(0), 0, first);
  pulled.Note(Worker(1), 0, first);
  pulled.Note(Worker(0), 3, second);
  EXPECT_EQ(pulled.Take(Worker(1), 0), first);
  EXPECT_EQ(pulled.Take(Worker(0), 3), second);
  EXPECT_TRUE(pulled.empty());
  EXPECT_EQ(first.use_count(), 1);
  EXPECT_EQ(second.use_count(), 1);
}

TEST(PulledWeightsTest, WhatAPushOfAnotherVersionWasComputedFromIsNotKnown) {
  PulledWeights pulled;
  pulled.Note(Worker(0), 2, FloatBuffer::Allocate(1));
  EXPECT_EQ(pulled.Take(Worker(0), 1), nullptr);
  EXPECT_EQ(pulled.Take(Worker(0), 2), nullptr);
  EXPECT_EQ(pulled.Take(Worker(1), 2), nullptr);
}

TEST(PulledWeightsTest, WhoeverLeavesHoldsNothingMore) {
  PulledWeights pulled;
  const FloatBuffer::Ptr weights = FloatBuffer::Allocate(1);
  pulled.Note(Worker(0), 0, weights);
  pulled.Note(Worker(1), 0, weights);
  pulled.Note(Worker(2, /*incarnation=*/9), 0, weights);  // The plan has another incarnation.
  pulled.KeepMembers(MakePlan(1, v1::ASYNC, 0, {0, 2}));
  EXPECT_EQ(weights.use_count(), 2);
  EXPECT_EQ(pulled.Take(Worker(0), 0), weights);
}

}  // namespace
}  // namespace rubato::server
