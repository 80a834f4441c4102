#ifndef RUBATO_COMMON_STORAGE_RUN_RECORD_JSON_H_
#define RUBATO_COMMON_STORAGE_RUN_RECORD_JSON_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "proto/run_record.pb.h"

namespace rubato {

// A line of metrics.jsonl (docs/formats.md), without the newline. Fields are there at zero too, but for `optional` ones
// that are absent. Bytes of a text that are not UTF-8 are left out.
std::string RunRecordJson(const v1::RunRecordLine& line);

// The same back. Unknown fields, kinds of lines and values of enums come from a newer version and are ignored: `line`
// may then be unset. InvalidArgument: the text is no JSON object, or a field has a value of another kind; names the
// field.
absl::StatusOr<v1::RunRecordLine> ParseRunRecordJson(absl::string_view text);

}  // namespace rubato

#endif  // RUBATO_COMMON_STORAGE_RUN_RECORD_JSON_H_
