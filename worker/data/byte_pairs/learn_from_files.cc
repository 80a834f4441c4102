#include "worker/data/byte_pairs/learn_from_files.h"

#include <limits>
#include <memory>
#include <utility>

#include "absl/functional/function_ref.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/status.h"
#include "worker/data/byte_pairs/blocks_of_pieces.h"
#include "worker/data/byte_pairs/byte_pair_learner.h"
#include "worker/data/record_files.h"
#include "worker/data/separated_fields.h"
#include "worker/data/stored_bytes.h"

namespace rubato::worker {
namespace {

using Visit = absl::FunctionRef<void(absl::string_view text)>;

absl::Status ForEachBlock(const LearnOptions& options, Visit visit) {
  for (const std::string& path : options.paths) {
    RUBATO_ASSIGN_OR_RETURN(const std::unique_ptr<const StoredBytes> text,
                            StoredBytes::OpenFile(path, /*memory_bytes=*/0, std::numeric_limits<int64_t>::max()));
    const auto left_out = static_cast<int64_t>(static_cast<double>(text->size()) * options.leave_out);
    RUBATO_RETURN_IF_ERROR(ForEachBlockOfPieces(*text, 0, text->size() - left_out, [&](absl::string_view block) {
      visit(block);
      return absl::OkStatus();
    }));
  }
  return absl::OkStatus();
}

absl::Status ForEachField(const LearnOptions& options, Visit visit) {
  SeparatedFields fields(options.separator);
  // By file: the column's place.
  std::vector<size_t> columns;
  const auto check = [&](const RecordFiles::Record& record) -> absl::Status {
    if (record.file == columns.size()) {
      RUBATO_RETURN_IF_ERROR(fields.SplitHeader(record.text));
      RUBATO_ASSIGN_OR_RETURN(const size_t column, FindColumn(fields.fields(), options.column));
      columns.push_back(column);
      return absl::OkStatus();
    }
    RUBATO_RETURN_IF_ERROR(fields.Split(record.text));
    const size_t column = columns[record.file];
    if (column >= fields.fields().size()) {
      return absl::InvalidArgumentError(absl::StrCat(fields.fields().size(), " columns; expected: more than ", column));
    }
    visit(fields.fields()[column]);
    return absl::OkStatus();
  };
  RecordFiles::Format format = {.header = true, .expected = "columns, and quotes that end"};
  format.length = [&](absl::string_view text) { return SeparatedRecordLength(text, options.separator); };
  return RecordFiles::Open(options.paths, std::move(format), /*memory_bytes=*/0, check).status();
}

absl::Status ForEachText(const LearnOptions& options, Visit visit) {
  return options.column.empty() ? ForEachBlock(options, visit) : ForEachField(options, visit);
}

}  // namespace

absl::StatusOr<LearnedPairs> LearnFromFiles(const LearnOptions& options) {
  BytePairLearner learner(options.lower_case);
  RUBATO_RETURN_IF_ERROR(ForEachText(options, [&](absl::string_view text) { learner.Add(text); }));
  if (learner.bytes() == 0) {
    return absl::InvalidArgumentError(absl::StrCat(absl::StrJoin(options.paths, ", "), ": there is no text"));
  }
  RUBATO_ASSIGN_OR_RETURN(BytePairs pairs, learner.Learn(options.tokens));
  const int64_t tokens = learner.TokensOf(pairs);
  return LearnedPairs{.pairs = std::move(pairs), .bytes = learner.bytes(), .tokens = tokens};
}

}  // namespace rubato::worker
