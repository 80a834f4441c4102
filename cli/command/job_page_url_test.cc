#include "cli/command/job_page_url.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "common/security/operator_token.h"

namespace rubato {
namespace {

TEST(JobPageUrlTest, HasTheTokenWhereNoServerHearsOfIt) {
  const std::string run = testing::TempDir() + "job_page_url";
  std::filesystem::remove_all(run);
  std::filesystem::create_directories(run);
  const auto token = MakeOrReadOperatorToken(run);
  ASSERT_TRUE(token.ok()) << token.status();
  EXPECT_EQ(JobPageUrl(run).status().code(), absl::StatusCode::kNotFound);
  std::ofstream(run + "/page.address") << "127.0.0.1:8080\n";
  EXPECT_EQ(*JobPageUrl(run), "http://127.0.0.1:8080/#token=" + *token);
}

}  // namespace
}  // namespace rubato
