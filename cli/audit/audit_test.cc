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

  void Write(uint32_t server, const LogBuilder& builder, const std::string& job = "job", uint64_t term = 1) {
    v1::LogHeader header;
    header.set_job_name(job);
    header.set_server(server);
    auto log = UpdateLogWriter::Create(JoinPath(run_, UpdateLogName(server, 0, term)), header);
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

  // Two steps from `first_step` on, of a chunk that has version `version` by then.
  static LogBuilder GoesOn(uint32_t chunk, int64_t first_step, int64_t version, uint64_t generation) {
    LogBuilder log;
    log.Plan({.generation = generation, .first_step = first_step});
    for (int64_t step : {first_step, first_step + 1}) {
      for (uint32_t worker : {0u, 1u}) {
        log.Push({.worker = worker,
                  .step = step,
                  .base = version + step - first_step,
                  .applied = version + step - first_step + 1,
                  .generation = generation,
                  .chunk = chunk});
      }
    }
    return log;
  }

  void ExpectBroken(Invariant invariant, const std::string& text) {
    const absl::StatusOr<AuditReport> report = AuditRun(run_);
    ASSERT_TRUE(report.ok()) << report.status();
    EXPECT_EQ(report->of(invariant).counterexample, text) << FormatAudit(*report);
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

TEST_F(AuditRunTest, EachTermIsHeldToTheRulesOnItsOwn) {
  // Steps 0 to 3, back to 2, then to 3.
  Write(0, GoesOn(0, 0, 0, 1).Plan({.generation = 2, .first_step = 2}).Sync(2, 3, {0, 1}, 2).Sync(3, 4, {0, 1}, 2));
  Write(1, GoesOn(1, 0, 0, 1).Plan({.generation = 2, .first_step = 2}));
  Write(0, GoesOn(0, 2, 2, 5), "job", 3);
  // On one server less.
  Write(0, GoesOn(0, 3, 3, 6), "job", 10);
  const absl::StatusOr<AuditReport> report = AuditRun(run_);
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_TRUE(report->held()) << FormatAudit(*report);
  EXPECT_EQ(report->logs, 4);
  EXPECT_EQ(report->chunks, 2);
  EXPECT_EQ(report->plans, 4);
  ASSERT_EQ(report->terms.size(), 3u);
  EXPECT_EQ(report->terms[1].term, 3u);
  EXPECT_EQ(report->terms[1].first_step, 2);
  EXPECT_EQ(report->terms[1].last_step, 3);
  EXPECT_EQ(report->terms[2].term, 10u);
  const std::string text = FormatAudit(*report);
  EXPECT_TRUE(absl::StrContains(text, "  term 1: 12 pushes in 2 logs held, from step 0 to step 3\n")) << text;
  EXPECT_TRUE(absl::StrContains(text, "  term 3: 4 pushes in 1 logs held, from step 2 to step 3\n")) << text;
  EXPECT_TRUE(absl::StrContains(text, "  term 10: 4 pushes in 1 logs held, from step 3 to step 4\n")) << text;
  EXPECT_EQ(nlohmann::json::parse(AuditJson(*report))["terms"][2]["term"], 10);
}

// Steps [first, last] of one worker, each with the batch of its number, and the last one with `last_batch`.
LogBuilder OneWorker(int64_t first, int64_t last, uint64_t generation, int64_t last_batch) {
  LogBuilder log;
  log.Plan({.generation = generation, .mode = v1::ASYNC, .members = {0}, .first_step = first});
  for (int64_t step = first; step <= last; ++step) {
    log.Push({.step = step,
              .base = step,
              .applied = step + 1,
              .generation = generation,
              .shard = 1,
              .batch = step == last ? last_batch : step});
  }
  return log;
}

TEST_F(AuditRunTest, WhatIsTrainedAgainAfterGoingBackIsTrainedOnce) {
  Write(0, OneWorker(0, 5, 1, 5));
  Write(0, OneWorker(3, 7, 2, 7), "job", 2);
  Write(0, OneWorker(3, 4, 3, 4), "job", 3);
  const absl::StatusOr<AuditReport> report = AuditRun(run_);
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_TRUE(report->held()) << FormatAudit(*report);
  EXPECT_EQ(report->examples.trained, 50);
  EXPECT_TRUE(absl::StrContains(FormatAudit(*report), "\n  50 examples were trained\n")) << FormatAudit(*report);
  EXPECT_EQ(nlohmann::json::parse(AuditJson(*report))["examples"]["trained"], 50);
}

TEST_F(AuditRunTest, AnExampleOfTheCheckpointThatIsTrainedAgainIsFound) {
  Write(0, OneWorker(0, 5, 1, 5));
  Write(0, OneWorker(3, 4, 2, 2), "job", 2);
  ExpectBroken(Invariant::kExamples,
               "term 2, server 0, partition 0, chunk 0: step 4 of worker 0 trains examples 20 to 30 of shard 1, and "
               "some of these were trained before");
}

TEST_F(AuditRunTest, ATermThatBeginsWhereNobodyWasIsFound) {
  Write(0, GoesOn(0, 0, 0, 1));
  Write(0, GoesOn(0, 3, 2, 2), "job", 2);
  ExpectBroken(Invariant::kPlans, "term 2 begins with step 3, although the terms before reached step 2");
}

TEST_F(AuditRunTest, AChunkThatBeginsWithAVersionThatItNeverHadIsFound) {
  Write(0, GoesOn(0, 0, 0, 1));
  Write(0, GoesOn(0, 2, 3, 2), "job", 2);
  ExpectBroken(Invariant::kOnce,
               "term 2, server 0, partition 0, chunk 0: begins with version 3, although it had come to 2 in the terms "
               "before");
}

TEST_F(AuditRunTest, AnOldPlanInANewTermIsFound) {
  Write(0, GoesOn(0, 0, 0, 4));
  Write(0, GoesOn(0, 2, 2, 4), "job", 2);
  ExpectBroken(Invariant::kPlans, "term 2, server 0, partition 0: plan 4, although terms before had plan 4");
}

TEST_F(AuditRunTest, APushThatWasComputedBeforeTheTermIsFound) {
  Write(0, GoesOn(0, 0, 0, 1));
  LogBuilder log;
  log.Plan({.generation = 2, .mode = v1::SSP, .bound = 1, .first_step = 2});
  log.Push({.worker = 0, .step = 2, .base = 1, .applied = 3, .generation = 2});
  Write(0, log, "job", 2);
  ExpectBroken(
      Invariant::kStaleness,
      "term 2, server 0, partition 0, chunk 0: step 2 of worker 0 was computed from version 1; versions 2 (its "
      "last step's) to 2 (the last before it) were possible");
}

TEST_F(AuditRunTest, WhatWasLostBeforeATermIsNotHeldAgainstIt) {
  Write(0, GoesOn(0, 0, 0, 1));
  const std::string path = JoinPath(run_, UpdateLogName(0, 0));
  const std::string bytes = *ReadFile(path);
  ASSERT_TRUE(WriteFileAtomically(path, bytes.substr(0, bytes.size() - 3)).ok());
  Write(0, GoesOn(0, 30, 30, 2), "job", 2);
  const absl::StatusOr<AuditReport> report = AuditRun(run_);
  EXPECT_TRUE(report->held()) << FormatAudit(*report);
  EXPECT_TRUE(absl::StrContains(FormatAudit(*report), "note: logs of terms before 2 have lost their ends"))
      << FormatAudit(*report);
}

TEST_F(AuditRunTest, LogsThatAreMissingInATermAreNoted) {
  Write(0, GoesOn(0, 0, 0, 1));
  Write(1, GoesOn(1, 0, 0, 1));
  Write(1, GoesOn(0, 2, 2, 2), "job", 2);
  ASSERT_TRUE(WriteFileAtomically(JoinPath(run_, "job.textproto"),
                                  "name: 'job' cluster { servers: 2 partitions_per_server: 2 }")
                  .ok());
  EXPECT_EQ(AuditRun(run_)->notes, (std::vector<std::string>{"updates-server0-partition1.log is missing",
                                                             "updates-server1-partition1.log is missing",
                                                             "updates-server1-partition1-term2.log is missing"}));
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
  ASSERT_EQ(json["invariants"].size(), 5u);
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
