// Hand-made logs under one plan: each invariant held, and broken in each way.

#include <gtest/gtest.h>

#include <string>

#include "absl/strings/match.h"
#include "absl/strings/string_view.h"
#include "cli/audit/log_builder.h"

namespace rubato {
namespace {

void ExpectBroken(const AuditReport& report, Invariant invariant, absl::string_view text) {
  EXPECT_FALSE(report.of(invariant).held()) << FormatAudit(report);
  EXPECT_TRUE(absl::StrContains(report.of(invariant).counterexample, text)) << FormatAudit(report);
}

void ExpectOnlyBroken(const AuditReport& report, Invariant invariant, absl::string_view text) {
  ExpectBroken(report, invariant, text);
  for (int i = 0; i < AuditReport::kInvariants; ++i) {
    if (i != static_cast<int>(invariant)) {
      EXPECT_TRUE(report.invariants[i].held()) << FormatAudit(report);
    }
  }
}

// ---- SYNC ----

LogBuilder SyncLog() { return LogBuilder().Plan({.mode = v1::SYNC}).Sync(0, 1, {0, 1}).Sync(1, 2, {0, 1}); }

TEST(LogAuditSyncTest, GoodLogHolds) {
  const AuditReport report = SyncLog().Audit();
  EXPECT_TRUE(report.held()) << FormatAudit(report);
  EXPECT_EQ(report.pushes, 4);
  EXPECT_EQ(report.of(Invariant::kSync).checked, 2);
  EXPECT_EQ(report.of(Invariant::kStaleness).checked, 4);
  EXPECT_EQ(report.staleness.at("SYNC").pushes, 4);
  EXPECT_EQ(report.staleness.at("SYNC").clock_staleness_max, 0);
  EXPECT_EQ(report.staleness.at("SYNC").version_staleness_max, 0);
}

TEST(LogAuditSyncTest, ChunksAreIndependent) {
  LogBuilder log;
  log.Plan({.mode = v1::SYNC});
  for (uint32_t worker : {0, 1}) log.Push({.worker = worker, .step = 0, .base = 0, .applied = 1, .chunk = 7});
  for (uint32_t worker : {0, 1}) log.Push({.worker = worker, .step = 1, .base = 1, .applied = 2, .chunk = 7});
  for (uint32_t worker : {0, 1}) log.Push({.worker = worker, .step = 0, .base = 0, .applied = 1, .chunk = 3});
  EXPECT_TRUE(log.Audit().held());
}

TEST(LogAuditSyncTest, MissingContributionIsNamed) {
  ExpectOnlyBroken(SyncLog().Sync(2, 3, {1}).Audit(), Invariant::kSync,
                   "server 0, partition 0, chunk 0: the update for SYNC step 2 (version 3) has 1 of 2 contributions; "
                   "missing: worker 0");
}

TEST(LogAuditSyncTest, LastUpdateCountsUnlessTheLogIsTorn) {
  ExpectBroken(SyncLog().Sync(2, 3, {0}).Sync(3, 4, {0, 1}).Audit(/*torn=*/true), Invariant::kSync, "worker 1");
  const LogBuilder log = SyncLog().Sync(2, 3, {0});
  ExpectBroken(log.Audit(), Invariant::kSync, "missing: worker 1");
  EXPECT_TRUE(log.Audit(/*torn=*/true).held());
}

TEST(LogAuditSyncTest, MemberCountedTwiceIsFound) {
  const AuditReport report = SyncLog().Sync(2, 3, {0, 1, 1}).Audit();
  ExpectBroken(report, Invariant::kSync, "step 2 of worker 1 was counted twice in one update");
  ExpectBroken(report, Invariant::kOnce, "step 2 of worker 1 was applied twice, the second time as version 3");
}

TEST(LogAuditSyncTest, TwoUpdatesForAStepAreFound) {
  const AuditReport report = SyncLog().Sync(1, 3, {0, 1}).Audit();
  ExpectBroken(report, Invariant::kSync, "two updates for SYNC step 1: versions 2 and 3");
  ExpectBroken(report, Invariant::kOnce, "step 1 of worker 0 was applied twice");
}

TEST(LogAuditSyncTest, UpdatePerContributionIsFound) {
  LogBuilder log;
  log.Plan({.mode = v1::SYNC});
  log.Push({.worker = 0, .step = 0, .base = 0, .applied = 1});
  log.Push({.worker = 1, .step = 0, .base = 0, .applied = 2});
  const AuditReport report = log.Audit();
  EXPECT_EQ(report.of(Invariant::kSync).violations, 3);
  ExpectBroken(report, Invariant::kSync, "step 0 (version 1) has 1 of 2 contributions; missing: worker 1");
}

TEST(LogAuditSyncTest, SkippedStepIsFound) {
  const AuditReport report = SyncLog().Sync(3, 3, {0, 1}).Audit();
  ExpectBroken(report, Invariant::kSync, "an update for SYNC step 3 where step 2 was next");
  ExpectBroken(report, Invariant::kPlans, "step 3 of worker 0 under plan 1 came where step 2 was its next");
}

TEST(LogAuditSyncTest, StrangersContributionIsFound) {
  LogBuilder log = SyncLog().Sync(2, 3, {0, 1});
  log.Push({.worker = 5, .step = 2, .base = 2, .applied = 3});
  ExpectBroken(log.Audit(), Invariant::kSync, "step 2 of worker 5 (incarnation 69) was applied under plan 1");
}

TEST(LogAuditSyncTest, DroppedContributionWithoutQuorumIsFound) {
  LogBuilder log = SyncLog();
  log.Push({.worker = 0, .step = 2, .base = 2, .applied = 2, .ineffective = true});
  ExpectBroken(log.Audit(), Invariant::kSync, "step 2 of worker 0 was dropped");
}

TEST(LogAuditSyncTest, GradientOfOldWeightsIsFound) {
  LogBuilder log = SyncLog();
  log.Push({.worker = 0, .step = 2, .base = 2, .applied = 3});
  log.Push({.worker = 1, .step = 2, .base = 1, .applied = 3});
  ExpectOnlyBroken(log.Audit(), Invariant::kStaleness, "step 2 of worker 1 was computed from version 1");
}

// ---- SYNC with a quorum ----

LogBuilder QuorumLog() {
  LogBuilder log;
  log.Plan({.mode = v1::SYNC, .quorum = 2, .members = {0, 1, 2}}).Sync(0, 1, {0, 1}).Sync(1, 2, {0, 1});
  return log;
}

TEST(LogAuditQuorumTest, LateContributionsAreDroppedAndSkipAhead) {
  LogBuilder log = QuorumLog();
  log.Push({.worker = 2, .step = 0, .base = 0, .applied = 2, .ineffective = true});
  log.Sync(2, 3, {1, 2}).Sync(3, 4, {1, 2});
  log.Push({.worker = 0, .step = 2, .base = 2, .applied = 4, .ineffective = true});
  const AuditReport report = log.Audit();
  EXPECT_TRUE(report.held()) << FormatAudit(report);
}

TEST(LogAuditQuorumTest, TooFewContributionsAreFound) {
  ExpectOnlyBroken(QuorumLog().Sync(2, 3, {0}).Sync(3, 4, {0, 1}).Audit(), Invariant::kSync,
                   "has 1 of 2 contributions");
}

TEST(LogAuditQuorumTest, TooFewContributionsAreRightWhereAMemberIsLostOrThePlanIsLeft) {
  LogBuilder lost = QuorumLog();
  lost.Plan({.amendment = 1, .mode = v1::SYNC, .quorum = 2, .members = {0, 2}}).Sync(2, 3, {0}).Sync(4, 4, {0, 2});
  EXPECT_TRUE(lost.Audit().held()) << FormatAudit(lost.Audit());
  LogBuilder left = QuorumLog();
  left.Plan({.generation = 2, .mode = v1::ASYNC, .members = {0, 1, 2}, .first_step = 3}).Sync(2, 3, {0});
  EXPECT_TRUE(left.Audit().held()) << FormatAudit(left.Audit());
}

TEST(LogAuditQuorumTest, LateContributionThatIsAppliedIsFound) {
  LogBuilder log = QuorumLog();
  log.Push({.worker = 2, .step = 1, .base = 1, .applied = 3});
  ExpectBroken(log.Audit(), Invariant::kSync, "two updates for SYNC step 1");
}

TEST(LogAuditQuorumTest, ContributionDroppedTooEarlyIsFound) {
  LogBuilder log = QuorumLog();
  log.Push({.worker = 2, .step = 2, .base = 2, .applied = 2, .ineffective = true});
  ExpectOnlyBroken(log.Audit(), Invariant::kSync, "was dropped, although its step was not complete");
}

// ---- SSP ----

// Worker 0 has done steps 0 and 1, worker 1 none; the bound is 2.
LogBuilder SspLog() {
  LogBuilder log;
  log.Plan({.mode = v1::SSP, .bound = 2});
  log.Push({.worker = 0, .step = 0, .base = 0, .applied = 1});
  log.Push({.worker = 0, .step = 1, .base = 1, .applied = 2});
  return log;
}

TEST(LogAuditSspTest, StepAtTheBoundHolds) {
  LogBuilder log = SspLog();
  log.Push({.worker = 0, .step = 2, .base = 2, .applied = 3});
  log.Push({.worker = 1, .step = 0, .base = 0, .applied = 4});
  log.Push({.worker = 0, .step = 3, .base = 4, .applied = 5});
  const AuditReport report = log.Audit();
  EXPECT_TRUE(report.held()) << FormatAudit(report);
  EXPECT_EQ(report.staleness.at("SSP(2)").clock_staleness_max, 2);
  EXPECT_EQ(report.staleness.at("SSP(2)").version_staleness_max, 3);
}

TEST(LogAuditSspTest, StepBeyondTheBoundIsFound) {
  LogBuilder log = SspLog();
  log.Push({.worker = 0, .step = 2, .base = 2, .applied = 3});
  log.Push({.worker = 0, .step = 3, .base = 3, .applied = 4});
  ExpectOnlyBroken(log.Audit(), Invariant::kStaleness,
                   "step 3 of worker 0 under SSP(2) was computed from version 3, when the slowest member's clock was "
                   "0; at least 1 was needed");
}

TEST(LogAuditSspTest, SlowerPushThatCameInTheMeantimeDoesNotExcuse) {
  LogBuilder log = SspLog();
  log.Push({.worker = 0, .step = 2, .base = 2, .applied = 3});
  log.Push({.worker = 1, .step = 0, .base = 0, .applied = 4});
  log.Push({.worker = 0, .step = 3, .base = 3, .applied = 5});
  ExpectOnlyBroken(log.Audit(), Invariant::kStaleness, "step 3 of worker 0 under SSP(2) was computed from version 3");
}

TEST(LogAuditSspTest, WeightsFromTheFutureAreFound) {
  LogBuilder log = SspLog();
  log.Push({.worker = 1, .step = 0, .base = 3, .applied = 3});
  ExpectOnlyBroken(log.Audit(), Invariant::kStaleness,
                   "was computed from version 3; versions 0 (its last step's) to 2");
}

TEST(LogAuditSspTest, WeightsWithoutTheOwnLastStepAreFound) {
  LogBuilder log = SspLog();
  log.Push({.worker = 0, .step = 2, .base = 1, .applied = 3});
  ExpectOnlyBroken(log.Audit(), Invariant::kStaleness,
                   "was computed from version 1; versions 2 (its last step's) to 2");
}

TEST(LogAuditSspTest, LongLogKeepsItsPastShort) {
  LogBuilder log;
  log.Plan({.mode = v1::SSP, .bound = 3});
  for (int64_t step = 0; step < 2000; ++step) {
    log.Push({.worker = 0, .step = step, .base = 2 * step, .applied = 2 * step + 1});
    log.Push({.worker = 1, .step = step, .base = step < 1 ? 0 : 2 * step, .applied = 2 * step + 2});
  }
  EXPECT_TRUE(log.Audit().held());
  log.Push({.worker = 0, .step = 2000, .base = 3990, .applied = 4001});
  ExpectOnlyBroken(log.Audit(), Invariant::kStaleness, "step 2000 of worker 0");
}

// ---- ASYNC, versions and repetitions ----

LogBuilder AsyncLog() {
  LogBuilder log;
  log.Plan({.mode = v1::ASYNC});
  for (int64_t step = 0; step < 5; ++step) log.Push({.worker = 0, .step = step, .base = step, .applied = step + 1});
  return log;
}

TEST(LogAuditAsyncTest, AnyStalenessHoldsAndIsMeasured) {
  LogBuilder log = AsyncLog();
  log.Push({.worker = 1, .step = 0, .base = 0, .applied = 6});
  const AuditReport report = log.Audit();
  EXPECT_TRUE(report.held()) << FormatAudit(report);
  EXPECT_EQ(report.staleness.at("ASYNC").clock_staleness_max, 4);
  EXPECT_EQ(report.staleness.at("ASYNC").version_staleness_max, 5);
  EXPECT_EQ(report.of(Invariant::kStaleness).checked, 0);
}

TEST(LogAuditAsyncTest, EmptyStepsMakeNoVersion) {
  LogBuilder log = AsyncLog();
  log.Push({.worker = 1, .step = 0, .base = 0, .applied = 5, .ineffective = true});
  log.Push({.worker = 1, .step = 1, .base = 5, .applied = 6});
  EXPECT_TRUE(log.Audit().held());
}

TEST(LogAuditAsyncTest, RepeatedPushIsFound) {
  LogBuilder log = AsyncLog();
  log.Push({.worker = 0, .step = 3, .base = 3, .applied = 6});
  ExpectOnlyBroken(
      log.Audit(), Invariant::kOnce,
      "server 0, partition 0, chunk 0: step 3 of worker 0 was applied twice, the second time as version 6");
}

TEST(LogAuditAsyncTest, GapInVersionsIsFound) {
  LogBuilder log = AsyncLog();
  log.Push({.worker = 1, .step = 0, .base = 0, .applied = 7});
  ExpectOnlyBroken(log.Audit(), Invariant::kOnce, "step 0 of worker 1 has version 7 after version 5; 6 was next");
}

TEST(LogAuditAsyncTest, RepeatedVersionIsFound) {
  LogBuilder log = AsyncLog();
  log.Push({.worker = 1, .step = 0, .base = 0, .applied = 5});
  ExpectOnlyBroken(log.Audit(), Invariant::kOnce, "has version 5 after version 5; 6 was next");
}

TEST(LogAuditAsyncTest, LogThatDoesNotBeginWithTheFirstVersionIsFound) {
  LogBuilder log;
  log.Plan({.mode = v1::ASYNC}).Push({.worker = 0, .step = 0, .base = 1, .applied = 2});
  ExpectOnlyBroken(log.Audit(), Invariant::kOnce, "has version 2 after version 0");
}

TEST(LogAuditAsyncTest, ImpossibleNumbersAreFound) {
  for (int64_t number : {int64_t{-1}, INT64_MAX}) {
    LogBuilder log = AsyncLog();
    log.Push({.worker = 1, .step = number, .base = 0, .applied = 6});
    ExpectOnlyBroken(log.Audit(), Invariant::kPlans, "a push with step");
    ExpectBroken(AsyncLog().Plan({.generation = 2, .mode = v1::SSP, .bound = number, .first_step = 9}).Audit(),
                 Invariant::kPlans, "plan 2 has first step 9 and bound");
  }
}

}  // namespace
}  // namespace rubato
