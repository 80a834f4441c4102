#ifndef RUBATO_COORDINATOR_RULES_ACTION_H_
#define RUBATO_COORDINATOR_RULES_ACTION_H_

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "proto/checkpoint.pb.h"
#include "proto/coordinator.pb.h"
#include "proto/journal.pb.h"
#include "proto/run_record.pb.h"

namespace rubato::coordinator {

// What CoordinatorCore asks its shell to do. Actions are carried out in order.

// Send to this incarnation; dropped if it has no stream, because everything is said again after a Register.
struct SendDirective {
  v1::TaskId task;
  v1::Directive directive;
};

// Append to the journal. `durable`: on the disk before any later action is carried out.
struct AppendJournal {
  v1::JournalRecord record;
  bool durable = false;
};

// Append a line to metrics.jsonl.
struct AppendMetrics {
  v1::RunRecordLine line;
};

// A worker's tensors, for TensorBoard.
struct AppendTensors {
  v1::TensorReport report;
};

struct LogLine {
  // 'I', 'W' or 'E'.
  char severity = 'I';
  std::string text;
};

// Answer the operator's SwitchMode call `ticket`.
struct AnswerSwitch {
  uint64_t ticket = 0;
  absl::StatusOr<v1::SwitchModeReply> reply;
};

// Answer the operator's call for a checkpoint `ticket`.
struct AnswerCheckpoint {
  uint64_t ticket = 0;
  absl::StatusOr<v1::WriteCheckpointNowReply> reply;
};

// Write the record as file "cut" beside the parts of its cut. It repeats the journal's, for tools: a failure changes
// nothing.
struct WriteCutRecord {
  v1::CutRecord record;
};

// Remove the files "cut" of all checkpoints "step<number>" but these.
struct RemoveCutRecords {
  std::vector<std::string> keep;
};

// The last action of this core: the shell makes another one, which recovers from the journal. Streams stay.
struct RestartCore {};

// The last action: the coordinator's work is over.
struct Finish {
  absl::Status status;
};

using Action = std::variant<SendDirective, AppendJournal, AppendMetrics, AppendTensors, LogLine, AnswerSwitch,
                            AnswerCheckpoint, WriteCutRecord, RemoveCutRecords, RestartCore, Finish>;
using Actions = std::vector<Action>;

}  // namespace rubato::coordinator

#endif  // RUBATO_COORDINATOR_RULES_ACTION_H_
