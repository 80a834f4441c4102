// Hand-made logs with plan changes, amendments and lost members.

#include <gtest/gtest.h>

#include <string>

#include "absl/strings/match.h"
#include "absl/strings/string_view.h"
#include "cli/audit/log_builder.h"

namespace rubato {
namespace {

void ExpectHeld(const LogBuilder& log) {
  const AuditReport report = log.Audit();
  EXPECT_TRUE(report.held()) << FormatAudit(report);
}

void ExpectBroken(const LogBuilder& log, Invariant invariant, absl::string_view text) {
  const AuditReport report = log.Audit();
  EXPECT_FALSE(report.of(invariant).held()) << FormatAudit(report);
  EXPECT_TRUE(absl::StrContains(report.of(invariant).counterexample, text)) << FormatAudit(report);
}

// ASYNC: worker 0 has done steps 0 to 4, worker 1 is working on step 0.
LogBuilder AsyncLog() {
  LogBuilder log;
  log.Plan({.mode = v1::ASYNC});
  for (int64_t step = 0; step < 5; ++step) log.Push({.worker = 0, .step = step, .base = step, .applied = step + 1});
  return log;
}

// ---- ASYNC to SYNC ----

TEST(LogAuditSwitchTest, EnteringSyncWaitsForTheStepInFlight) {
  LogBuilder log = AsyncLog().Plan({.generation = 2, .mode = v1::SYNC, .first_step = 6});
  log.Push({.worker = 1, .step = 0, .base = 0, .applied = 6});
  log.Sync(6, 7, {0, 1}, 2).Sync(7, 8, {0, 1}, 2);
  ExpectHeld(log);
}

TEST(LogAuditSwitchTest, MemberThatAbandonsItsStepIsNotWaitedFor) {
  ExpectHeld(AsyncLog().Plan({.generation = 2, .mode = v1::SYNC, .first_step = 6}).Sync(6, 6, {0, 1}, 2));
}

TEST(LogAuditSwitchTest, StartBeforeTheStepInFlightWasAppliedIsFound) {
  LogBuilder log = AsyncLog().Plan({.generation = 2, .mode = v1::SYNC, .first_step = 6});
  log.Push({.worker = 1, .step = 0, .base = 0, .applied = 6});
  log.Push({.worker = 0, .step = 6, .base = 5, .applied = 7, .generation = 2});
  log.Push({.worker = 1, .step = 6, .base = 6, .applied = 7, .generation = 2});
  ExpectBroken(log, Invariant::kStaleness,
               "step 6 of worker 0 under SYNC was computed from version 5, when the slowest member's clock was 5; at "
               "least 6 was needed");
}

// ---- to SSP ----

TEST(LogAuditSwitchTest, StepInFlightCountsAsOneShortOfTheFirstStep) {
  LogBuilder log = AsyncLog().Plan({.generation = 2, .mode = v1::SSP, .bound = 1, .first_step = 6});
  log.Push({.worker = 0, .step = 6, .base = 5, .applied = 6, .generation = 2});
  log.Push({.worker = 1, .step = 0, .base = 0, .applied = 7});
  log.Push({.worker = 0, .step = 7, .base = 7, .applied = 8, .generation = 2});
  log.Push({.worker = 1, .step = 6, .base = 7, .applied = 9, .generation = 2});
  ExpectHeld(log);
}

TEST(LogAuditSwitchTest, TooFarAheadOfAStepInFlightIsFoundWhenThatIsApplied) {
  LogBuilder log = AsyncLog().Plan({.generation = 2, .mode = v1::SSP, .bound = 1, .first_step = 6});
  log.Push({.worker = 0, .step = 6, .base = 5, .applied = 6, .generation = 2});
  log.Push({.worker = 0, .step = 7, .base = 6, .applied = 7, .generation = 2});
  ExpectHeld(log);
  log.Push({.worker = 1, .step = 0, .base = 0, .applied = 8});
  ExpectBroken(log, Invariant::kStaleness,
               "step 7 of worker 0 under plan 2 began while step 0 of worker 1 under plan 1 was still to come");
}

TEST(LogAuditSwitchTest, StartsOfTheOldPlanKeepItsBound) {
  LogBuilder log;
  log.Plan({.mode = v1::SSP, .bound = 1});
  log.Push({.worker = 0, .step = 0, .base = 0, .applied = 1});
  log.Push({.worker = 0, .step = 1, .base = 1, .applied = 2});
  log.Plan({.generation = 2, .mode = v1::ASYNC, .first_step = 3});
  log.Push({.worker = 0, .step = 2, .base = 2, .applied = 3});
  ExpectBroken(log, Invariant::kStaleness, "step 2 of worker 0 under SSP(1)");
}

// ---- leaving SYNC ----

TEST(LogAuditSwitchTest, LeavingSyncEverybodyFinishesTheSameLastStep) {
  LogBuilder log;
  log.Plan({.mode = v1::SYNC}).Sync(0, 1, {0, 1}).Plan({.generation = 2, .mode = v1::ASYNC, .first_step = 2});
  log.Sync(1, 2, {0, 1});
  log.Push({.worker = 0, .step = 2, .base = 2, .applied = 3, .generation = 2});
  log.Push({.worker = 0, .step = 3, .base = 3, .applied = 4, .generation = 2});
  log.Push({.worker = 1, .step = 2, .base = 2, .applied = 5, .generation = 2});
  ExpectHeld(log);
}

TEST(LogAuditSwitchTest, UnfinishedSyncStepIsFound) {
  LogBuilder log;
  log.Plan({.mode = v1::SYNC}).Sync(0, 1, {0, 1}).Plan({.generation = 2, .mode = v1::ASYNC, .first_step = 2});
  log.Push({.worker = 0, .step = 2, .base = 1, .applied = 2, .generation = 2});
  ExpectBroken(log, Invariant::kSync, "no update for SYNC step 1 of plan 1 before step 2 of plan 2");
}

// ---- plans ----

TEST(LogAuditPlansTest, GenerationsOnlyGrow) {
  ExpectBroken(AsyncLog().Plan({.generation = 3, .mode = v1::ASYNC, .first_step = 6}).Plan({.generation = 2}),
               Invariant::kPlans, "plan 2 (amendment 0) after plan 3 (amendment 0)");
}

TEST(LogAuditPlansTest, RepeatedPlanRecordIsHarmless) {
  ExpectHeld(AsyncLog().Plan({.mode = v1::ASYNC}).Push({.worker = 0, .step = 5, .base = 5, .applied = 6}));
}

TEST(LogAuditPlansTest, PlanOverStepsThatWereDoneIsFound) {
  ExpectBroken(AsyncLog().Plan({.generation = 2, .mode = v1::ASYNC, .first_step = 4}), Invariant::kPlans,
               "plan 2 begins with step 4, although step 4 belongs to plan 1");
}

TEST(LogAuditPlansTest, OldPlansStepAboveTheNewPlansFirstIsFound) {
  LogBuilder log = AsyncLog().Plan({.generation = 2, .mode = v1::ASYNC, .first_step = 5});
  log.Push({.worker = 0, .step = 5, .base = 5, .applied = 6});
  ExpectBroken(log, Invariant::kPlans, "step 5 of worker 0 was applied under plan 1, which has steps 0 to 4");
}

TEST(LogAuditPlansTest, LostStepIsFound) {
  LogBuilder log = AsyncLog();
  log.Push({.worker = 0, .step = 6, .base = 5, .applied = 6});
  ExpectBroken(log, Invariant::kPlans, "step 6 of worker 0 under plan 1 came where step 5 was its next");
}

TEST(LogAuditPlansTest, NewPlanNotBegunWithItsFirstStepIsFound) {
  LogBuilder log = AsyncLog().Plan({.generation = 2, .mode = v1::ASYNC, .first_step = 6});
  log.Push({.worker = 0, .step = 7, .base = 5, .applied = 6, .generation = 2});
  ExpectBroken(log, Invariant::kPlans, "step 7 of worker 0 under plan 2 came where step 6 was its next");
}

TEST(LogAuditPlansTest, StepsOnlyGrow) {
  LogBuilder log = AsyncLog().Plan({.generation = 2, .mode = v1::ASYNC, .first_step = 8});
  log.Push({.worker = 0, .step = 8, .base = 5, .applied = 6, .generation = 2});
  log.Push({.worker = 0, .step = 6, .base = 6, .applied = 7});
  ExpectBroken(log, Invariant::kPlans, "step 6 of worker 0 was applied as version 7, after its step 8");
}

TEST(LogAuditPlansTest, PushOfAnEarlierPlanThatIsRepeatedIsFound) {
  LogBuilder log = AsyncLog().Plan({.generation = 2, .mode = v1::ASYNC, .first_step = 8});
  log.Push({.worker = 0, .step = 8, .base = 5, .applied = 6, .generation = 2});
  log.Push({.worker = 0, .step = 4, .base = 4, .applied = 7});
  ExpectBroken(log, Invariant::kOnce, "step 4 of worker 0 was applied twice");
}

TEST(LogAuditPlansTest, UpdateUnderAnUnknownPlanIsFound) {
  ExpectBroken(LogBuilder().Push({.worker = 0, .step = 0, .base = 0, .applied = 1}), Invariant::kPlans,
               "was applied under plan 1, which is not in force");
  ExpectBroken(AsyncLog().Push({.worker = 0, .step = 5, .base = 5, .applied = 6, .generation = 9}), Invariant::kPlans,
               "was applied under plan 9");
}

// ---- lost and joining members ----

TEST(LogAuditMembersTest, SyncGoesOnWithoutALostMember) {
  LogBuilder log;
  log.Plan({.mode = v1::SYNC, .members = {0, 1, 2}}).Sync(0, 1, {0, 1, 2});
  log.Plan({.amendment = 1, .mode = v1::SYNC, .members = {0, 2}}).Sync(1, 2, {0, 2});
  ExpectHeld(log);
}

TEST(LogAuditMembersTest, UpdateBeforeTheAmendmentNeedsEverybody) {
  LogBuilder log;
  log.Plan({.mode = v1::SYNC}).Sync(0, 1, {0}).Plan({.amendment = 1, .mode = v1::SYNC, .members = {0}});
  ExpectBroken(log, Invariant::kSync, "has 1 of 2 contributions; missing: worker 1");
}

TEST(LogAuditMembersTest, LatePushOfALostMemberIsFound) {
  LogBuilder log = AsyncLog().Plan({.amendment = 1, .mode = v1::ASYNC, .members = {0}});
  log.Push({.worker = 1, .step = 0, .base = 0, .applied = 6});
  ExpectBroken(log, Invariant::kPlans,
               "step 0 of worker 1 (incarnation 65) was applied under plan 1, of which it is no member");
}

TEST(LogAuditMembersTest, LostMemberNoLongerHoldsOthers) {
  LogBuilder log;
  log.Plan({.mode = v1::SSP, .bound = 1});
  log.Push({.worker = 0, .step = 0, .base = 0, .applied = 1});
  log.Push({.worker = 0, .step = 1, .base = 1, .applied = 2});
  log.Plan({.amendment = 1, .mode = v1::SSP, .bound = 1, .members = {0}});
  log.Push({.worker = 0, .step = 2, .base = 2, .applied = 3});
  ExpectHeld(log);
}

TEST(LogAuditMembersTest, MemberLostWithAStepOfTheOldPlanIsNotWaitedFor) {
  LogBuilder log;
  log.Plan({.mode = v1::SYNC}).Sync(0, 1, {0, 1}).Plan({.generation = 2, .mode = v1::SSP, .bound = 1, .first_step = 2});
  log.Plan({.generation = 2, .amendment = 1, .mode = v1::SSP, .bound = 1, .members = {0}, .first_step = 2});
  log.Sync(1, 2, {0});
  log.Push({.worker = 0, .step = 2, .base = 2, .applied = 3, .generation = 2});
  ExpectHeld(log);
}

TEST(LogAuditMembersTest, JoiningMemberBeginsWithItsPlan) {
  LogBuilder log = AsyncLog().Plan({.generation = 2, .mode = v1::ASYNC, .members = {0, 1, 2}, .first_step = 6});
  log.Push({.worker = 2, .step = 6, .base = 5, .applied = 6, .generation = 2});
  ExpectHeld(log);
  log.Push({.worker = 2, .step = 7, .base = 6, .applied = 7, .generation = 2, .incarnation = 9});
  ExpectBroken(log, Invariant::kPlans, "step 7 of worker 2 (incarnation 9)");
}

TEST(LogAuditMembersTest, AmendmentOnlyTakesAway) {
  ExpectBroken(AsyncLog().Plan({.amendment = 1, .mode = v1::ASYNC, .members = {0, 3}}), Invariant::kPlans,
               "amendment 1 of plan 1 adds a member");
  ExpectBroken(AsyncLog().Plan({.amendment = 1, .mode = v1::SYNC, .members = {0}}), Invariant::kPlans,
               "amendment 1 of plan 1 changes its mode");
}

}  // namespace
}  // namespace rubato
