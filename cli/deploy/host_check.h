#ifndef RUBATO_CLI_DEPLOY_HOST_CHECK_H_
#define RUBATO_CLI_DEPLOY_HOST_CHECK_H_

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace rubato {

// What a host has said of itself: the output of remote/probe.sh.
struct HostFacts {
  std::string system;   // "Linux"
  std::string machine;  // "x86_64"
  std::string glibc;    // "2.36"; empty if there is another C library.
  absl::Time time;
  int64_t free_kib = 0;
  uint32_t gpus = 0;
  // Empty, or why the folder cannot be used.
  std::string unwritable;
  std::vector<std::string> missing_tools;
  std::vector<uint32_t> taken_ports;
  // Names of what is stored there already.
  std::set<std::string> stored;
};

// InvalidArgument: it is not what the probe writes; has the line.
absl::StatusOr<HostFacts> ParseHostFacts(absl::string_view text);

// What a host must have.
struct HostNeeds {
  std::string machine;
  // The lowest that the package's programs run with; empty: any.
  std::string glibc;
  int64_t free_kib = 0;
  // That each of its tasks must find (training.device: CUDA).
  uint32_t gpus = 0;
  absl::Duration clock_offset_max = absl::Seconds(5);
};

// What is wrong with the host, a text for each; empty: nothing. It was asked between `before` and `after`, by the clock
// of this machine.
std::vector<std::string> HostProblems(const HostFacts& facts, const HostNeeds& needs, absl::Time before,
                                      absl::Time after);

// Whether version `a`, as "2.36", comes before `b`.
bool VersionLess(absl::string_view a, absl::string_view b);

}  // namespace rubato

#endif  // RUBATO_CLI_DEPLOY_HOST_CHECK_H_
