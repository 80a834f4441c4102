#ifndef RUBATO_COMMON_CONFIG_ERROR_LIST_H_
#define RUBATO_COMMON_CONFIG_ERROR_LIST_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace rubato {

// "0.1", "inf": the shortest text that reads back as the same number.
std::string NumberText(double value);

// Collects the errors of a config, one line each: "<field path>: value <value>; allowed: <allowed>".
//
//   ErrorList errors;
//   errors.CheckInteger("cluster.servers", config.servers(), 1, 1024);
//   return errors.ToStatus();
class ErrorList {
 public:
  void Add(absl::string_view path, absl::string_view value, absl::string_view allowed);
  // Lines in the same form that somebody else made.
  void AddLines(absl::string_view lines);

  // lowest <= value <= highest.
  void CheckInteger(absl::string_view path, int64_t value, int64_t lowest, int64_t highest);
  // Adds an error unless `good` holds and the value is finite.
  void CheckNumber(absl::string_view path, double value, bool good, absl::string_view allowed);
  // Adds "value empty" if text that must be there is not.
  void CheckNotEmpty(absl::string_view path, absl::string_view value, absl::string_view allowed);

  // OK, or InvalidArgument with all lines in the order in which they were added.
  absl::Status ToStatus() const;

 private:
  std::vector<std::string> lines_;
};

}  // namespace rubato

#endif  // RUBATO_COMMON_CONFIG_ERROR_LIST_H_
