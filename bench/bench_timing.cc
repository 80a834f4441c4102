#include "bench/bench_timing.h"

#include <sched.h>

#include <cerrno>

#include "absl/strings/str_cat.h"
#include "bench/bench_output.h"
#include "common/clock.h"
#include "common/random.h"

namespace rubato::bench {

absl::Status PinToOneCore() {
  cpu_set_t allowed, one;
  if (sched_getaffinity(0, sizeof(allowed), &allowed) != 0) return absl::ErrnoToStatus(errno, "sched_getaffinity");
  CPU_ZERO(&one);
  for (int cpu = CPU_SETSIZE - 1; cpu >= 0; --cpu) {
    if (!CPU_ISSET(cpu, &allowed)) continue;
    CPU_SET(cpu, &one);
    break;
  }
  if (sched_setaffinity(0, sizeof(one), &one) != 0) return absl::ErrnoToStatus(errno, "sched_setaffinity");
  return absl::OkStatus();
}

absl::StatusOr<std::vector<Isa>> ParseIsas(const std::string& flag, Isa best) {
  if (flag == "best") return std::vector<Isa>{best};
  std::vector<Isa> isas;
  std::string names = "best, all";
  for (Isa isa : kAllIsas) {
    absl::StrAppend(&names, ", ", IsaName(isa));
    if (flag == IsaName(isa) && !Supports(isa)) {
      return absl::FailedPreconditionError(absl::StrCat("--isa: this processor does not support ", flag));
    }
    if (Supports(isa) && (flag == "all" || flag == IsaName(isa))) isas.push_back(isa);
  }
  if (isas.empty()) return absl::InvalidArgumentError(absl::StrCat("--isa: \"", flag, "\" is none of ", names));
  return isas;
}

std::vector<std::vector<double>> TimeInterleaved(const std::vector<std::function<void()>>& functions, int rounds) {
  std::vector<std::vector<double>> times(functions.size());
  for (int round = -1; round < rounds; ++round) {
    for (size_t i = 0; i < functions.size(); ++i) {
      const absl::Duration begin = ThreadCpuTime();
      functions[i]();
      if (round >= 0) times[i].push_back(absl::ToDoubleSeconds(ThreadCpuTime() - begin));
    }
  }
  return times;
}

double MedianRatio(const std::vector<double>& a, const std::vector<double>& b) {
  std::vector<double> ratios;
  for (size_t i = 0; i < a.size(); ++i) ratios.push_back(a[i] / b[i]);
  return Median(std::move(ratios));
}

std::vector<float> NormalValues(int64_t n, uint64_t seed) {
  constexpr int64_t kTable = 1 << 16;
  Random random(seed);
  std::vector<float> table(kTable);
  for (float& value : table) value = static_cast<float>(random.Normal());
  std::vector<float> values(n);
  for (int64_t i = 0; i < n; ++i) values[i] = table[random.Next32() % kTable];
  return values;
}

}  // namespace rubato::bench
