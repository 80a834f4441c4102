#include "common/transport/send_queue.h"

#include <gtest/gtest.h>

#include <string>

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
  ASSERT_TRUE(queue.StartNext(&message));
  EXPECT_EQ(message.Length(), 1u);
  EXPECT_TRUE(queue.writing());
  EXPECT_FALSE(queue.StartNext(&message));
  queue.WriteDone();
  ASSERT_TRUE(queue.StartNext(&message));
  EXPECT_EQ(message.Length(), 2u);
  queue.WriteDone();
  EXPECT_FALSE(queue.StartNext(&message));
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
    ASSERT_TRUE(queue.StartNext(&message));
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
  ASSERT_TRUE(queue.StartNext(&message));
  EXPECT_TRUE(queue.Push(Message(100)));
  EXPECT_EQ(queue.TakeAll().size(), 2u);
  EXPECT_TRUE(queue.empty());
  EXPECT_TRUE(queue.Push(Message(200)));
}

}  // namespace
}  // namespace rubato
