#include "common/security/secret_file.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include "common/security/testing/expect_status.h"
#include "common/storage/file.h"

namespace rubato {
namespace {

class SecretFileTest : public testing::Test {
 protected:
  static mode_t ModeOf(const std::string& path) {
    struct stat facts = {};
    EXPECT_EQ(stat(path.c_str(), &facts), 0) << path;
    return facts.st_mode & 07777;
  }

  const std::string folder_ =
      JoinPath(testing::TempDir(), testing::UnitTest::GetInstance()->current_test_info()->name());
  const std::string path_ = JoinPath(folder_, "secret");
};

TEST_F(SecretFileTest, IsItsOwnersAlone) {
  const mode_t before = umask(0);
  EXPECT_TRUE(MakeSecretFolder(folder_).ok());
  EXPECT_TRUE(WriteSecretFile(path_, "one", /*replace=*/false).ok());
  umask(before);
  EXPECT_EQ(ModeOf(folder_), 0700u);
  EXPECT_EQ(ModeOf(path_), 0600u);
  EXPECT_EQ(*ReadSecretFile(path_), "one");
}

TEST_F(SecretFileTest, IsReplacedOnlyIfThatIsAskedFor) {
  ASSERT_TRUE(MakeSecretFolder(folder_).ok());
  ASSERT_TRUE(WriteSecretFile(path_, "one", /*replace=*/false).ok());
  ExpectStatus(WriteSecretFile(path_, "two", /*replace=*/false), absl::StatusCode::kAlreadyExists, path_);
  EXPECT_EQ(*ReadSecretFile(path_), "one");
  EXPECT_TRUE(WriteSecretFile(path_, "two", /*replace=*/true).ok());
  EXPECT_EQ(*ReadSecretFile(path_), "two");
  // Nothing else is left there.
  EXPECT_EQ(ListDirectory(folder_)->size(), 1u);
}

TEST_F(SecretFileTest, IsNotReadIfOthersMay) {
  ASSERT_TRUE(MakeSecretFolder(folder_).ok());
  ASSERT_TRUE(WriteSecretFile(path_, "one", /*replace=*/false).ok());
  ASSERT_EQ(chmod(path_.c_str(), 0604), 0);
  ExpectStatus(ReadSecretFile(path_), absl::StatusCode::kFailedPrecondition, "has mode 0604");
  ASSERT_EQ(chmod(path_.c_str(), 0440), 0);
  EXPECT_TRUE(ReadSecretFile(path_).ok());
  ExpectStatus(ReadSecretFile(JoinPath(folder_, "none")), absl::StatusCode::kNotFound, "none");
}

}  // namespace
}  // namespace rubato
