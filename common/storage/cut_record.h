#ifndef RUBATO_COMMON_STORAGE_CUT_RECORD_H_
#define RUBATO_COMMON_STORAGE_CUT_RECORD_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "proto/checkpoint.pb.h"

namespace rubato {

// The file of a checkpoint's directory that says that the checkpoint is complete: a serialized v1::CutRecord.
inline constexpr char kCutRecordName[] = "cut";

// CutRecord.format_version that this program writes.
inline constexpr uint32_t kCutFormatVersion = 1;

// The cut before step 150 is called "step150", and another one before the same step by its id as well, "step150.7": the
// first has to stay whole. 150 for both; -1 for what is not such a name, as "step", "step-1" and "step01" are not.
int64_t StepOfCheckpoint(absl::string_view name);

// InvalidArgument unless a cut may have this name, as above or "stopped": it comes from another process, and
// becomes a part of paths.
absl::Status CheckCutName(absl::string_view name);

// Whether a checkpoint's directory may have this name: that of a cut, or "final".
bool IsCheckpointName(absl::string_view name);

// "cut 3 (step150)", "no cut".
std::string CutName(const v1::Cut& cut);

// FailedPrecondition unless `cut` has this id; 0: any, also none. `path` is of what is of that cut.
absl::Status CheckCut(const v1::Cut& cut, uint64_t id, absl::string_view path);

// Reads the record of the checkpoint in `directory`. NotFound: there is none, so that the checkpoint is not complete or
// no cut. Unimplemented: a newer format_version. DataLoss: it is none, or says of no cut or no servers. Other errors of
// ReadFile.
absl::StatusOr<v1::CutRecord> ReadCutRecord(const std::string& directory);

}  // namespace rubato

#endif  // RUBATO_COMMON_STORAGE_CUT_RECORD_H_
