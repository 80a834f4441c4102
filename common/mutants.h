#ifndef RUBATO_COMMON_MUTANTS_H_
#define RUBATO_COMMON_MUTANTS_H_

// Errors that somebody might make in the rules of consistency. One build of the rules has them all, to choose one when
// it runs (library_with_mutants in //bazel:mutants.bzl); tests/simulation shows that it finds each of them. In every
// other build RUBATO_MUTANT is the constant `false`.
//
//   if (RUBATO_MUTANT(kGateOffByOne)) --step;
//
// Not in headers, which both builds share. A mutant may break rules, not C++: no crash, no endless loop.

// MUTANT(name, the invariant (docs/architecture.md) that it must break, what is wrong).
// clang-format off
#define RUBATO_LIST_MUTANTS(MUTANT)                                                                                    \
  /* Gate. */                                                                                                          \
  MUTANT(kGateOffByOne, "I2", "who is one step behind is not waited for")                                              \
  MUTANT(kBarrierForgetsSlow, "I1", "a step of SYNC does not wait for members that have not begun it")                 \
  MUTANT(kFirstStepNotHeld, "I2", "the first step of a SYNC plan does not wait for pushes of the plan before")         \
  MUTANT(kEntryForgetsWork, "I2", "who works on a step of the plan before counts as done with it")                     \
  MUTANT(kSyncLeftUnfinished, "I1", "a plan after SYNC begins before the steps of SYNC are complete")                  \
  MUTANT(kAnnouncedNotHeld, "I5", "steps begin while a change of plan is announced")                                   \
  MUTANT(kAmendmentKeepsLost, "I4", "the gate keeps the clock of a member that an amendment takes out")                \
  /* Deduper. */                                                                                                       \
  MUTANT(kDeduperForgets, "I3", "the last push is not known as a repeated one")                                        \
  MUTANT(kSyncNotRemembered, "I3", "the pushes of a complete SYNC step are not noted as done")                         \
  MUTANT(kTimeoutAcknowledges, "I3", "an answer that came late acknowledges a push that is in collection")             \
  /* Reducer and quorum. */                                                                                            \
  MUTANT(kReducerTakesTwice, "I1", "a repeated push counts twice in the mean")                                         \
  MUTANT(kReducerReverses, "I1", "contributions are reduced from the last worker to the first")                        \
  MUTANT(kMeanLosesLast, "I1", "the mean is without the last of several contributions")                                \
  MUTANT(kMeanUnweighted, "I1", "each contribution has the weight of one example")                                     \
  MUTANT(kQuorumOfOne, "I1", "with a quorum, a step is complete with its first contribution")                          \
  MUTANT(kLatePushCounts, "I1", "a push that comes after its step is complete goes into the next one")                 \
  MUTANT(kAmendmentClosesNothing, "I4", "a step that waits for a lost member alone is not completed")                  \
  MUTANT(kAbsentCounts, "I1", "contributions without examples count in the mean")                                      \
  MUTANT(kFewAtFullRate, "I1", "an update of fewer batches than its plan's is made at the whole learning rate")        \
  MUTANT(kMeanOfNothingKeeps, "I1", "the mean of nothing is what the weights were")                                    \
  MUTANT(kLastHyperparameters, "I1", "the hyperparameters of the member with the highest index hold")                  \
  MUTANT(kDisagreementUnnoticed, "I1", "nobody is told that members push with different hyperparameters")              \
  MUTANT(kGroupsConfused, "I1", "what a push says of one group holds for all")                                         \
  MUTANT(kMeanLeavesSync, "I1", "a job of means goes to SSP or ASYNC")                                                 \
  /* Plans. */                                                                                                         \
  MUTANT(kFirstStepOffByOne, "I5", "a plan begins with the highest step that was begun")                               \
  MUTANT(kDecidesOnFirstAnswer, "I5", "a plan is decided when one server holds new steps")                             \
  MUTANT(kLostWorkerStays, "I4", "a lost worker is a member of the next plan")                                         \
  MUTANT(kAnnouncesBeforeEntered, "I3", "a plan is announced before all members have entered the present one")         \
  MUTANT(kAmendmentKeepsNumber, "I5", "an amendment has the number of the one before")                                 \
  MUTANT(kStaleAnnouncementHolds, "I4", "an announcement that comes after its plan holds new steps")                   \
  MUTANT(kOldAmendmentTaken, "I5", "servers take an amendment that a newer one has overtaken")                         \
  MUTANT(kOldPlanTaken, "I5", "servers take a plan that a newer one has overtaken")                                    \
  /* Journal and recovery. */                                                                                          \
  MUTANT(kPlanSentBeforeJournal, "I5", "a plan is sent before it is in the journal")                                   \
  MUTANT(kPlanNotDurable, "I5", "a plan is sent before it is on the disk")                                             \
  MUTANT(kAnnouncementNotReplayed, "I4", "a restarted coordinator does not know what it has announced")                \
  MUTANT(kLeaseNotReplayed, "I7", "a restarted coordinator does not know who has which shard")                         \
  MUTANT(kFinishedNotReplayed, "I7", "a restarted coordinator does not know which shards are finished")                \
  MUTANT(kCutNotReplayed, "I7", "a restarted coordinator does not know of complete checkpoints")                       \
  /* Terms and rollback. */                                                                                            \
  MUTANT(kTermNotReplayed, "I7", "a restarted coordinator speaks in the first term")                                   \
  MUTANT(kRollbackKeepsTerm, "I7", "a rollback begins no term")                                                        \
  MUTANT(kRollbackKeepsName, "I7", "the job has the same name on the data path after a rollback")                      \
  MUTANT(kRollbackForgetsGenerations, "I5", "generations begin again after a rollback")                                \
  MUTANT(kOldTermRegisters, "I7", "tasks of before a rollback may register")                                           \
  MUTANT(kRestoreForgetsVersion, "I7", "restored chunks begin with version 0")                                         \
  /* Cuts. */                                                                                                          \
  MUTANT(kCutIgnoresMembers, "I7", "a chunk is captured before members have finished the steps before")                \
  MUTANT(kCutHoldsNothing, "I7", "pushes are applied before the chunk is captured")                                    \
  MUTANT(kHeldPushTaken, "I7", "a push that is held is applied as soon as anything has changed")                       \
  MUTANT(kCutBeforeAllParts, "I7", "a cut is complete before its parts are on disks")                                  \
  MUTANT(kCutForgetsWorkers, "I7", "a cut is complete without the parts of workers")                                   \
  MUTANT(kCutTakesOldProgress, "I7", "parts of the cut before count for this one")                                     \
  MUTANT(kCutForgetsPositions, "I7", "what workers say of their shards is not noted")                                  \
  MUTANT(kCutTakesLaterShards, "I7", "shards that were given out after the cut are in it")                             \
  /* Shards of data. */                                                                                                \
  MUTANT(kReturnedShardStays, "I7", "a shard that was given back is given out again and again")                        \
  MUTANT(kFinishedShardForgotten, "I7", "finished shards are not noted as such")                                       \
  MUTANT(kLastShardForgotten, "I8", "the data counts as used up before its last shard is trained")                     \
  MUTANT(kFirstPlaceKept, "I8", "servers keep the first place in the data that a worker tells them")                   \
  MUTANT(kLostPlaceForgotten, "I8", "the shards of a lost worker are given out again from their beginning")            \
  MUTANT(kReturnsBeforeServersKnow, "I8", "the shards of a lost worker are given out before all servers know")         \
  MUTANT(kReturnNotReplayed, "I8", "a restarted coordinator does not know how far lost workers came")                  \
  MUTANT(kGoesOnAfterPowerCut, "I8", "a coordinator that has lost leases with the power goes on")                      \
  MUTANT(kRestoredShardFromStart, "I7", "a shard of which a part is in the cut is given out whole")                    \
  /* The worker's steps. */                                                                                            \
  MUTANT(kKeepsAbandonedWeights, "I3", "a worker that was moved begins with weights of the step that it left")         \
  MUTANT(kIgnoresMoveInFlight, "I3", "weights that come after a move count for the step that it moved to")             \
  MUTANT(kPushesUnderNextPlan, "I3", "a push has the generation of the step after it")                                 \
  MUTANT(kResendsAsNextStep, "I3", "a push that is sent again has the number of the step after it")                    \
  MUTANT(kResendForgetsPush, "I5", "after a broken stream, weights are asked for and the push is not repeated")        \
  MUTANT(kPendingPushForgotten, "I5", "a push that is still held counts as done")                                      \
  /* Rows of tables. */                                                                                                \
  MUTANT(kRepeatedKeyLost, "I1", "of a key that is twice in a batch only the last gradient counts")                    \
  MUTANT(kLastShardLost, "I7", "keys of a table's last shard are not sent")                                            \
  MUTANT(kMissingKeyShifts, "I1", "a key that members share shifts the later gradients of all but the first")          \
  MUTANT(kMeanOfPushers, "I1", "the mean of a key is over those alone who have pushed keys of its shard")              \
  MUTANT(kMissingRowReadsZero, "I1", "a row that nobody has pushed reads as 0")                                        \
  MUTANT(kKeyZeroIsNone, "I1", "key 0 stands for no key, of which there is never a row")                               \
  MUTANT(kLookupInserts, "I7", "who reads a row that nobody has pushed makes it")                                      \
  MUTANT(kRowsDrawnAnew, "I1", "after a rollback the same key has other initial weights")                              \
  MUTANT(kTornRows, "I7", "a cut has the weights of rows without what the optimizer keeps of them")                    \
  MUTANT(kRestoresOneShard, "I7", "of a table's shards on one server only the first comes back")
// clang-format on

namespace rubato {

enum class Mutant {
  kNone,
#define RUBATO_NAME_MUTANT(name, invariant, what) name,
  RUBATO_LIST_MUTANTS(RUBATO_NAME_MUTANT)
#undef RUBATO_NAME_MUTANT
};

#ifdef RUBATO_WITH_MUTANTS
inline thread_local Mutant chosen_mutant = Mutant::kNone;
#define RUBATO_MUTANT(name) (::rubato::chosen_mutant == ::rubato::Mutant::name)
#else
// Takes a mutant, so that every build refuses one that is not in the list.
constexpr bool NeverChosen(Mutant) { return false; }
#define RUBATO_MUTANT(name) ::rubato::NeverChosen(::rubato::Mutant::name)
#endif

}  // namespace rubato

#endif  // RUBATO_COMMON_MUTANTS_H_
