#ifndef RUBATO_COORDINATOR_RULES_BARRIERS_H_
#define RUBATO_COORDINATOR_RULES_BARRIERS_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <string>

#include "absl/status/statusor.h"
#include "proto/coordinator.pb.h"
#include "proto/journal.pb.h"

namespace rubato::coordinator {

// Where workers wait for each other, by names. A worker that has come counts, also when it does not wait any more, and
// a round that all have come to lets everybody through who asks later. Pure; not thread-safe. That a round is over goes
// to the journal before anybody is told, so that a coordinator that is started again does not wait for those who have
// gone on.
//
//   RUBATO_ASSIGN_OR_RETURN(Barriers::Answer answer, barriers.Arrive(request));
//   if (answer == Barriers::Answer::kOpens) { ... journal ...; barriers.Pass({name, round}); }
class Barriers {
 public:
  static constexpr size_t kMaxNameBytes = 256;
  static constexpr uint32_t kMaxCount = 1024;
  static constexpr size_t kMaxNames = 65536;

  // kOpens: it is the last one that was missing, until Pass.
  enum class Answer { kPassed, kWaits, kOpens };

  // InvalidArgument names the field; also if others wait there for another number of workers. ResourceExhausted: there
  // are too many names.
  absl::StatusOr<Answer> Arrive(const v1::BarrierRequest& request);
  void Pass(const v1::JournalBarrier& barrier);
  // Whether all have come to this round.
  bool Passed(const std::string& name, uint64_t round) const;
  // "worker 0, worker 2", as text.
  std::string WhoCame(const std::string& name, uint64_t round) const;

 private:
  struct Round {
    uint32_t count = 0;
    std::set<uint32_t> workers;
  };
  struct Barrier {
    // The last round that is over.
    uint64_t passed = 0;
    std::map<uint64_t, Round> open;
  };

  std::map<std::string, Barrier> barriers_;
};

}  // namespace rubato::coordinator

#endif  // RUBATO_COORDINATOR_RULES_BARRIERS_H_
