#include "server/held_answers.h"

#include <gtest/gtest.h>

#include <utility>
#include <vector>

#include "server/rules/testing/builders.h"

namespace rubato::server {
namespace {

PartitionReply ReplyOf(uint64_t token, std::vector<uint32_t> chunks) {
  PartitionReply reply;
  reply.token = token;
  reply.chunks = std::move(chunks);
  return reply;
}

std::vector<uint64_t> Tokens(const std::vector<PartitionReply>& replies) {
  std::vector<uint64_t> tokens;
  for (const PartitionReply& reply : replies) tokens.push_back(reply.token);
  return tokens;
}

TEST(HeldAnswersTest, GivesThoseAboutTheSameChunksInOrder) {
  HeldAnswers held;
  EXPECT_TRUE(held.empty());
  held.Hold(Worker(0), ReplyOf(1, {4, 5}));
  held.Hold(Worker(1), ReplyOf(2, {6}));
  held.Hold(Worker(2), ReplyOf(3, {4, 5}));
  EXPECT_EQ(Tokens(held.Take(9)), std::vector<uint64_t>());
  EXPECT_EQ(Tokens(held.Take(4)), std::vector<uint64_t>({1, 3}));
  EXPECT_FALSE(held.empty());
  held.Hold(Worker(0), ReplyOf(4, {4, 5}));
  EXPECT_EQ(Tokens(held.TakeAll()), std::vector<uint64_t>({2, 4}));
  EXPECT_TRUE(held.empty());
}

TEST(HeldAnswersTest, IsFullWithSixteenAboutTheSameChunks) {
  HeldAnswers held;
  for (uint64_t token = 0; token < HeldAnswers::kMost; ++token) {
    EXPECT_FALSE(held.IsFull(4));
    held.Hold(Worker(0), ReplyOf(token, {6}));
    held.Hold(Worker(1), ReplyOf(token, {4, 5}));
  }
  EXPECT_TRUE(held.IsFull(4));
  EXPECT_FALSE(held.IsFull(5));
}

TEST(HeldAnswersTest, KnowsWhetherATaskIsAboutToBeGivenAChunk) {
  HeldAnswers held;
  held.Hold(Worker(0), ReplyOf(1, {4, 5, 6}));
  EXPECT_TRUE(held.Concern(Worker(0), {6, 7}));
  EXPECT_TRUE(held.Concern(Worker(0), {5}));
  EXPECT_TRUE(held.Concern(Worker(0), {2, 4}));
  EXPECT_FALSE(held.Concern(Worker(0), {7}));
  EXPECT_FALSE(held.Concern(Worker(0), {1, 3}));
  EXPECT_FALSE(held.Concern(Worker(0), {}));
  EXPECT_FALSE(held.Concern(Worker(1), {5}));
  EXPECT_FALSE(held.Concern(Worker(0, 2), {5}));
}

}  // namespace
}  // namespace rubato::server
