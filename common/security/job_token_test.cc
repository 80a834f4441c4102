#include "common/security/job_token.h"

#include <gtest/gtest.h>

#include "common/security/secret_file.h"
#include "common/security/testing/expect_status.h"
#include "common/storage/file.h"

namespace rubato {
namespace {

class JobTokenTest : public testing::Test {
 protected:
  const std::string folder_ =
      JoinPath(testing::TempDir(), testing::UnitTest::GetInstance()->current_test_info()->name());
};

TEST_F(JobTokenTest, IsMadeOnceAndStays) {
  ExpectStatus(ReadJobToken(folder_), absl::StatusCode::kNotFound, "job.token");
  ASSERT_TRUE(MakeJobToken(folder_).ok());
  const std::string token = *ReadJobToken(folder_);
  EXPECT_EQ(token.size(), 64u);
  ASSERT_TRUE(MakeJobToken(folder_).ok());
  EXPECT_EQ(*ReadJobToken(folder_), token);
}

TEST_F(JobTokenTest, OfTwoJobsDiffer) {
  ASSERT_TRUE(MakeJobToken(folder_ + "a").ok());
  ASSERT_TRUE(MakeJobToken(folder_ + "b").ok());
  const std::string a = *ReadJobToken(folder_ + "a");
  const std::string b = *ReadJobToken(folder_ + "b");
  EXPECT_FALSE(SameToken(a, b));
  EXPECT_TRUE(SameToken(a, a));
  EXPECT_FALSE(SameToken(a, a.substr(1)));
  EXPECT_FALSE(SameToken(a, ""));
}

TEST_F(JobTokenTest, SomethingElseIsNone) {
  ASSERT_TRUE(MakeSecretFolder(folder_).ok());
  for (const std::string& text : {std::string(), std::string(63, 'a'), std::string(64, 'g'), std::string(65, 'a')}) {
    ASSERT_TRUE(WriteSecretFile(JoinPath(folder_, "job.token"), text, /*replace=*/true).ok());
    ExpectStatus(ReadJobToken(folder_), absl::StatusCode::kDataLoss, "is not a job's token");
  }
}

}  // namespace
}  // namespace rubato
