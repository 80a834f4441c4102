#ifndef RUBATO_TESTS_SIMULATION_COVERAGE_H_
#define RUBATO_TESTS_SIMULATION_COVERAGE_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>

namespace rubato::simulation {

// What runs are to reach, so that what they show means something.
enum class Reached {
  // A chunk was captured for a cut whose plan comes after one of this mode.
  kCutAfterSync,
  kCutAfterQuorum,
  kCutAfterSsp,
  kCutAfterAsync,
  kPushHeldForCut,
  kCutComplete,
  // A power cut left some of what the journal had not synced; a whole record behind a damaged one.
  kJournalTorn,
  kJournalWithHole,
  // The job has trained all of its data. The coordinator, a server died after that, before the last checkpoint.
  kDataUsedUp,
  kCoordinatorCrashAtTheEnd,
  kServerCrashAtTheEnd,
  // The coordinator waited for room on its disk.
  kDiskFull,
  // The coordinator stood still for a while, and went on; one in whose place there was another had something to say.
  kCoordinatorFroze,
  kOldCoordinatorSpoke,
  // Another cut, or a rollback, came before it was complete.
  kCutAbandoned,
  kCoordinatorCrashInCut,
  kWorkerLostInCut,
  kRollbackToCut,
  kRollbackToBeginning,
  // In which the job goes on with fewer servers than before.
  kRollbackToFewerServers,
  // Something else went wrong before the job went on, and once more.
  kFaultInRollback,
  kTwoFaultsInRollback,
  kCoordinatorCrashInRollback,
  // The state of a worker came from a checkpoint.
  kWorkerRestored,
  // Something of before a rollback reached a server that was in the job after it.
  kOldRequestRefused,
  // A shard of data of which a part was trained before the cut is given out again.
  kBegunShardGranted,
  // What a lost worker had not trained of a shard that it had begun is given to another.
  kRestOfShardGranted,
  // A client's job goes back to the weights that one of them assigned; a worker was lost before all were.
  kRollbackToFirstWeights,
  kWorkerLostBeforeWeights,
  // Members of a SYNC step push with different hyperparameters; the one with the lowest index says nothing of them.
  kHyperparametersDiffer,
  kHyperparametersOfLaterMember,
  // A mean to which nobody has pushed anything; to which only some have.
  kMeanOfNothing,
  kMeanOfSome,
  // A row was read that no push had brought; several members have pushed a key in one step; a row was removed, as it
  // had no update for long; one was, as there were too many; rows came from a cut.
  kMissingRowRead,
  kKeyOfSeveralMembers,
  kRowExpired,
  kRowTooMany,
  kRowsRestored,
  // A key was pushed, and not yet often enough for a row; it was now; how often it was came from a cut.
  kKeyNotAdmitted,
  kKeyAdmitted,
  kPushCountsRestored,
  kEnd,
};

// For people.
std::string NameOf(Reached what);

// How often each was reached. Not thread-safe.
class Coverage {
 public:
  void Note(Reached what) { ++counts_[static_cast<size_t>(what)]; }
  int64_t Of(Reached what) const { return counts_[static_cast<size_t>(what)]; }
  void Add(const Coverage& other) {
    for (size_t i = 0; i < counts_.size(); ++i) counts_[i] += other.counts_[i];
  }

 private:
  std::array<int64_t, static_cast<size_t>(Reached::kEnd)> counts_ = {};
};

}  // namespace rubato::simulation

#endif  // RUBATO_TESTS_SIMULATION_COVERAGE_H_
