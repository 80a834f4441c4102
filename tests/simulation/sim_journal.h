#ifndef RUBATO_TESTS_SIMULATION_SIM_JOURNAL_H_
#define RUBATO_TESTS_SIMULATION_SIM_JOURNAL_H_

#include <cstddef>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/random.h"
#include "proto/journal.pb.h"

namespace rubato::simulation {

// The bytes of the coordinator's journal, as the real format has them, and how many of them are on the disk. Not
// thread-safe.
class SimJournal {
 public:
  // As JournalWriter's.
  void Append(const v1::JournalRecord& record, bool durable);
  void Replace(const std::vector<v1::JournalRecord>& records);

  // What a coordinator that starts on this boot of the machine reads. Errors of DecodeJournal.
  absl::StatusOr<std::vector<v1::JournalRecord>> Read(absl::string_view boot_id) const;
  // A coordinator starts: cuts off what it does not read, and syncs the rest. REQUIRES: Read can read it.
  void Open(absl::string_view boot_id);

  // Of what is not on the disk nothing is left, or the first bytes, or, with `in_any_order`, some and not others.
  // Returns whether anything is left.
  bool LosePower(bool in_any_order, Random* random);

 private:
  std::string bytes_;
  size_t durable_ = 0;
};

}  // namespace rubato::simulation

#endif  // RUBATO_TESTS_SIMULATION_SIM_JOURNAL_H_
