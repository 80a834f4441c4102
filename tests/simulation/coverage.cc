#include "tests/simulation/coverage.h"

namespace rubato::simulation {

std::string NameOf(Reached what) {
  switch (what) {
    case Reached::kCutAfterSync:
      return "a cut after SYNC";
    case Reached::kCutAfterQuorum:
      return "a cut after SYNC with a quorum";
    case Reached::kCutAfterSsp:
      return "a cut after SSP";
    case Reached::kCutAfterAsync:
      return "a cut after ASYNC";
    case Reached::kPushHeldForCut:
      return "a push held for a cut";
    case Reached::kCutComplete:
      return "a complete cut";
    case Reached::kJournalTorn:
      return "a journal cut short by a power cut";
    case Reached::kJournalWithHole:
      return "a journal of which a power cut lost the middle";
    case Reached::kDataUsedUp:
      return "a job that trains all of its data";
    case Reached::kCoordinatorCrashAtTheEnd:
      return "a crash of the coordinator after all data is trained";
    case Reached::kServerCrashAtTheEnd:
      return "a crash of a server after all data is trained";
    case Reached::kDiskFull:
      return "a full disk of the coordinator";
    case Reached::kCoordinatorFroze:
      return "a coordinator that stood still";
    case Reached::kOldCoordinatorSpoke:
      return "a coordinator that speaks after its successor";
    case Reached::kCutAbandoned:
      return "a cut given up";
    case Reached::kCoordinatorCrashInCut:
      return "a crash of the coordinator within a cut";
    case Reached::kWorkerLostInCut:
      return "a worker lost within a cut";
    case Reached::kRollbackToCut:
      return "a rollback to a cut";
    case Reached::kRollbackToBeginning:
      return "a rollback to the beginning";
    case Reached::kRollbackToFewerServers:
      return "a rollback to fewer servers";
    case Reached::kFaultInRollback:
      return "a fault within a rollback";
    case Reached::kTwoFaultsInRollback:
      return "two faults within a rollback";
    case Reached::kCoordinatorCrashInRollback:
      return "a crash of the coordinator within a rollback";
    case Reached::kWorkerRestored:
      return "a worker that goes on from a checkpoint";
    case Reached::kOldRequestRefused:
      return "a request of before a rollback that is refused";
    case Reached::kBegunShardGranted:
      return "a shard given out again from its middle";
    case Reached::kRestOfShardGranted:
      return "the rest of a lost worker's shard given out";
    case Reached::kRollbackToFirstWeights:
      return "a rollback to assigned weights";
    case Reached::kWorkerLostBeforeWeights:
      return "a worker lost before weights were assigned";
    case Reached::kHyperparametersDiffer:
      return "a step in which members push with different hyperparameters";
    case Reached::kHyperparametersOfLaterMember:
      return "a step with the hyperparameters of a member that is not the first";
    case Reached::kMeanOfNothing:
      return "a mean of nothing";
    case Reached::kMeanOfSome:
      return "a mean to which only some contribute";
    case Reached::kMissingRowRead:
      return "a row read that nobody has pushed";
    case Reached::kKeyOfSeveralMembers:
      return "a step in which several members push the same key";
    case Reached::kRowExpired:
      return "a row that expires";
    case Reached::kRowTooMany:
      return "a row removed from a table that has too many";
    case Reached::kRowsRestored:
      return "rows of a table that come from a cut";
    case Reached::kKeyNotAdmitted:
      return "a key pushed too seldom for a row";
    case Reached::kKeyAdmitted:
      return "a key pushed often enough for a row";
    case Reached::kPushCountsRestored:
      return "counts of pushes that come from a cut";
    case Reached::kEnd:
      break;
  }
  return "";
}

}  // namespace rubato::simulation
