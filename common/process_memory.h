#ifndef RUBATO_COMMON_PROCESS_MEMORY_H_
#define RUBATO_COMMON_PROCESS_MEMORY_H_

#include <cstdint>

namespace rubato {

// Bytes of this process's memory that are resident, shared ones included; 0 if the system does not say.
int64_t ResidentBytes();

}  // namespace rubato

#endif  // RUBATO_COMMON_PROCESS_MEMORY_H_
