#ifndef RUBATO_COMMON_LIMITS_CONNECTION_RATE_H_
#define RUBATO_COMMON_LIMITS_CONNECTION_RATE_H_

#include <cstddef>
#include <map>
#include <string>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace rubato {

// How many connections each host has made within a while. Since a connection that says nothing is ended after that
// while, it is also a bound on how many of those a host has. Pure; not thread-safe.
class ConnectionRate {
 public:
  // Hosts that are known at a time; of further ones no connection is taken until others are forgotten.
  static constexpr size_t kMostHosts = 4096;

  // At most `most` connections of one host in each `period`.
  ConnectionRate(size_t most, absl::Duration period) : most_(most), period_(period) {}

  // Whether another one may be taken; it is counted if so.
  bool Take(absl::string_view host, absl::Time now);

 private:
  struct Host {
    absl::Time begin;
    size_t taken = 0;
  };

  const size_t most_;
  const absl::Duration period_;
  std::map<std::string, Host, std::less<>> hosts_;
};

}  // namespace rubato

#endif  // RUBATO_COMMON_LIMITS_CONNECTION_RATE_H_
