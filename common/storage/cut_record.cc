#include "common/storage/cut_record.h"

#include "absl/strings/escaping.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "common/status.h"
#include "common/storage/file.h"

namespace rubato {

namespace {

// Of a name that is none.
constexpr size_t kShownBytes = 64;

// -1 if this is not the text of a number.
int64_t NumberOf(absl::string_view text) {
  int64_t number = -1;
  return absl::SimpleAtoi(text, &number) && number >= 0 && absl::StrCat(number) == text ? number : -1;
}

}  // namespace

int64_t StepOfCheckpoint(absl::string_view name) {
  if (!absl::ConsumePrefix(&name, "step")) return -1;
  const size_t dot = name.find('.');
  if (dot != name.npos && NumberOf(name.substr(dot + 1)) < 0) return -1;
  return NumberOf(name.substr(0, dot));
}

absl::Status CheckCutName(absl::string_view name) {
  if (name == "stopped" || StepOfCheckpoint(name) >= 0) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("cut.name: value \"", absl::CHexEscape(name.substr(0, kShownBytes)),
                                                 "\"; allowed: stopped, step<number>"));
}

bool IsCheckpointName(absl::string_view name) { return name == "final" || CheckCutName(name).ok(); }

std::string CutName(const v1::Cut& cut) {
  if (cut.id() == 0) return "no cut";
  return absl::StrCat("cut ", cut.id(), " (", cut.name(), ")");
}

absl::Status CheckCut(const v1::Cut& cut, uint64_t id, absl::string_view path) {
  if (id == 0 || cut.id() == id) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat(path, ": is of ", CutName(cut), ", cut ", id, " is wanted"));
}

absl::StatusOr<v1::CutRecord> ReadCutRecord(const std::string& directory) {
  const std::string path = JoinPath(directory, kCutRecordName);
  RUBATO_ASSIGN_OR_RETURN(const std::string bytes, ReadFile(path));
  v1::CutRecord record;
  if (!record.ParseFromString(bytes)) return absl::DataLossError(absl::StrCat(path, ": not a valid CutRecord"));
  if (record.format_version() > kCutFormatVersion) {
    return absl::UnimplementedError(absl::StrCat(path, ": format_version ", record.format_version(),
                                                 "; this program reads up to ", kCutFormatVersion));
  }
  if (record.cut().id() == 0 || record.servers().empty()) {
    return absl::DataLossError(
        absl::StrCat(path, ": is of ", CutName(record.cut()), " with parts of ", record.servers_size(), " servers"));
  }
  return record;
}

}  // namespace rubato
