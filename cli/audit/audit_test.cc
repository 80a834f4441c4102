#include "cli/audit/audit.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "absl/strings/match.h"
#include "cli/audit/log_builder.h"
#include "common/storage/file.h"
#include "common/storage/update_log.h"

namespace rubato {
namespace {

class AuditRunTest : public testing::Test {
 protected:
  void SetUp() override {
    run_ = JoinPath(testing::TempDir(),
                    std::string("audit_test_") + testing::UnitTest::GetInstance()->current_test_info()->name());
    ASSERT_TRUE(MakeDirectories(run_).ok());
    const std::vector<std::string> names = *ListDirectory(run_);
    for (const std::string& name : names) ASSERT_TRUE(RemoveFile(JoinPath(run_, name)).ok());
  }

  void Write(uint32_t server, const LogBuilder& builder, const std::string& job = "job") {
    v1::LogHeader header;
    header.set_job_name(job);
    header.set_server(server);
    auto log = UpdateLogWriter::Create(JoinPath(run_, UpdateLogName(server, 0)), header);
    ASSERT_TRUE(log.ok()) << log.status();
    for (const v1::UpdateLogRecord& record : builder.records()) ASSERT_TRUE((*log)->Append(record).ok());
    ASSERT_TRUE((*log)->Close().ok());
  }

  static LogBuilder Good(uint32_t chunk, int64_t bound = 1) {
    LogBuilder log;
    log.Plan({.mode = v1::SSP, .bound = bound});
    log.Push({.worker = 0, .step = 0, .base = 0, .applied = 1, .chunk = chunk});
    log.Push({.worker = 1, .step = 0, .base = 0, .applied = 2, .chunk = chunk});
    return log;
  }

  std::string run_;
};

TEST_F(AuditRunTest, AddsUpAllLogs) {
  Write(0, Good(0));
  Write(1, Good(1));
  const absl::StatusOr<AuditReport> report = AuditRun(run_);
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_TRUE(report->held()) << FormatAudit(*report);
  EXPECT_EQ(report->logs, 2);
  EXPECT_EQ(report->chunks, 2);
  EXPECT_EQ(report->plans, 1);
  EXPECT_EQ(report->pushes, 4);
  EXPECT_TRUE(report->notes.empty());
  EXPECT_TRUE(absl::StartsWith(FormatAudit(*report), "All invariants held: 4 pushes to 2 chunks under 1 plans"));
}

TEST_F(AuditRunTest, ReportsTheFirstCounterexampleAsTextAndJson) {
  Write(0, Good(0));
  Write(1, Good(1).Push({.worker = 0, .step = 0, .base = 1, .applied = 3, .chunk = 1}));
  const absl::StatusOr<AuditReport> report = AuditRun(run_);
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_FALSE(report->held());
  EXPECT_TRUE(absl::StrContains(FormatAudit(*report), "first: server 1, partition 0, chunk 1: step 0 of worker 0"))
      << FormatAudit(*report);
  const auto json = nlohmann::json::parse(AuditJson(*report));
  EXPECT_EQ(json["held"], false);
  ASSERT_EQ(json["invariants"].size(), 4u);
  EXPECT_EQ(json["invariants"][2]["id"], "I3");
  EXPECT_EQ(json["invariants"][2]["violations"], 1);
  EXPECT_EQ(json["invariants"][0]["held"], true);
  EXPECT_EQ(json["staleness"][0]["mode"], "SSP(1)");
  EXPECT_EQ(json["pushes"], 5);
}

TEST_F(AuditRunTest, ChunkInTwoLogsIsFound) {
  Write(0, Good(0));
  Write(1, Good(0));
  const absl::StatusOr<AuditReport> report = AuditRun(run_);
  EXPECT_TRUE(absl::StrContains(report->of(Invariant::kOnce).counterexample, "chunk 0 is in two logs"))
      << FormatAudit(*report);
}

TEST_F(AuditRunTest, ServersThatWereToldDifferentPlansAreFound) {
  Write(0, Good(0, 1));
  Write(1, Good(1, 2));
  const absl::StatusOr<AuditReport> report = AuditRun(run_);
  EXPECT_TRUE(absl::StrContains(report->of(Invariant::kPlans).counterexample,
                                "plan 1: server 0, partition 0 says SSP(1) with quorum 0 from step 0, server 1"))
      << FormatAudit(*report);
}

TEST_F(AuditRunTest, TornLogIsNoted) {
  Write(0, Good(0));
  const std::string path = JoinPath(run_, UpdateLogName(0, 0));
  const std::string bytes = *ReadFile(path);
  ASSERT_TRUE(WriteFileAtomically(path, bytes.substr(0, bytes.size() - 3)).ok());
  const absl::StatusOr<AuditReport> report = AuditRun(run_);
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_TRUE(report->held());
  EXPECT_EQ(report->notes, std::vector<std::string>{"updates-server0-partition0.log ends in the middle of a record"});
}

TEST_F(AuditRunTest, MissingLogIsNoted) {
  Write(0, Good(0));
  ASSERT_TRUE(WriteFileAtomically(JoinPath(run_, "job.textproto"),
                                  "name: 'job' cluster { servers: 2 partitions_per_server: 1 }")
                  .ok());
  EXPECT_EQ(AuditRun(run_)->notes, std::vector<std::string>{"updates-server1-partition0.log is missing"});
}

TEST_F(AuditRunTest, RunWithoutLogsIsNotFound) {
  const absl::Status status = AuditRun(run_).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
  EXPECT_TRUE(absl::StrContains(status.message(), "cluster.update_log")) << status;
  EXPECT_EQ(AuditRun("/no/such/run").status().code(), absl::StatusCode::kNotFound);
}

TEST_F(AuditRunTest, CorruptLogAndForeignLogAreDataLoss) {
  Write(0, Good(0));
  Write(1, Good(1), "other");
  EXPECT_EQ(AuditRun(run_).status().code(), absl::StatusCode::kDataLoss);
  ASSERT_TRUE(RemoveFile(JoinPath(run_, UpdateLogName(1, 0))).ok());
  const std::string path = JoinPath(run_, UpdateLogName(0, 0));
  const std::string bytes = *ReadFile(path);
  ASSERT_TRUE(WriteFileAtomically(JoinPath(run_, UpdateLogName(3, 0)), bytes).ok());
  EXPECT_TRUE(absl::StrContains(AuditRun(run_).status().message(), "its header says updates-server0-partition0.log"));
  ASSERT_TRUE(RemoveFile(JoinPath(run_, UpdateLogName(3, 0))).ok());
  std::string garbled = bytes;
  garbled[garbled.size() / 2] ^= 0x10;
  ASSERT_TRUE(WriteFileAtomically(path, garbled).ok());
  EXPECT_EQ(AuditRun(run_).status().code(), absl::StatusCode::kDataLoss);
}

}  // namespace
}  // namespace rubato
