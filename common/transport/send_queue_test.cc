#include "common/transport/send_queue.h"

#include <gtest/gtest.h>

#include <string>

#include "common/wire/bundle.h"

namespace rubato {
namespace {

grpc::ByteBuffer Message(size_t bytes) {
  const grpc::Slice slice(std::string(bytes, 'x'));
  return grpc::ByteBuffer(&slice, 1);
}

TEST(SendQueueTest, GivesOneMessageAtATimeInOrder) {
  SendQueue queue(10000);
  EXPECT_TRUE(queue.Push(Message(1)));
  EXPECT_TRUE(queue.Push(Message(2)));
  grpc::ByteBuffer message;
  ASSERT_EQ(queue.StartNext(&message), 1);
  EXPECT_EQ(message.Length(), 1u);
  EXPECT_TRUE(queue.writing());
  EXPECT_EQ(queue.StartNext(&message), 0);
  queue.WriteDone();
  ASSERT_EQ(queue.StartNext(&message), 1);
  EXPECT_EQ(message.Length(), 2u);
  queue.WriteDone();
  EXPECT_EQ(queue.StartNext(&message), 0);
  EXPECT_FALSE(queue.writing());
}

TEST(SendQueueTest, LetsWhatIsNeededFirstOvertake) {
  SendQueue queue(10000);
  EXPECT_TRUE(queue.Push(Message(5), 7));
  EXPECT_TRUE(queue.Push(Message(1), 2));
  EXPECT_TRUE(queue.Push(Message(6), 7));
  EXPECT_TRUE(queue.Push(Message(2), 2));
  for (size_t bytes : {1, 2, 5, 6}) {
    grpc::ByteBuffer message;
    ASSERT_EQ(queue.StartNext(&message), 1);
    EXPECT_EQ(message.Length(), bytes);
    queue.WriteDone();
  }
}

TEST(SendQueueTest, RefusesWhatWouldPassTheBoundUntilThereIsRoom) {
  SendQueue queue(2 * (100 + SendQueue::kMessageOverheadBytes));
  EXPECT_TRUE(queue.Push(Message(100)));
  EXPECT_FALSE(queue.Push(Message(101)));
  EXPECT_TRUE(queue.Push(Message(100)));
  EXPECT_FALSE(queue.Push(Message(0)));
  grpc::ByteBuffer message;
  ASSERT_EQ(queue.StartNext(&message), 1);
  EXPECT_TRUE(queue.Push(Message(100)));
  EXPECT_EQ(queue.TakeAll().size(), 2u);
  EXPECT_TRUE(queue.empty());
  EXPECT_TRUE(queue.Push(Message(200)));
}

TEST(SendQueueTest, SmallMessagesThatWaitTravelTogetherToWhoTakesBundles) {
  SendQueue queue(size_t{1} << 30);
  queue.AllowBundles();
  constexpr size_t kLarge = SendQueue::kBundleBytesMax;
  for (size_t bytes : {1, 2, 3}) EXPECT_TRUE(queue.Push(Message(bytes), 5));
  EXPECT_TRUE(queue.Push(Message(kLarge), 6));
  for (size_t bytes : {4, 5}) EXPECT_TRUE(queue.Push(Message(bytes), 7));
  EXPECT_TRUE(queue.Push(Message(kLarge), 1));
  EXPECT_TRUE(queue.Push(Message(SendQueue::kBesideLargeBytesMax), 8));
  // Little goes with a large one that is before it.
  for (int count : {4, 3, 1}) {
    grpc::ByteBuffer message;
    EXPECT_EQ(queue.StartNext(&message), count);
    EXPECT_EQ(IsBundle(&message), count > 1);
    EXPECT_EQ(queue.StartNext(&message), 0);
    queue.WriteDone();
  }
  EXPECT_TRUE(queue.empty());
  EXPECT_TRUE(queue.Push(Message((size_t{1} << 30) - SendQueue::kMessageOverheadBytes)));
}

TEST(SendQueueTest, LittleGoesBeforeALargeMessageOnceIfSoDesired) {
  SendQueue queue(size_t{1} << 30, SendQueue::Little::kBefore);
  queue.AllowBundles();
  constexpr size_t kLarge = SendQueue::kBundleBytesMax;
  EXPECT_TRUE(queue.Push(Message(kLarge), 1));
  for (size_t bytes : {3, 4}) EXPECT_TRUE(queue.Push(Message(bytes), 2));
  EXPECT_TRUE(queue.Push(Message(SendQueue::kBesideLargeBytesMax), 3));
  grpc::ByteBuffer message;
  EXPECT_EQ(queue.StartNext(&message), 2);
  EXPECT_TRUE(queue.large_follows());
  queue.WriteDone();
  // Whatever comes meanwhile.
  EXPECT_TRUE(queue.Push(Message(5), 2));
  EXPECT_EQ(queue.StartNext(&message), 2);
  EXPECT_FALSE(queue.large_follows());
  EXPECT_GT(message.Length(), kLarge);
  queue.WriteDone();
  // A large one with nothing behind it, or nothing little, goes at once.
  EXPECT_TRUE(queue.Push(Message(kLarge), 1));
  EXPECT_EQ(queue.StartNext(&message), 1);
  EXPECT_EQ(message.Length(), kLarge);
  EXPECT_FALSE(queue.large_follows());
  queue.WriteDone();
  EXPECT_EQ(queue.StartNext(&message), 1);
  EXPECT_TRUE(queue.empty());
}

TEST(SendQueueTest, ManyWaitFromSoManyBytesOnUntilNoneWait) {
  SendQueue queue(4 * SendQueue::kManyBytes);
  grpc::ByteBuffer message;
  const auto start_next = [&] {
    queue.WriteDone();
    ASSERT_EQ(queue.StartNext(&message), 1);
  };
  const size_t half = SendQueue::kManyBytes / 2;
  EXPECT_TRUE(queue.Push(Message(half)));
  EXPECT_TRUE(queue.Push(Message(half)));
  start_next();
  // Behind what is being written there is half of it.
  EXPECT_FALSE(queue.many_wait());
  EXPECT_TRUE(queue.Push(Message(half)));
  EXPECT_TRUE(queue.Push(Message(half)));
  start_next();
  EXPECT_TRUE(queue.many_wait());
  start_next();
  EXPECT_TRUE(queue.many_wait());
  start_next();
  EXPECT_FALSE(queue.many_wait());
}

TEST(SendQueueTest, NothingLeavesWhileItIsHeld) {
  SendQueue queue(10000);
  queue.set_held(true);
  EXPECT_TRUE(queue.Push(Message(1)));
  grpc::ByteBuffer message;
  EXPECT_EQ(queue.StartNext(&message), 0);
  EXPECT_FALSE(queue.writing());
  queue.set_held(false);
  EXPECT_EQ(queue.StartNext(&message), 1);
}

}  // namespace
}  // namespace rubato
