#ifndef RUBATO_CLI_DOCTOR_MACHINE_H_
#define RUBATO_CLI_DOCTOR_MACHINE_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"

namespace rubato {

// A limit of a process; infinity is -1.
struct ResourceLimit {
  int64_t now = -1;
  // Up to which the process may raise it itself.
  int64_t highest = -1;
};

struct ClockFacts {
  // What the system says of its monotonic clock, and the smallest step that was seen between two readings.
  absl::Duration resolution;
  absl::Duration step;
  // Whether the wall clock follows another one (NTP), and by how much it may be wrong; nothing if the system does
  // not say.
  std::optional<bool> synchronised;
  absl::Duration error;
};

struct CpuFacts {
  std::string model;
  // Cores of the machine, and those that this process may use.
  int cores = 0;
  int allowed_cores = 0;
  // Instruction sets that kernels are compiled for and this processor has.
  std::vector<std::string> instruction_sets;
};

struct MemoryFacts {
  int64_t total_bytes = 0;
  // That a process started like this one can take without swapping; 0 if the system does not say.
  int64_t available_bytes = 0;
};

// What is measured of this machine. Nothing is changed.
CpuFacts MeasureCpu();
MemoryFacts MeasureMemory();
ClockFacts MeasureClock();
ResourceLimit OpenFilesLimit();
ResourceLimit LockedMemoryLimit();

// Whether tasks could share memory here: makes a small region, as tasks do.
absl::Status TrySharedMemory();

// Whether a task could listen on the port: binds it and lets it go. 0 is any free one.
absl::Status TryPort(int port);

}  // namespace rubato

#endif  // RUBATO_CLI_DOCTOR_MACHINE_H_
