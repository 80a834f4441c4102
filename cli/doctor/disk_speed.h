#ifndef RUBATO_CLI_DOCTOR_DISK_SPEED_H_
#define RUBATO_CLI_DOCTOR_DISK_SPEED_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "cli/doctor/judge.h"
#include "common/clock.h"

namespace rubato {

// Writes a file of so many bytes, waits until it is on the disk, and deletes it: in the directory, or in the nearest
// one above it that is there; nothing is created for good. Errors: the file system's reason, with the path.
absl::StatusOr<DiskFacts> MeasureDisk(const std::string& directory, int64_t bytes, const Clock* clock);

}  // namespace rubato

#endif  // RUBATO_CLI_DOCTOR_DISK_SPEED_H_
