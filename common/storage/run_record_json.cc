#include "common/storage/run_record_json.h"

#include <google/protobuf/util/json_util.h>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"

namespace rubato {

std::string RunRecordJson(const v1::RunRecordLine& line) {
  google::protobuf::util::JsonPrintOptions options;
  options.always_print_primitive_fields = true;
  options.preserve_proto_field_names = true;
  std::string text;
  // There is nothing in these messages that the mapping could refuse.
  (void)google::protobuf::util::MessageToJsonString(line, &text, options);
  return text;
}

absl::StatusOr<v1::RunRecordLine> ParseRunRecordJson(absl::string_view text) {
  google::protobuf::util::JsonParseOptions options;
  options.ignore_unknown_fields = true;
  v1::RunRecordLine line;
  const auto status = google::protobuf::util::JsonStringToMessage({text.data(), text.size()}, &line, options);
  if (status.ok()) return line;
  return absl::InvalidArgumentError(
      absl::StrCat("not a line of the run record: ", absl::StrReplaceAll(status.message().ToString(), {{"\n", " "}})));
}

}  // namespace rubato
