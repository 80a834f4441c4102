#include "bench/loop_bench.h"

#include <sched.h>

#include <CLI/CLI.hpp>
#include <cerrno>
#include <cstdio>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "common/status.h"

namespace rubato::bench {
namespace {

// Binds the calling thread to one of the cores that it may use, the last.
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

// The instruction sets that --isa means: "best", "all" (that this processor supports), or one by its name.
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

absl::Status Run(const LoopBench& bench, const std::string& isa, int rounds) {
  RUBATO_ASSIGN_OR_RETURN(const std::vector<Isa> isas, ParseIsas(isa, bench.best));
  RUBATO_RETURN_IF_ERROR(PinToOneCore());
  bench.run(isas, rounds);
  return absl::OkStatus();
}

}  // namespace

int LoopBenchMain(int argc, char** argv, const LoopBench& bench) {
  CLI::App app(bench.description);
  std::string isa = "best";
  int rounds = bench.rounds;
  app.add_option("--isa", isa, "best, all, baseline, sse4.2, avx2 or avx512")->capture_default_str();
  app.add_option("--rounds", rounds, "Repetitions, of which the median counts")
      ->capture_default_str()
      ->check(CLI::Range(1, 10000));
  CLI11_PARSE(app, argc, argv);
  if (absl::Status status = Run(bench, isa, rounds); !status.ok()) {
    std::fprintf(stderr, "%s: %s\n", bench.name, status.ToString().c_str());
    return 1;
  }
  return 0;
}

}  // namespace rubato::bench
