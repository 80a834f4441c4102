#ifndef RUBATO_COMMON_AVAILABLE_MEMORY_H_
#define RUBATO_COMMON_AVAILABLE_MEMORY_H_

#include <cstdint>
#include <optional>
#include <string>

namespace rubato {

// Bytes that this process can still take without swapping: what the machine has available, or what the limit of a
// control group (version 2) of the process leaves, whichever is less. Files that the system keeps in memory and has not
// read again count as available. Nothing if the system does not say. `root` is where proc and sys are. Thread-safe.
std::optional<int64_t> AvailableMemoryBytes(const std::string& root = "/");

}  // namespace rubato

#endif  // RUBATO_COMMON_AVAILABLE_MEMORY_H_
