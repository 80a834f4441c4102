#include "cli/command/job_findings.h"

#include <string>

#include "gmock/gmock.h"
#include "google/protobuf/text_format.h"
#include "gtest/gtest.h"

namespace rubato {
namespace {

using ::testing::HasSubstr;

v1::JobStatus Status(const std::string& text) {
  v1::JobStatus status;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &status));
  status.set_job_name("mnist");
  status.set_lease_seconds(6);
  return status;
}

TEST(JobFindingsTest, AJobThatGoesOnHasNoProblem) {
  const std::vector<Finding> findings = JudgeJob(Status(R"pb(
    phase: TRAINING
    tasks {
      task { role: WORKER }
      state: ALIVE
      seconds_since_heard: 0.5
      progress { step: 12 waiting_seconds: 0.1 }
    }
    tasks {
      task { role: SERVER index: 1 }
      state: ALIVE
    }
    tasks {
      task { role: WORKER index: 1 }
      state: LEFT
    }
  )pb"));
  ASSERT_EQ(findings.size(), 4u);
  for (const Finding& finding : findings) EXPECT_EQ(finding.verdict, Verdict::kOk) << finding.subject;
  EXPECT_EQ(findings[1].subject, "worker 0");
  EXPECT_THAT(findings[1].text, HasSubstr("heard 0.5 s ago, step 12"));
  EXPECT_EQ(findings[2].subject, "server 1");
}

TEST(JobFindingsTest, NamesWhoIsSilentAndWhoWaits) {
  const std::vector<Finding> findings = JudgeJob(Status(R"pb(
    phase: TRAINING
    tasks {
      task { role: WORKER }
      state: ALIVE
      progress { waiting_seconds: 2 waiting_for: "step 7 waits for worker 1 (server 0)" }
    }
    tasks {
      task { role: WORKER index: 1 }
      state: ALIVE
      seconds_since_heard: 3.5
      host_name: "node3"
      process_id: 71
    }
  )pb"));
  ASSERT_EQ(findings.size(), 3u);
  EXPECT_EQ(findings[1].verdict, Verdict::kWarning);
  EXPECT_THAT(findings[1].text, HasSubstr("step 7 waits for worker 1 (server 0), for 2.0 s"));
  EXPECT_EQ(findings[2].verdict, Verdict::kProblem);
  EXPECT_EQ(findings[2].subject, "worker 1");
  EXPECT_EQ(findings[2].text, "is silent for 3.5 s; it is evicted after 6 s");
  EXPECT_THAT(findings[2].next_step, HasSubstr("process 71 of node3"));
}

TEST(JobFindingsTest, NamesWhoIsLostAndWhoNeverCame) {
  const std::vector<Finding> findings = JudgeJob(Status(R"pb(
    phase: FAILED
    error: "server 0 is lost"
    tasks {
      task { role: SERVER }
      state: EVICTED
      reason: "no heartbeat for 6.0 s"
    }
    tasks {
      task { role: EVALUATOR }
      state: MISSING
    }
  )pb"));
  ASSERT_EQ(findings.size(), 3u);
  for (const Finding& finding : findings) {
    EXPECT_EQ(finding.verdict, Verdict::kProblem) << finding.subject;
    EXPECT_FALSE(finding.next_step.empty()) << finding.subject;
  }
  EXPECT_THAT(findings[0].text, HasSubstr("server 0 is lost"));
  EXPECT_THAT(findings[1].text, HasSubstr("no heartbeat for 6.0 s"));
}

}  // namespace
}  // namespace rubato
