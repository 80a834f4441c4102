#include "common/network_link/link_model.h"

#include <algorithm>
#include <array>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "common/status.h"

namespace rubato {
namespace {

constexpr absl::Duration kLatencyMax = absl::Seconds(10);
constexpr double kBitsMin = 1e3;
constexpr double kBitsMax = 1e12;
// The longest first: all end with the shortest.
constexpr std::array<std::pair<absl::string_view, double>, 4> kUnits = {
    {{"gbit", 1e9}, {"mbit", 1e6}, {"kbit", 1e3}, {"bit", 1}}};

absl::Status Bad(const std::string& text, absl::string_view why) {
  return absl::InvalidArgumentError(
      absl::StrCat("\"", text, "\": ", why,
                   "; allowed: latency=TIME up to 10s, rate=N of bit, kbit, mbit or gbit from 1kbit to 1000gbit, or "
                   "both, as in latency=10ms,rate=100mbit"));
}

// 0: it is none.
double ParseBits(absl::string_view text) {
  for (const auto& [unit, bits] : kUnits) {
    double count = 0;
    if (!absl::ConsumeSuffix(&text, unit)) continue;
    return absl::SimpleAtod(text, &count) ? count * bits : 0;
  }
  return 0;
}

}  // namespace

absl::StatusOr<LinkModel> ParseLink(const std::string& text) {
  LinkModel link;
  bool has_latency = false, has_rate = false;
  for (absl::string_view term : absl::StrSplit(text, ',')) {
    if (absl::ConsumePrefix(&term, "latency=")) {
      if (std::exchange(has_latency, true)) return Bad(text, "two latencies");
      if (!absl::ParseDuration(term, &link.latency) || link.latency < absl::ZeroDuration() ||
          link.latency > kLatencyMax) {
        return Bad(text, absl::StrCat("the latency is \"", term, "\""));
      }
    } else if (absl::ConsumePrefix(&term, "rate=")) {
      if (std::exchange(has_rate, true)) return Bad(text, "two rates");
      const double bits = ParseBits(term);
      if (!(bits >= kBitsMin && bits <= kBitsMax)) return Bad(text, absl::StrCat("the rate is \"", term, "\""));
      link.bytes_per_second = bits / 8;
    } else {
      return Bad(text, absl::StrCat("\"", term, "\" is neither a latency nor a rate"));
    }
  }
  return link;
}

absl::StatusOr<LinkModel> ParseLinkOf(absl::string_view name, const std::string& text) {
  if (text.empty()) return LinkModel();
  absl::StatusOr<LinkModel> link = ParseLink(text);
  return link.ok() ? link : Annotate(link.status(), absl::StrCat(name, ": value"));
}

std::string FormatLink(const LinkModel& link) {
  std::string text;
  if (link.latency != absl::ZeroDuration()) absl::StrAppend(&text, "latency=", absl::FormatDuration(link.latency));
  if (link.bytes_per_second == 0) return text;
  const double bits = link.bytes_per_second * 8;
  for (const auto& [unit, size] : kUnits) {
    if (bits < size) continue;
    absl::StrAppend(&text, text.empty() ? "" : ",", "rate=", bits / size, unit);
    break;
  }
  return text;
}

absl::Time LinkShaper::Send(int64_t bytes, absl::Time now) {
  free_at_ = std::max(free_at_, now);
  if (link_.bytes_per_second > 0) free_at_ += absl::Seconds(static_cast<double>(bytes) / link_.bytes_per_second);
  return free_at_ + link_.latency;
}

}  // namespace rubato
