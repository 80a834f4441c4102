#include "cli/doctor/exchange_probe.h"

#include <gtest/gtest.h>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/wire/exchange_codec.h"

namespace rubato {
namespace {

constexpr absl::Duration kShort = absl::Milliseconds(50);

TEST(ExchangeProbeTest, MeasuresWhatGoesToAServerAndBack) {
  RealClock clock;
  auto server = ProbeServer::Create("127.0.0.1:0");
  ASSERT_TRUE(server.ok()) << server.status();
  auto facts = MeasureExchange(absl::StrCat("127.0.0.1:", (*server)->port()), kShort, &clock);
  ASSERT_TRUE(facts.ok()) << facts.status();
  EXPECT_GT(facts->bytes_per_second, 1e6);
  EXPECT_GT(facts->round_trip, absl::ZeroDuration());
  EXPECT_LT(facts->round_trip, absl::Seconds(5));
}

TEST(ExchangeProbeTest, SaysThatNobodyAnswers) {
  RealClock clock;
  int port = 0;
  {
    auto server = ProbeServer::Create("127.0.0.1:0");
    ASSERT_TRUE(server.ok());
    port = (*server)->port();
  }
  EXPECT_TRUE(absl::IsUnavailable(MeasureExchange(absl::StrCat("127.0.0.1:", port), kShort, &clock).status()));
}

// A parameter server, say, which refuses what is not of its job.
class Refuser : public ExchangeServer::Handler {
 public:
  void OnMessage(std::shared_ptr<Connection> connection, grpc::ByteBuffer&&) override {
    v1::ExchangeReply reply;
    reply.set_outcome(v1::ExchangeReply::REFUSED);
    reply.set_message("this server is not in a job yet");
    connection->Send(EncodeReply(reply, {}), 0);
  }
  void OnClosed(uint64_t) override {}
};

TEST(ExchangeProbeTest, SaysThatSomethingElseAnswers) {
  RealClock clock;
  Refuser refuser;
  auto server = ExchangeServer::Create({.listen = "127.0.0.1:0"}, &refuser);
  ASSERT_TRUE(server.ok());
  const absl::Status status = MeasureExchange(absl::StrCat("127.0.0.1:", (*server)->port()), kShort, &clock).status();
  EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
  EXPECT_TRUE(absl::StrContains(status.message(), "not in a job yet")) << status;
}

}  // namespace
}  // namespace rubato
