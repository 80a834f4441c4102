#include "common/shared_memory/boot_id.h"

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "common/status.h"
#include "common/storage/file.h"

namespace rubato {

absl::StatusOr<std::string> ReadBootId() {
  RUBATO_ASSIGN_OR_RETURN(std::string text, ReadFile("/proc/sys/kernel/random/boot_id"));
  absl::StripAsciiWhitespace(&text);
  if (text.empty()) return absl::UnavailableError("/proc/sys/kernel/random/boot_id is empty");
  return text;
}

}  // namespace rubato
