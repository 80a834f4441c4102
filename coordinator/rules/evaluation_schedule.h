#ifndef RUBATO_COORDINATOR_RULES_EVALUATION_SCHEDULE_H_
#define RUBATO_COORDINATOR_RULES_EVALUATION_SCHEDULE_H_

#include <cstdint>
#include <map>
#include <optional>

#include "proto/coordinator.pb.h"
#include "proto/journal.pb.h"

namespace rubato::coordinator {

// When held-out accuracy is measured: each time that the job has passed another `every_epochs`, and at its end. One
// evaluation at a time; what becomes due meanwhile is one evaluation afterwards. Pure.
class EvaluationSchedule {
 public:
  struct Entry {
    v1::Evaluate request;
    bool final = false;
    bool done = false;
    v1::EvaluationResult result;
  };

  explicit EvaluationSchedule(double every_epochs) : every_epochs_(every_epochs) {}

  // The evaluation to ask for now, if any; it is then pending. `at_step` as in v1::Evaluate.
  std::optional<v1::Evaluate> Due(double epoch, int64_t at_step);
  // The evaluation of the job's last weights; it takes the place of a pending one. The same on each call.
  v1::Evaluate Final(double epoch);
  // Null when the evaluation is unknown or has its result.
  const Entry* OnResult(const v1::EvaluationResult& result);
  void Restore(const v1::JournalEvaluation& record);
  // The job went back to this position: what was measured later, or asked for, is forgotten.
  void GoBack(double epoch);

  // The evaluation whose result is missing, null if there is none.
  const v1::Evaluate* pending() const;
  bool FinalDone() const { return final_id_ != 0 && entries_.at(final_id_).done; }
  // The last good result; null when there is none.
  const v1::EvaluationResult* last_result() const;

 private:
  Entry& Add(double epoch, int64_t at_step, bool final);

  const double every_epochs_;
  // By evaluation_id.
  std::map<uint64_t, Entry> entries_;
  uint64_t final_id_ = 0;
  uint64_t last_result_id_ = 0;
};

}  // namespace rubato::coordinator

#endif  // RUBATO_COORDINATOR_RULES_EVALUATION_SCHEDULE_H_
