#include "common/security/metrics_token.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>

#include "common/security/token_file.h"

namespace rubato {
namespace {

using testing::HasSubstr;

class MetricsTokenTest : public testing::Test {
 protected:
  MetricsTokenTest() { std::filesystem::remove_all(folder_); }

  const std::string folder_ = testing::TempDir() + "metrics_token";
};

TEST_F(MetricsTokenTest, OnLoopbackNobodyIsAsked) {
  for (const char* listen : {"", "127.0.0.1:0", "localhost:9100", "[::1]:9100"}) {
    EXPECT_EQ(TokenForMetrics(folder_, listen).value(), "") << listen;
  }
  EXPECT_FALSE(std::filesystem::exists(folder_));
}

TEST_F(MetricsTokenTest, ElsewhereTheTasksOfOneMachineHaveOne) {
  const auto token = TokenForMetrics(folder_, "0.0.0.0:9100");
  ASSERT_TRUE(token.ok()) << token.status();
  EXPECT_EQ(token->size(), 64u);
  EXPECT_EQ(TokenForMetrics(folder_, "[::]:0").value(), *token);
  struct stat facts = {};
  ASSERT_EQ(stat(MetricsTokenPath(folder_).c_str(), &facts), 0);
  EXPECT_EQ(facts.st_mode & 07777, 0600u);
}

TEST_F(MetricsTokenTest, AnInsecureJobAsksNobody) {
  v1::JobConfig config;
  config.set_run_directory(folder_);
  EXPECT_EQ(TokenForMetrics(config, "0.0.0.0:9100")->size(), 64u);
  config.mutable_security()->set_insecure(true);
  EXPECT_EQ(TokenForMetrics(config, "0.0.0.0:9100").value(), "");
  EXPECT_EQ(TokenForMetrics("", "0.0.0.0:9100").value(), "");
}

TEST_F(MetricsTokenTest, WithCertificatesItIsBroughtAsTheyAre) {
  std::filesystem::create_directories(folder_);
  std::ofstream(folder_ + "/ca.crt") << "a certificate";
  const absl::Status missing = TokenForMetrics(folder_, "10.0.0.1:9100").status();
  EXPECT_EQ(missing.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(missing.message()), HasSubstr("--metrics_listen: 10.0.0.1:9100 is not a loopback address"));
  EXPECT_THAT(std::string(missing.message()), HasSubstr(folder_ + "/metrics.token"));
  ASSERT_TRUE(MakeToken(MetricsTokenPath(folder_)).ok());
  EXPECT_EQ(TokenForMetrics(folder_, "10.0.0.1:9100")->size(), 64u);
}

}  // namespace
}  // namespace rubato
