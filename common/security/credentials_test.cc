#include "common/security/credentials.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include "common/security/secret_file.h"
#include "common/security/testing/expect_status.h"
#include "common/storage/file.h"

namespace rubato {
namespace {

const absl::Time kNow = absl::FromUnixSeconds(1'800'000'000);
constexpr absl::Duration kDay = absl::Hours(24);

class CredentialsTest : public testing::Test {
 protected:
  void Write(const std::vector<Identity>& whose, absl::Time begin = kNow, absl::Duration lifetime = 90 * kDay) {
    const absl::Status written = WriteCredentials(folder_, "mnist", whose, {begin, lifetime});
    ASSERT_TRUE(written.ok()) << written;
  }
  absl::StatusOr<Credentials> Load(Party party, uint32_t index, absl::Time now = kNow) {
    return LoadCredentials(folder_, "mnist", party, index, now);
  }
  void Copy(const std::string& from, const std::string& to) {
    ASSERT_TRUE(WriteSecretFile(JoinPath(folder_, to), *ReadFile(JoinPath(folder_, from)), /*replace=*/true).ok());
  }

  const std::string folder_ =
      JoinPath(testing::TempDir(), testing::UnitTest::GetInstance()->current_test_info()->name());
  const std::vector<Identity> whose_ = {{"mnist", Party::kCoordinator, 0},
                                        {"mnist", Party::kWorker, 0},
                                        {"mnist", Party::kWorker, 1},
                                        {"mnist", Party::kOperator, 0}};
};

TEST_F(CredentialsTest, EachFindsItsOwn) {
  EXPECT_FALSE(HasAuthority(folder_));
  Write(whose_);
  EXPECT_TRUE(HasAuthority(folder_));
  for (const Identity& identity : whose_) {
    const auto loaded = Load(identity.party, identity.index);
    ASSERT_TRUE(loaded.ok()) << loaded.status();
    EXPECT_EQ(IdentityUri(loaded->identity), IdentityUri(identity));
    EXPECT_EQ(loaded->expires, kNow + 90 * kDay);
  }
  EXPECT_EQ(Load(Party::kWorker, 1)->key_path, JoinPath(folder_, "worker-1.key"));
}

TEST_F(CredentialsTest, AreRenewedUnderTheSameAuthority) {
  Write(whose_);
  const std::string authority = *ReadFile(JoinPath(folder_, "ca.crt"));
  const absl::Time later = kNow + 80 * kDay;
  Write({{"mnist", Party::kWorker, 1}}, later);
  EXPECT_EQ(*ReadFile(JoinPath(folder_, "ca.crt")), authority);
  EXPECT_EQ(Load(Party::kWorker, 1, later)->expires, later + 90 * kDay);
  EXPECT_EQ(Load(Party::kWorker, 0, later)->expires, kNow + 90 * kDay);
}

TEST_F(CredentialsTest, NobodyIsVouchedForWithoutTheAuthoritysKey) {
  Write(whose_);
  ASSERT_TRUE(RemoveFile(JoinPath(folder_, "ca.key")).ok());
  EXPECT_TRUE(Load(Party::kWorker, 0).ok());
  ExpectStatus(WriteCredentials(folder_, "mnist", whose_, {kNow, kDay}), absl::StatusCode::kFailedPrecondition,
               "ca.key is not there");
}

TEST_F(CredentialsTest, AnExpiredAuthorityVouchesForNobody) {
  Write(whose_);
  ExpectStatus(WriteCredentials(folder_, "mnist", whose_, {kNow + 3651 * kDay, kDay}),
               absl::StatusCode::kFailedPrecondition, "ca.crt: the certificate of its authority has expired");
}

TEST_F(CredentialsTest, ThoseOfAUnitOfSystemdComeFromItsStore) {
  EXPECT_EQ(HowToGetCredentials("/etc/rubato/credentials"), "rubato credentials makes them");
  EXPECT_NE(HowToGetCredentials("/run/credentials/rubato-server@0.service").find("from /etc/credstore"),
            std::string::npos);
}

TEST_F(CredentialsTest, SaysWhatIsMissing) {
  ExpectStatus(Load(Party::kWorker, 0), absl::StatusCode::kNotFound, "ca.crt");
  Write(whose_);
  ExpectStatus(Load(Party::kServer, 0), absl::StatusCode::kNotFound, "server-0.crt");
  ASSERT_TRUE(RemoveFile(JoinPath(folder_, "worker-0.key")).ok());
  ExpectStatus(Load(Party::kWorker, 0), absl::StatusCode::kNotFound, "worker-0.key");
}

TEST_F(CredentialsTest, SaysWhatIsWrong) {
  Write(whose_);
  ExpectStatus(Load(Party::kWorker, 0, kNow + 91 * kDay), absl::StatusCode::kFailedPrecondition,
               "worker-0.crt: has expired on");
  ExpectStatus(LoadCredentials(folder_, "other", Party::kWorker, 0, kNow), absl::StatusCode::kPermissionDenied,
               "is of the job \"mnist\", and the config's name is \"other\"");
  EXPECT_TRUE(LoadCredentials(folder_, "", Party::kWorker, 0, kNow).ok());
  Copy("worker-1.crt", "worker-0.crt");
  ExpectStatus(Load(Party::kWorker, 0), absl::StatusCode::kInvalidArgument,
               "worker-0.key: the private key is not that of the certificate");
  Copy("worker-1.key", "worker-0.key");
  ExpectStatus(Load(Party::kWorker, 0), absl::StatusCode::kPermissionDenied,
               "is the certificate of worker 1, not of worker 0");
  ASSERT_EQ(chmod(JoinPath(folder_, "worker-1.key").c_str(), 0644), 0);
  ExpectStatus(Load(Party::kWorker, 1), absl::StatusCode::kFailedPrecondition, "worker-1.key has mode 0644");
}

TEST_F(CredentialsTest, ThoseOfAnotherAuthorityAreRefused) {
  Write(whose_);
  ASSERT_TRUE(RemoveFile(JoinPath(folder_, "ca.crt")).ok());
  Write({{"mnist", Party::kWorker, 0}});
  EXPECT_TRUE(Load(Party::kWorker, 0).ok());
  ExpectStatus(Load(Party::kWorker, 1), absl::StatusCode::kPermissionDenied,
               "worker-1.crt: is not vouched for by this authority");
}

}  // namespace
}  // namespace rubato
