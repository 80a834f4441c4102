#include "client/link/channel.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <memory>
#include <thread>

namespace rubato::client {
namespace {

using Received = Channel::Received;

class ChannelTest : public ::testing::Test {
 protected:
  ChannelTest() {
    int ends[2];
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
    raw_ = ends[0];
    left_ = std::make_unique<Channel>(ends[0]);
    right_ = std::make_unique<Channel>(ends[1]);
  }

  int raw_;
  std::unique_ptr<Channel> left_, right_;
  Frame frame_;
  std::string error_;
};

TEST_F(ChannelTest, HeldFramesGoWithTheNextOne) {
  left_->Hold(FrameKind::kPush, "first");
  left_->Hold(FrameKind::kPushAbsent, "");
  EXPECT_EQ(right_->Receive(&frame_, 0, &error_), Received::kNothing);
  ASSERT_EQ(left_->Send(FrameKind::kBegin, 3, "third"), "");
  for (const auto& [kind, body] : {std::pair(FrameKind::kPush, "first"), std::pair(FrameKind::kPushAbsent, ""),
                                   std::pair(FrameKind::kBegin, "third")}) {
    ASSERT_EQ(right_->Receive(&frame_, 10, &error_), Received::kFrame);
    EXPECT_EQ(frame_.kind, kind);
    EXPECT_EQ(frame_.body, body);
  }
  EXPECT_EQ(frame_.request, 3u);
  ASSERT_EQ(left_->Send(FrameKind::kSkip, 0, ""), "");
  ASSERT_EQ(right_->Receive(&frame_, 10, &error_), Received::kFrame);
  EXPECT_EQ(frame_.kind, FrameKind::kSkip);
}

TEST_F(ChannelTest, CarriesFramesInOrder) {
  BodyWriter push;
  push.Put(PushBody{.examples = 64, .tensor = 7});
  ASSERT_EQ(left_->Send(FrameKind::kPush, 0, push.body()), "");
  ASSERT_EQ(left_->Send(FrameKind::kBegin, 3, ""), "");

  ASSERT_EQ(right_->Receive(&frame_, 10, &error_), Received::kFrame);
  EXPECT_EQ(frame_.kind, FrameKind::kPush);
  PushBody body;
  BodyReader reader(frame_.body);
  ASSERT_TRUE(reader.Get(&body) && reader.AtEnd());
  EXPECT_EQ(body.examples, 64u);
  EXPECT_EQ(body.tensor, 7u);

  ASSERT_EQ(right_->Receive(&frame_, 10, &error_), Received::kFrame);
  EXPECT_EQ(frame_.kind, FrameKind::kBegin);
  EXPECT_EQ(frame_.request, 3u);
  EXPECT_EQ(frame_.body, "");
  EXPECT_EQ(right_->Receive(&frame_, 0, &error_), Received::kNothing);
}

TEST_F(ChannelTest, DoesNotWaitForWhatIsNoTime) {
  for (const double seconds : {-1.0, std::numeric_limits<double>::quiet_NaN()}) {
    EXPECT_EQ(right_->Receive(&frame_, seconds, &error_), Received::kNothing);
  }
}

TEST_F(ChannelTest, CarriesABodyThatIsLargerThanTheSocketsBuffer) {
  const std::string large(8u << 20, 'x');
  std::string sent = "?";
  std::thread sender([&] { sent = left_->Send(FrameKind::kPut, 1, large); });
  EXPECT_EQ(right_->Receive(&frame_, 10, &error_), Received::kFrame);
  sender.join();
  EXPECT_EQ(sent, "");
  EXPECT_EQ(frame_.body, large);
}

TEST_F(ChannelTest, SaysThatTheOtherEndIsGone) {
  left_.reset();
  EXPECT_EQ(right_->Receive(&frame_, 10, &error_), Received::kClosed);
  EXPECT_NE(right_->Send(FrameKind::kReply, 1, ""), "");
}

TEST_F(ChannelTest, RefusesFramesOfAnotherVersion) {
  const FrameHeader header{.version = kLinkVersion + 1};
  ASSERT_EQ(write(raw_, &header, sizeof(header)), static_cast<ssize_t>(sizeof(header)));
  EXPECT_EQ(right_->Receive(&frame_, 10, &error_), Received::kBad);
  EXPECT_EQ(error_, "library and sidecar are of different versions: a message of version " +
                        std::to_string(kLinkVersion + 1) + ", not " + std::to_string(kLinkVersion));
}

TEST_F(ChannelTest, RefusesALengthThatNoFrameHas) {
  const FrameHeader header{.body_bytes = kBodyBytesMax + 1};
  ASSERT_EQ(write(raw_, &header, sizeof(header)), static_cast<ssize_t>(sizeof(header)));
  EXPECT_EQ(right_->Receive(&frame_, 10, &error_), Received::kBad);
}

TEST_F(ChannelTest, PassesAFileDescriptor) {
  const int memory = memfd_create("test", MFD_CLOEXEC);
  ASSERT_EQ(write(memory, "abc", 3), 3);
  ASSERT_EQ(left_->Send(FrameKind::kDefine, 1, "model", memory), "");
  close(memory);
  ASSERT_EQ(right_->Receive(&frame_, 10, &error_), Received::kFrame);
  const int passed = right_->TakePassed();
  ASSERT_GE(passed, 0);
  EXPECT_EQ(right_->TakePassed(), -1);
  char text[4] = "";
  EXPECT_EQ(pread(passed, text, 3, 0), 3);
  EXPECT_STREQ(text, "abc");
  EXPECT_NE(fcntl(passed, F_GETFD) & FD_CLOEXEC, 0);
  close(passed);
}

TEST(BodyReaderTest, FailsOnceSomethingIsMissing) {
  BodyWriter writer;
  writer.Put(uint32_t{5}).Text("abc");
  BodyReader reader(writer.body());
  uint64_t too_much[4];
  EXPECT_FALSE(reader.Get(&too_much));
  uint32_t number = 0;
  EXPECT_FALSE(reader.Get(&number));
  EXPECT_FALSE(reader.AtEnd());
}

}  // namespace
}  // namespace rubato::client
