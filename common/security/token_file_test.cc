#include "common/security/token_file.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include "common/security/secret_file.h"
#include "common/security/testing/expect_status.h"
#include "common/storage/file.h"

namespace rubato {
namespace {

class TokenFileTest : public testing::Test {
 protected:
  const std::string folder_ =
      JoinPath(testing::TempDir(), testing::UnitTest::GetInstance()->current_test_info()->name());
  const std::string path_ = JoinPath(folder_, "some.token");
};

TEST_F(TokenFileTest, IsMadeOnceForItsOwnerAlone) {
  ExpectStatus(ReadToken(path_), absl::StatusCode::kNotFound, "some.token");
  ASSERT_TRUE(MakeToken(path_).ok());
  const std::string token = *ReadToken(path_);
  EXPECT_EQ(token.size(), 64u);
  struct stat file = {};
  ASSERT_EQ(stat(path_.c_str(), &file), 0);
  EXPECT_EQ(file.st_mode & 0777, 0600u);
  ASSERT_TRUE(MakeToken(path_).ok());
  EXPECT_EQ(*ReadToken(path_), token);
}

TEST_F(TokenFileTest, TwoDiffer) {
  ASSERT_TRUE(MakeToken(path_ + "a").ok());
  ASSERT_TRUE(MakeToken(path_ + "b").ok());
  const std::string a = *ReadToken(path_ + "a");
  EXPECT_FALSE(SameToken(a, *ReadToken(path_ + "b")));
  EXPECT_TRUE(SameToken(a, a));
  EXPECT_FALSE(SameToken(a, a.substr(1)));
  EXPECT_FALSE(SameToken(a, ""));
}

TEST_F(TokenFileTest, IsRefusedWhereOthersCanReadIt) {
  ASSERT_TRUE(MakeToken(path_).ok());
  chmod(path_.c_str(), 0604);
  ExpectStatus(ReadToken(path_), absl::StatusCode::kFailedPrecondition, "mode 0604");
}

TEST_F(TokenFileTest, SomethingElseIsNone) {
  ASSERT_TRUE(MakeSecretFolder(folder_).ok());
  for (const std::string& text : {std::string(), std::string(63, 'a'), std::string(64, 'g'), std::string(65, 'a')}) {
    ASSERT_TRUE(WriteSecretFile(path_, text, /*replace=*/true).ok());
    ExpectStatus(ReadToken(path_), absl::StatusCode::kDataLoss, "holds no token");
  }
}

}  // namespace
}  // namespace rubato
