#include "common/health/standard_services.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "common/health/testing/probe.h"

namespace rubato {
namespace {

using testing::HasSubstr;

class StandardServicesTest : public testing::Test {
 protected:
  static void SetUpTestSuite() { EnableReflection(); }
  StandardServicesTest() {
    auto listener = HealthListener::Create("127.0.0.1:0", &health_);
    EXPECT_TRUE(listener.ok()) << listener.status();
    listener_ = *std::move(listener);
    address_ = absl::StrCat("127.0.0.1:", listener_->port());
  }

  Health health_;
  std::unique_ptr<HealthListener> listener_;
  std::string address_;
};

TEST_F(StandardServicesTest, ProbesSeeWhetherTheTaskServes) {
  EXPECT_EQ(*ProbeHealth(address_, ""), "NOT_SERVING");
  health_.SetServing(true);
  EXPECT_EQ(*ProbeHealth(address_, ""), "SERVING");
  health_.SetServing(false);
  EXPECT_EQ(*ProbeHealth(address_, ""), "NOT_SERVING");
}

TEST_F(StandardServicesTest, AnUnknownServiceIsNotFound) {
  EXPECT_EQ(ProbeHealth(address_, "rubato.v1.None").status().code(), absl::StatusCode::kNotFound);
}

TEST_F(StandardServicesTest, ReflectionListsTheServices) {
  auto services = ProbeServices(address_);
  ASSERT_TRUE(services.ok()) << services.status();
  EXPECT_THAT(*services, HasSubstr("grpc.health.v1.Health"));
}

TEST_F(StandardServicesTest, SaysWhyItCannotListen) {
  EXPECT_EQ(*HealthListener::Create("", &health_), nullptr);
  EXPECT_EQ(HealthListener::Create("7000", &health_).status().code(), absl::StatusCode::kInvalidArgument);
  Health other;
  auto taken = HealthListener::Create(address_, &other);
  EXPECT_EQ(taken.status().code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(taken.status().message()),
              HasSubstr(absl::StrCat("--health_listen: cannot listen on ", address_)));
}

}  // namespace
}  // namespace rubato
