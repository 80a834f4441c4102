#ifndef RUBATO_COMMON_SHARED_MEMORY_BOOT_ID_H_
#define RUBATO_COMMON_SHARED_MEMORY_BOOT_ID_H_

#include <string>

#include "absl/status/statusor.h"

namespace rubato {

// Random text that the kernel draws when it starts: equal for two processes exactly when they run on the same host,
// whatever the host and its containers are called. Fails with the system's code if /proc has none.
absl::StatusOr<std::string> ReadBootId();

}  // namespace rubato

#endif  // RUBATO_COMMON_SHARED_MEMORY_BOOT_ID_H_
