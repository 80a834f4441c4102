#include "cli/report/run_record.h"

#include <algorithm>
#include <cstdint>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/status.h"
#include "common/storage/file.h"
#include "common/storage/run_record_json.h"

namespace rubato {
namespace {

// Of steps that were done again, or of times that come again: what a job was not there for is left out of its time.
template <typename Line>
void DropUndone(const v1::RollbackLine& rollback, std::vector<Line>* lines) {
  lines->erase(
      std::remove_if(lines->begin(), lines->end(),
                     [&](const Line& line) { return line.step() >= rollback.step() || line.t() > rollback.t(); }),
      lines->end());
}

void AddLine(v1::RunRecordLine line, RunRecord* record) {
  switch (line.line_case()) {
    case v1::RunRecordLine::kStart:
      record->start = std::move(*line.mutable_start());
      return;
    case v1::RunRecordLine::kProgress:
      record->progress.push_back(std::move(*line.mutable_progress()));
      return;
    case v1::RunRecordLine::kEvaluation:
      record->evaluations.push_back(std::move(*line.mutable_evaluation()));
      return;
    case v1::RunRecordLine::kPlan:
      record->plans.push_back(std::move(*line.mutable_plan()));
      return;
    case v1::RunRecordLine::kMember:
      record->members.push_back(std::move(*line.mutable_member()));
      return;
    case v1::RunRecordLine::kEnd:
      record->end = std::move(*line.mutable_end());
      return;
    case v1::RunRecordLine::kCheckpoint:
      record->checkpoints.push_back(std::move(*line.mutable_checkpoint()));
      return;
    case v1::RunRecordLine::kRollback:
      DropUndone(line.rollback(), &record->progress);
      DropUndone(line.rollback(), &record->evaluations);
      record->end.reset();
      record->rollbacks.push_back(std::move(*line.mutable_rollback()));
      return;
    case v1::RunRecordLine::kRequest:
    case v1::RunRecordLine::LINE_NOT_SET:
      return;
  }
}

}  // namespace

absl::StatusOr<RunRecord> ParseRunRecord(absl::string_view text, const std::string& file) {
  RunRecord record;
  int64_t number = 0;
  while (!text.empty()) {
    ++number;
    const size_t newline = text.find('\n');
    const bool last = newline == absl::string_view::npos;
    absl::StatusOr<v1::RunRecordLine> line = ParseRunRecordJson(text.substr(0, newline));
    if (!line.ok() && last) break;
    if (!line.ok()) return Annotate(line.status(), absl::StrCat(file, ":", number));
    AddLine(*std::move(line), &record);
    text.remove_prefix(last ? text.size() : newline + 1);
  }
  return record;
}

absl::StatusOr<RunRecord> ReadRunRecord(const std::string& run_directory) {
  const std::string path = JoinPath(run_directory, "metrics.jsonl");
  absl::StatusOr<std::string> text = ReadFile(path);
  if (!text.ok()) {
    return absl::Status(text.status().code(),
                        absl::StrCat(text.status().message(), ". Is ", run_directory, " the directory of a run?"));
  }
  return ParseRunRecord(*text, path);
}

}  // namespace rubato
