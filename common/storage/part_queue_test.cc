#include "common/storage/part_queue.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace rubato {
namespace {

using Result = PartQueue::Result;

v1::Cut CutOf(uint64_t id, const std::string& name) {
  v1::Cut cut;
  cut.set_id(id);
  cut.set_name(name);
  return cut;
}

class PartQueueTest : public testing::Test {
 protected:
  static std::shared_ptr<PendingPart> MakePart(uint64_t id, const std::string& name) {
    auto part = std::make_shared<PendingPart>();
    part->name = name;
    if (id > 0) part->cut = CutOf(id, name);
    part->write = [](const std::function<bool()>&) { return 0; };
    return part;
  }
  std::shared_ptr<const PendingPart> Add(uint64_t id, const std::string& name) {
    auto part = MakePart(id, name);
    queue_.AddCut(part);
    return part;
  }
  // The part of a cut that has begun.
  std::shared_ptr<const PendingPart> AddCut(uint64_t id, const std::string& name) {
    EXPECT_TRUE(queue_.BeginCut(CutOf(id, name)).ok());
    return Add(id, name);
  }
  std::shared_ptr<const PendingPart> AddCheckpoint(const std::string& name) {
    auto part = MakePart(0, name);
    queue_.AddCheckpoint(part);
    return part;
  }
  std::shared_ptr<const PendingPart> Next() { return queue_.Next(now_).part; }
  Result Fail() { return queue_.OnWritten(absl::ResourceExhaustedError("no space left"), now_); }
  Result Succeed() { return queue_.OnWritten(100, now_); }

  absl::Time now_ = absl::UnixEpoch();
  PartQueue queue_{{}};
};

TEST_F(PartQueueTest, SaysHowFarACutIs) {
  EXPECT_EQ(queue_.progress().id(), 0u);
  EXPECT_EQ(queue_.due(), absl::InfiniteFuture());
  ASSERT_TRUE(queue_.BeginCut(CutOf(3, "step12")).ok());
  EXPECT_EQ(queue_.progress().id(), 3u);
  EXPECT_EQ(Next(), nullptr);  // Nothing is captured.
  auto part = AddCut(3, "step12");
  EXPECT_LE(queue_.due(), now_);
  EXPECT_EQ(Next(), part);
  EXPECT_FALSE(queue_.progress().written());
  EXPECT_EQ(Succeed(), Result::kWritten);
  EXPECT_TRUE(queue_.progress().written());
  EXPECT_EQ(queue_.progress().bytes(), 100);
  EXPECT_EQ(Next(), nullptr);
}

TEST_F(PartQueueTest, TriesAgainWithPausesThatDoubleUpToTheLongest) {
  auto part = AddCut(3, "step12");
  absl::Duration pause = absl::Milliseconds(500);
  for (int failures = 1; failures <= 8; ++failures) {
    ASSERT_EQ(Next(), part);
    EXPECT_EQ(Fail(), failures == 1 ? Result::kFailed : Result::kFailedAgain);
    EXPECT_EQ(queue_.progress().problem(), "no space left");
    EXPECT_EQ(queue_.due(), now_ + pause);
    EXPECT_EQ(Next(), nullptr);
    now_ += pause;
    pause = std::min(2 * pause, absl::Seconds(10));
  }
  ASSERT_EQ(Next(), part);
  EXPECT_EQ(Succeed(), Result::kWrittenAtLast);
  EXPECT_EQ(queue_.progress().problem(), "");
  EXPECT_TRUE(queue_.progress().written());
}

TEST_F(PartQueueTest, ANewerCutTakesThePlaceOfOneThatWaits) {
  AddCut(3, "step12");
  auto newer = AddCut(4, "step15");
  EXPECT_EQ(Next(), newer);
  Succeed();
  EXPECT_EQ(Next(), nullptr);
}

TEST_F(PartQueueTest, ACutThatIsBeingWrittenIsFinishedThoughANewerOneCame) {
  auto older = AddCut(3, "step12");
  ASSERT_EQ(Next(), older);
  auto newer = AddCut(4, "step15");
  EXPECT_EQ(Succeed(), Result::kWritten);
  EXPECT_EQ(queue_.progress().id(), 4u);
  EXPECT_FALSE(queue_.progress().written());
  EXPECT_EQ(Next(), newer);
}

TEST_F(PartQueueTest, ACutThatFailsIsNotTriedAgainOnceANewerOneHasBegun) {
  const auto part = AddCut(3, "step12");
  ASSERT_EQ(Next(), part);
  ASSERT_TRUE(queue_.BeginCut(CutOf(4, "step15")).ok());
  EXPECT_EQ(Fail(), Result::kReplaced);
  EXPECT_EQ(queue_.progress().problem(), "");
  EXPECT_EQ(queue_.due(), absl::InfiniteFuture());
}

TEST_F(PartQueueTest, APartOfAnOlderCutIsDropped) {
  ASSERT_TRUE(queue_.BeginCut(CutOf(4, "step15")).ok());
  ASSERT_TRUE(queue_.BeginCut(CutOf(3, "step12")).ok());
  EXPECT_EQ(queue_.progress().id(), 4u);
  AddCut(3, "step12");
  EXPECT_EQ(Next(), nullptr);
}

TEST_F(PartQueueTest, ACutWithAPathForANameIsRefused) {
  EXPECT_EQ(queue_.BeginCut(CutOf(3, "../step1")).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_NE(queue_.progress().problem().find("../step1"), std::string::npos);
  Add(3, "../step1");
  EXPECT_EQ(Next(), nullptr);
  AddCut(4, "stopped");
  EXPECT_EQ(queue_.progress().problem(), "");
}

TEST_F(PartQueueTest, ATaskThatKeepsNothingHasWrittenItAtOnce) {
  ASSERT_TRUE(queue_.BeginCut(CutOf(3, "step12")).ok());
  auto part = MakePart(3, "step12");
  part->write = nullptr;
  queue_.AddCut(part);
  EXPECT_TRUE(queue_.progress().written());
  EXPECT_EQ(queue_.progress().bytes(), 0);
  EXPECT_EQ(Next(), nullptr);
}

TEST_F(PartQueueTest, ACheckpointIsReplacedByOneOfAnotherName) {
  auto first = AddCheckpoint("step0");
  AddCheckpoint("step0");  // A repetition.
  ASSERT_EQ(Next(), first);
  EXPECT_EQ(Fail(), Result::kFailed);
  auto last = AddCheckpoint("final");
  EXPECT_EQ(Next(), last);
  EXPECT_EQ(Succeed(), Result::kWritten);
  EXPECT_EQ(queue_.progress().id(), 0u);
  now_ += absl::Seconds(100);
  EXPECT_EQ(Next(), nullptr);
}

TEST_F(PartQueueTest, ACutThatFailsDoesNotHoldUpACheckpoint) {
  auto cut = AddCut(3, "step12");
  ASSERT_EQ(Next(), cut);
  Fail();
  auto last = AddCheckpoint("final");
  EXPECT_EQ(Next(), last);
  EXPECT_EQ(Succeed(), Result::kWritten);
  EXPECT_FALSE(queue_.progress().written());
  now_ += absl::Seconds(1);
  EXPECT_EQ(Next(), cut);
}

TEST_F(PartQueueTest, OldPartsAreRemovedBeforeAnythingIsWrittenAndNotThoseOfTheLastCut) {
  auto part = AddCut(3, "step12");
  queue_.Keep({"step1"});
  queue_.Keep({"step5", "step9"});
  EXPECT_LE(queue_.due(), now_);
  const PartQueue::Work work = queue_.Next(now_);
  EXPECT_EQ(work.part, nullptr);
  EXPECT_EQ(work.keep, (std::vector<std::string>{"step5", "step9", "step12"}));
  EXPECT_EQ(Next(), part);
}

}  // namespace
}  // namespace rubato
