#include "cli/launch/job_credentials.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

#include "absl/time/clock.h"
#include "common/security/credentials.h"
#include "common/storage/file.h"

namespace rubato {
namespace {

v1::JobConfig Job(const std::string& run_directory) {
  v1::JobConfig config;
  config.set_name("mnist");
  config.set_run_directory(JoinPath(testing::TempDir(), run_directory));
  config.mutable_cluster()->set_servers(2);
  config.mutable_cluster()->set_workers(3);
  config.mutable_cluster()->set_evaluators(1);
  return config;
}

TEST(JobCredentialsTest, EveryTaskHasAPartAndAnOperator) {
  std::set<std::string> uris;
  for (const Identity& identity : IdentitiesOf(Job(""))) uris.insert(IdentityUri(identity));
  EXPECT_EQ(uris,
            (std::set<std::string>{"rubato://mnist/coordinator/0", "rubato://mnist/evaluator/0",
                                   "rubato://mnist/operator/0", "rubato://mnist/server/0", "rubato://mnist/server/1",
                                   "rubato://mnist/worker/0", "rubato://mnist/worker/1", "rubato://mnist/worker/2"}));
}

TEST(JobCredentialsTest, AreMadeInTheRunDirectory) {
  const v1::JobConfig config = Job("made");
  ASSERT_TRUE(MakeJobCredentials(config, absl::Now()).ok());
  const auto loaded = LoadCredentials(JoinPath(config.run_directory(), "credentials"), "mnist", Party::kWorker, 2,
                                      absl::Now() + absl::Hours(24 * 89));
  EXPECT_TRUE(loaded.ok()) << loaded.status();
}

TEST(JobCredentialsTest, AreNotMadeForAJobThatHasSomeOrWantsNone) {
  v1::JobConfig insecure = Job("insecure");
  insecure.mutable_security()->set_insecure(true);
  EXPECT_TRUE(MakeJobCredentials(insecure, absl::Now()).ok());
  v1::JobConfig has_some = Job("some");
  has_some.mutable_security()->set_credentials("/etc/rubato/credentials");
  EXPECT_TRUE(MakeJobCredentials(has_some, absl::Now()).ok());
  for (const v1::JobConfig& config : {insecure, has_some}) EXPECT_FALSE(FileExists(config.run_directory()));
}

}  // namespace
}  // namespace rubato
