#include "common/log.h"

#include <cstdio>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"

namespace rubato {

void Logger::Write(char severity, absl::string_view message) {
  std::string line = absl::StrCat(absl::FormatTime("%Y-%m-%dT%H:%M:%E3SZ", clock_->Now(), absl::UTCTimeZone()), " ",
                                  std::string(1, severity), " ", who_, "] ", message, "\n");
  MutexLock lock(mu_);
  if (severity != 'I') last_problem_ = std::string(message);
  std::fwrite(line.data(), 1, line.size(), stderr);
}

}  // namespace rubato
