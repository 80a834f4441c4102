#include "common/security/operator_token.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <string>

#include "common/storage/file.h"

namespace rubato {
namespace {

using testing::HasSubstr;

class OperatorTokenTest : public testing::Test {
 protected:
  OperatorTokenTest() {
    std::filesystem::remove_all(run_);
    std::filesystem::create_directories(run_);
  }
  static unsigned ModeOf(const std::string& path) {
    struct stat file = {};
    EXPECT_EQ(stat(path.c_str(), &file), 0);
    return file.st_mode & 0777;
  }

  const std::string run_ = testing::TempDir() + "operator_token";
  const std::string path_ = OperatorTokenPath(run_);
};

TEST_F(OperatorTokenTest, IsMadeOnceForItsOwnerAlone) {
  EXPECT_EQ(ReadOperatorToken(run_).status().code(), absl::StatusCode::kNotFound);
  const auto token = MakeOrReadOperatorToken(run_);
  ASSERT_TRUE(token.ok()) << token.status();
  EXPECT_EQ(token->size(), 64u);
  EXPECT_EQ(ModeOf(path_), 0600u);
  EXPECT_EQ(ModeOf(DirectoryOf(path_)), 0700u);
  EXPECT_EQ(*MakeOrReadOperatorToken(run_), *token);
  EXPECT_EQ(*ReadOperatorToken(run_), *token);
  std::filesystem::remove(path_);
  EXPECT_NE(*MakeOrReadOperatorToken(run_), *token);
}

TEST_F(OperatorTokenTest, IsRefusedWhereOthersCanReadIt) {
  ASSERT_TRUE(MakeOrReadOperatorToken(run_).ok());
  chmod(path_.c_str(), 0640);
  EXPECT_EQ(MakeOrReadOperatorToken(run_).status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(ReadOperatorToken(run_).status().message()), HasSubstr("operator.token: mode 640; allowed"));
  chmod(path_.c_str(), 0600);
  chmod(DirectoryOf(path_).c_str(), 0755);
  EXPECT_THAT(std::string(ReadOperatorToken(run_).status().message()), HasSubstr("credentials: mode 755; allowed"));
}

TEST_F(OperatorTokenTest, IsRefusedIfItIsNone) {
  ASSERT_TRUE(MakeOrReadOperatorToken(run_).ok());
  for (const std::string& text : {std::string(), std::string(63, 'a'), std::string(64, 'g')}) {
    ASSERT_TRUE(WriteFileAtomically(path_, text).ok());
    chmod(path_.c_str(), 0600);
    EXPECT_THAT(std::string(MakeOrReadOperatorToken(run_).status().message()), HasSubstr("is no token")) << text;
  }
}

TEST(SameTokenTest, ComparesEveryCharacter) {
  EXPECT_TRUE(SameToken("abc", "abc"));
  EXPECT_FALSE(SameToken("abc", "abd"));
  EXPECT_FALSE(SameToken("abc", "bbc"));
  EXPECT_FALSE(SameToken("abc", "ab"));
  EXPECT_FALSE(SameToken("", "a"));
}

}  // namespace
}  // namespace rubato
