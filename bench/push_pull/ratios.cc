#include "bench/push_pull/ratios.h"

#include <algorithm>
#include <set>

#include "absl/strings/str_cat.h"

namespace rubato::bench {
namespace {

// 0 when it was not measured.
double BestBandwidth(const std::vector<Measured>& measured, const std::string& subject, int64_t size) {
  double best = 0;
  for (const Measured& one : measured) {
    if (one.subject == subject && one.size == size) best = std::max(best, one.gb_per_s);
  }
  return best;
}

double RoundTrips(const std::vector<Measured>& measured, const std::string& subject, int64_t size) {
  for (const Measured& one : measured) {
    if (one.subject == subject && one.size == size && one.in_flight == 1) return one.round_trips_per_s;
  }
  return 0;
}

}  // namespace

std::string SizeName(int64_t bytes) {
  return bytes % (1 << 20) == 0 ? absl::StrCat(bytes >> 20, "MiB") : absl::StrCat(bytes >> 10, "KiB");
}

std::vector<BenchCase> Ratios(const std::vector<Measured>& measured) {
  constexpr int64_t kLargestRoundTrip = 64 << 10;
  const std::pair<const char*, const char*> bandwidths[] = {
      {"rubato", "tcp"},     {"rubato", "bytebuffer_stream"}, {"rubato", "stub"},
      {"rubato_shm", "shm"}, {"rubato_shm", "rubato"},
  };
  std::set<int64_t> sizes;
  for (const Measured& one : measured) sizes.insert(one.size);
  std::vector<BenchCase> ratios;
  for (const auto& [subject, reference] : bandwidths) {
    for (const int64_t size : sizes) {
      const double of = BestBandwidth(measured, subject, size);
      const double to = BestBandwidth(measured, reference, size);
      if (of == 0 || to == 0) continue;
      ratios.push_back({absl::StrCat(subject, "/", reference, " bandwidth ", SizeName(size)), {{"ratio", of / to}}});
    }
  }
  for (const int64_t size : sizes) {
    const double of = RoundTrips(measured, "rubato", size);
    const double to = RoundTrips(measured, "bytebuffer_stream", size);
    if (size > kLargestRoundTrip || of == 0 || to == 0) continue;
    ratios.push_back({absl::StrCat("rubato/bytebuffer_stream round trips ", SizeName(size)), {{"ratio", of / to}}});
  }
  return ratios;
}

}  // namespace rubato::bench
