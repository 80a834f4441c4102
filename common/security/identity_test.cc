#include "common/security/identity.h"

#include <gtest/gtest.h>

namespace rubato {
namespace {

TEST(IdentityTest, AUriSaysJobRoleAndIndex) {
  EXPECT_EQ(IdentityUri({"mnist", Party::kWorker, 3}), "rubato://mnist/worker/3");
  EXPECT_EQ(IdentityUri({"mnist", Party::kOperator, 0}), "rubato://mnist/operator/0");
  for (const Party party : {Party::kCoordinator, Party::kServer, Party::kWorker, Party::kEvaluator, Party::kOperator}) {
    const Identity identity = {"a.b-c_d", party, 0};
    auto parsed = ParseIdentityUri(IdentityUri(identity));
    ASSERT_TRUE(parsed.ok()) << parsed.status();
    EXPECT_EQ(parsed->job, "a.b-c_d");
    EXPECT_EQ(parsed->party, party);
    EXPECT_EQ(parsed->index, 0u);
  }
  EXPECT_EQ(ParseIdentityUri("rubato://mnist/server/4294967295")->index, 4294967295u);
}

TEST(IdentityTest, RefusesEveryOtherText) {
  for (const char* text : {"", "rubato://", "rubato://mnist", "rubato://mnist/worker", "rubato:///worker/1",
                           "rubato://mnist/worker/01", "rubato://mnist/worker/-1", "rubato://mnist/worker/4294967296",
                           "rubato://mnist/worker/1/2", "rubato://mnist/boss/1", "rubato://mnist/coordinator/1",
                           "rubato://mnist/operator/7", "https://mnist/worker/1", "rubato://mnist/worker/1 "}) {
    const auto parsed = ParseIdentityUri(text);
    EXPECT_EQ(parsed.status().code(), absl::StatusCode::kInvalidArgument) << text;
  }
}

TEST(IdentityTest, NamesFilesAndSpeaksOfPeople) {
  EXPECT_EQ(CredentialName(Party::kWorker, 3), "worker-3");
  EXPECT_EQ(CredentialName(Party::kCoordinator, 0), "coordinator-0");
  EXPECT_EQ(CredentialName(Party::kOperator, 0), "operator");
  EXPECT_EQ(PartyText(Party::kWorker, 3), "worker 3");
  EXPECT_EQ(PartyText(Party::kCoordinator, 0), "coordinator");
}

}  // namespace
}  // namespace rubato
