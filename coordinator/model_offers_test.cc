#include "coordinator/model_offers.h"

#include <gmock/gmock.h>
#include <google/protobuf/text_format.h>
#include <gtest/gtest.h>

#include <thread>

#include "common/config/client_job.h"
#include "common/config/load.h"
#include "common/task.h"

namespace rubato::coordinator {
namespace {

using ::testing::HasSubstr;

v1::OfferModelRequest Offer(uint32_t worker, const std::string& more = "") {
  v1::OfferModelRequest offer;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(
      "manifest { groups: 1 tensors { name: \"w\" shape: 3 } } optimizer { algorithm: SGD }", &offer));
  EXPECT_TRUE(google::protobuf::TextFormat::MergeFromString(more, &offer));
  offer.set_protocol_version(kProtocolVersion);
  offer.mutable_task()->set_role(v1::TaskId::WORKER);
  offer.mutable_task()->set_index(worker);
  return offer;
}

class ModelOffersTest : public testing::Test {
 protected:
  ModelOffersTest() : offers_(Config(), &clock_) {}

  static v1::JobConfig Config(const std::string& more = "") {
    absl::StatusOr<v1::JobConfig> config =
        ParseJobConfig("name: \"clients\" cluster { workers: 2 } consistency { mode: SYNC }" + more, "job", {},
                       {.may_await_model = true});
    EXPECT_TRUE(config.ok()) << config.status();
    return config.value_or(v1::JobConfig());
  }
  // The answer goes to `to` when it comes.
  void Send(const v1::OfferModelRequest& offer, std::optional<absl::StatusOr<v1::OfferModelReply>>* to) {
    offers_.Offer(offer, [to](absl::StatusOr<v1::OfferModelReply> answer) { *to = std::move(answer); });
  }
  absl::Status Ask(double seconds, std::optional<absl::StatusOr<v1::GetJobConfigReply>>* to) {
    v1::GetJobConfigRequest request;
    request.set_timeout_seconds(seconds);
    offers_.GetConfig(request, [to](absl::StatusOr<v1::GetJobConfigReply> answer) { *to = std::move(answer); });
    return to->has_value() ? (*to)->status() : absl::OkStatus();
  }

  RealClock clock_;
  ModelOffers offers_;
};

TEST_F(ModelOffersTest, TheFirstCompletesTheConfigAndAllAreAnsweredWhenTheJobHasBegun) {
  std::optional<absl::StatusOr<v1::OfferModelReply>> first, second, third;
  std::optional<absl::StatusOr<v1::GetJobConfigReply>> server;
  EXPECT_TRUE(Ask(60, &server).ok());
  EXPECT_FALSE(offers_.Await(absl::ZeroDuration()).has_value());
  Send(Offer(1), &first);
  ASSERT_TRUE(server.has_value());
  ASSERT_TRUE(server->ok()) << server->status();
  EXPECT_EQ((*server)->config().model().manifest().tensors(0).name(), "w");
  const std::optional<v1::JobConfig> complete = offers_.Await(absl::ZeroDuration());
  ASSERT_TRUE(complete.has_value());
  Send(Offer(0), &second);
  EXPECT_FALSE(first.has_value() || second.has_value());
  offers_.Begin([](const std::string& why) { FAIL() << why; });
  ASSERT_TRUE(first.has_value() && second.has_value());
  EXPECT_EQ((*first)->config().SerializeAsString(), complete->SerializeAsString());
  EXPECT_TRUE(second->ok());
  Send(Offer(2), &third);
  ASSERT_TRUE(third.has_value());
  EXPECT_TRUE(third->ok()) << third->status();
}

TEST_F(ModelOffersTest, ModelsThatDifferAreRefusedAndTheJobIsTold) {
  std::optional<absl::StatusOr<v1::OfferModelReply>> first, second;
  Send(Offer(0), &first);
  Send(Offer(1, "manifest { tensors { name: \"more\" } }"), &second);
  ASSERT_TRUE(second.has_value());
  EXPECT_TRUE(absl::IsInvalidArgument(second->status()));
  EXPECT_EQ(second->status().message(),
            "the model of worker 1 is another one than the job's:\n"
            "tensor 1: no tensor there, but this worker has \"more\" scalar in group 0");
  std::string told;
  offers_.Begin([&](const std::string& why) { told = why; });
  EXPECT_THAT(told, HasSubstr("tensor 1"));
  told.clear();
  Send(Offer(2, "optimizer { algorithm: ADAM }"), &second);
  EXPECT_THAT(told, HasSubstr("optimizer: SGD, but this worker has ADAM"));
}

TEST_F(ModelOffersTest, AnOfferThatIsNoGoodLeavesTheJobAwaiting) {
  std::optional<absl::StatusOr<v1::OfferModelReply>> answer;
  Send(Offer(0, "optimizer { rho: 1 }"), &answer);
  ASSERT_TRUE(answer.has_value());
  EXPECT_THAT(std::string(answer->status().message()), HasSubstr("worker 0: optimizer.rho"));
  v1::OfferModelRequest other = Offer(0);
  other.set_protocol_version(kProtocolVersion + 1);
  Send(other, &answer);
  EXPECT_THAT(std::string(answer->status().message()), HasSubstr("protocol version"));
  EXPECT_FALSE(offers_.Await(absl::ZeroDuration()).has_value());
}

TEST_F(ModelOffersTest, WaitsEnd) {
  std::optional<absl::StatusOr<v1::GetJobConfigReply>> over, ended, wrong;
  EXPECT_TRUE(absl::IsInvalidArgument(Ask(0, &wrong)));
  EXPECT_TRUE(absl::IsInvalidArgument(Ask(61, &wrong)));
  EXPECT_TRUE(Ask(1e-9, &over).ok());
  offers_.Await(absl::Milliseconds(1));
  offers_.Await(absl::Milliseconds(1));
  ASSERT_TRUE(over.has_value());
  EXPECT_TRUE(absl::IsUnavailable(over->status()));
  EXPECT_TRUE(Ask(60, &ended).ok());
  offers_.End(absl::AbortedError("stopped"));
  ASSERT_TRUE(ended.has_value());
  EXPECT_EQ(ended->status().message(), "stopped");
}

TEST(ModelOffersOfOtherJobsTest, AModelOfTheConfigIsNoneOfClients) {
  RealClock clock;
  v1::JobConfig config;
  config.mutable_model()->add_input_shape(3);
  ModelOffers offers(config, &clock);
  absl::Status answer;
  offers.Offer(Offer(0), [&](absl::StatusOr<v1::OfferModelReply> reply) { answer = reply.status(); });
  EXPECT_TRUE(absl::IsFailedPrecondition(answer)) << answer;
}

}  // namespace
}  // namespace rubato::coordinator
