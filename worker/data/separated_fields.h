#ifndef RUBATO_WORKER_DATA_SEPARATED_FIELDS_H_
#define RUBATO_WORKER_DATA_SEPARATED_FIELDS_H_

#include <cstddef>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace rubato::worker {

// Text in fields as RFC 4180 has it: a field that begins with a quote goes on to the next one, which may be followed by
// another that stands for one in the text; separators and line ends between them are text.

// How long the first record of `text` is, up to its line feed; npos: it has not ended.
size_t SeparatedRecordLength(absl::string_view text, char separator);

// The fields of a record, without quotes around them. Not thread-safe.
class SeparatedFields {
 public:
  explicit SeparatedFields(char separator) : separator_(separator) {}

  // InvalidArgument names the column, counted from 0, whose quotes are not as above.
  absl::Status Split(absl::string_view record);
  // The same of a file's first line, whose fields are the columns' names and which may begin with a byte order mark.
  absl::Status SplitHeader(absl::string_view record);

  // Of the last record; in its memory or here, so long as neither changes.
  const std::vector<absl::string_view>& fields() const { return fields_; }

 private:
  // Takes a field that begins with a quote off the front of `rest`.
  absl::Status TakeQuoted(absl::string_view* rest);

  const char separator_;
  std::vector<absl::string_view> fields_;
  // Of fields with quotes inside.
  std::string unquoted_;
};

// Which of the columns has this name. InvalidArgument: none, with the names that there are, or two.
absl::StatusOr<size_t> FindColumn(const std::vector<absl::string_view>& names, absl::string_view name);

}  // namespace rubato::worker

#endif  // RUBATO_WORKER_DATA_SEPARATED_FIELDS_H_
