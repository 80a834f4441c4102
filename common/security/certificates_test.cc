#include "common/security/certificates.h"

#include <gtest/gtest.h>

#include "common/security/testing/expect_status.h"

namespace rubato {
namespace {

const absl::Time kNow = absl::FromUnixSeconds(1'800'000'000);
const Validity kYear = {kNow, absl::Hours(24 * 365)};

KeyPair Authority(const Validity& validity = kYear) { return *MakeAuthority("mnist", validity); }

KeyPair Issue(const KeyPair& authority, const Validity& validity = kYear) {
  return *IssueCertificate(authority, {"mnist", Party::kWorker, 3}, validity);
}

TEST(CertificatesTest, ACertificateSaysWhoseItIs) {
  const KeyPair authority = Authority();
  const auto facts = CheckCertificate(Issue(authority).certificate, authority.certificate, kNow);
  ASSERT_TRUE(facts.ok()) << facts.status();
  EXPECT_EQ(IdentityUri(facts->identity), "rubato://mnist/worker/3");
  EXPECT_EQ(facts->expires, kNow + kYear.lifetime);
}

TEST(CertificatesTest, AnyOfSeveralAuthoritiesMayVouch) {
  const KeyPair before = Authority();
  const KeyPair after = Authority();
  const std::string both = before.certificate + after.certificate;
  EXPECT_TRUE(CheckCertificate(Issue(before).certificate, both, kNow).ok());
  EXPECT_TRUE(CheckCertificate(Issue(after).certificate, both, kNow).ok());
}

TEST(CertificatesTest, RefusesThatOfAnotherAuthority) {
  // Of the same name: the signature tells them apart.
  ExpectStatus(CheckCertificate(Issue(Authority()).certificate, Authority().certificate, kNow),
               absl::StatusCode::kPermissionDenied, "is not vouched for by this authority");
}

TEST(CertificatesTest, NamesTheTimeOfOneThatIsNotValid) {
  const KeyPair authority = Authority({kNow, absl::Hours(24 * 3650)});
  const std::string certificate = Issue(authority, {kNow, absl::Hours(1)}).certificate;
  EXPECT_TRUE(CheckCertificate(certificate, authority.certificate, kNow + absl::Minutes(59)).ok());
  ExpectStatus(CheckCertificate(certificate, authority.certificate, kNow + absl::Hours(1)),
               absl::StatusCode::kFailedPrecondition, "has expired on 2027-01-15 09:00:00 UTC");
  ExpectStatus(CheckCertificate(certificate, authority.certificate, kNow - absl::Hours(1)),
               absl::StatusCode::kFailedPrecondition, "is valid from 2027-01-15 07:55:00 UTC on");
}

TEST(CertificatesTest, AnAuthorityExpiresToo) {
  const KeyPair authority = Authority({kNow, absl::Hours(1)});
  ExpectStatus(CheckCertificate(Issue(authority).certificate, authority.certificate, kNow + absl::Hours(2)),
               absl::StatusCode::kFailedPrecondition, "the certificate of its authority has expired");
}

TEST(CertificatesTest, ATaskCannotVouchForOthers) {
  const KeyPair authority = Authority();
  const KeyPair worker = Issue(authority);
  const auto forged = IssueCertificate(worker, {"mnist", Party::kServer, 0}, kYear);
  ASSERT_TRUE(forged.ok()) << forged.status();
  ExpectStatus(CheckCertificate(forged->certificate, authority.certificate + worker.certificate, kNow),
               absl::StatusCode::kPermissionDenied, "is not vouched for");
}

TEST(CertificatesTest, RefusesWhatIsNone) {
  const KeyPair authority = Authority();
  ExpectStatus(CheckCertificate("nonsense", authority.certificate, kNow), absl::StatusCode::kInvalidArgument,
               "is not a certificate in PEM");
  ExpectStatus(CheckCertificate(Issue(authority).certificate, "nonsense", kNow), absl::StatusCode::kInvalidArgument,
               "the authority's is not a certificate in PEM");
  ExpectStatus(CheckCertificate(authority.certificate, authority.certificate, kNow), absl::StatusCode::kInvalidArgument,
               "it names 0 URIs, not one");
}

TEST(CertificatesTest, AKeyBelongsToItsCertificate) {
  const KeyPair authority = Authority();
  const KeyPair worker = Issue(authority);
  EXPECT_TRUE(CheckKey(worker).ok());
  ExpectStatus(CheckKey({worker.certificate, authority.key}), absl::StatusCode::kInvalidArgument,
               "the private key is not that of the certificate");
  ExpectStatus(CheckKey({worker.certificate, "nonsense"}), absl::StatusCode::kInvalidArgument,
               "is not a private key without a password in PEM");
}

}  // namespace
}  // namespace rubato
