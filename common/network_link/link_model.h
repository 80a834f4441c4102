#ifndef RUBATO_COMMON_NETWORK_LINK_LINK_MODEL_H_
#define RUBATO_COMMON_NETWORK_LINK_LINK_MODEL_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace rubato {

// A network link that a worker is put behind, each way.
struct LinkModel {
  // Of every byte, one way.
  absl::Duration latency;
  // 0: as fast as the machine.
  double bytes_per_second = 0;

  bool is_none() const { return latency == absl::ZeroDuration() && bytes_per_second == 0; }
  bool operator==(const LinkModel&) const = default;
};

// "latency=10ms,rate=100mbit", either of them, in any order. A rate is in bits a second: bit, kbit, mbit or gbit, of
// powers of ten. InvalidArgument: malformed, twice, or not 0 to 10 s of latency and 1 kbit to 1,000 gbit of rate.
absl::StatusOr<LinkModel> ParseLink(const std::string& text);

// The same of a flag or variable of that name. Empty: no link. Errors name flag and value.
absl::StatusOr<LinkModel> ParseLinkOf(absl::string_view name, const std::string& text);

// What ParseLink reads back; empty for none.
std::string FormatLink(const LinkModel& link);

// When bytes arrive at the other end of one direction of a link: one after another at its rate, and after its latency.
// Pure; not thread-safe.
class LinkShaper {
 public:
  explicit LinkShaper(const LinkModel& link) : link_(link) {}

  // The time at which the last of so many bytes, which are sent now or as soon as those before them, is there.
  absl::Time Send(int64_t bytes, absl::Time now);

 private:
  const LinkModel link_;
  // When the link has sent what was given to it.
  absl::Time free_at_ = absl::InfinitePast();
};

}  // namespace rubato

#endif  // RUBATO_COMMON_NETWORK_LINK_LINK_MODEL_H_
