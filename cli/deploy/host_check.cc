#include "cli/deploy/host_check.h"

#include <algorithm>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "cli/launch/gpu_assignment.h"
#include "common/status.h"

namespace rubato {
namespace {

// Puts a line's value where it belongs. False: it is none of the probe's lines.
bool TakeLine(absl::string_view name, absl::string_view value, HostFacts* facts) {
  if (name == "system") {
    facts->system = std::string(value);
  } else if (name == "machine") {
    facts->machine = std::string(value);
  } else if (name == "glibc") {
    facts->glibc = std::string(value);
  } else if (name == "unwritable") {
    facts->unwritable = std::string(value);
  } else if (name == "missing") {
    facts->missing_tools.emplace_back(value);
  } else if (name == "has") {
    facts->stored.emplace(value);
  } else if (name == "seconds") {
    int64_t seconds = 0;
    if (!absl::SimpleAtoi(value, &seconds)) return false;
    facts->time = absl::FromUnixSeconds(seconds);
  } else if (name == "free_kib") {
    return absl::SimpleAtoi(value, &facts->free_kib);
  } else if (name == "gpus") {
    return absl::SimpleAtoi(value, &facts->gpus);
  } else if (name == "taken") {
    return absl::SimpleAtoi(value, &facts->taken_ports.emplace_back());
  } else {
    return false;
  }
  return true;
}

// By how much the host's clock, whose seconds are whole, is at least before or behind ours.
absl::Duration ClockOffset(absl::Time host, absl::Time before, absl::Time after) {
  const absl::Time host_end = host + absl::Seconds(1);
  if (host > after) return host - after;
  if (host_end < before) return host_end - before;
  return absl::ZeroDuration();
}

}  // namespace

absl::StatusOr<HostFacts> ParseHostFacts(absl::string_view text) {
  HostFacts facts;
  for (absl::string_view line : absl::StrSplit(text, '\n', absl::SkipEmpty())) {
    const std::pair<absl::string_view, absl::string_view> parts = absl::StrSplit(line, absl::MaxSplits(' ', 1));
    if (!TakeLine(parts.first, parts.second, &facts)) {
      return absl::InvalidArgumentError(absl::StrCat("\"", line,
                                                     "\" instead of what the check writes: does the login "
                                                     "shell print something of its own?"));
    }
  }
  if (facts.machine.empty() || facts.time == absl::UnixEpoch()) {
    return absl::InvalidArgumentError("the check has written no whole answer");
  }
  return facts;
}

bool VersionLess(absl::string_view a, absl::string_view b) {
  const auto numbers = [](absl::string_view version) {
    std::vector<int> parts;
    for (absl::string_view part : absl::StrSplit(version, '.')) {
      if (!absl::SimpleAtoi(part, &parts.emplace_back())) parts.back() = 0;
    }
    return parts;
  };
  return numbers(a) < numbers(b);
}

std::vector<std::string> HostProblems(const HostFacts& facts, const HostNeeds& needs, absl::Time before,
                                      absl::Time after) {
  std::vector<std::string> problems;
  if (facts.system != "Linux" || facts.machine != needs.machine) {
    problems.push_back(
        absl::StrCat("it is a ", facts.system, " ", facts.machine, "; the package is for Linux ", needs.machine));
  }
  if (!needs.glibc.empty() && VersionLess(facts.glibc, needs.glibc)) {
    problems.push_back(absl::StrCat("its glibc is ", facts.glibc.empty() ? "none" : facts.glibc, "; the package needs ",
                                    needs.glibc, " or later"));
  }
  if (!facts.missing_tools.empty()) {
    problems.push_back(absl::StrCat("these programs are missing: ", absl::StrJoin(facts.missing_tools, ", ")));
  }
  if (!facts.unwritable.empty()) {
    problems.push_back(absl::StrCat("its directory cannot be used: ", facts.unwritable));
  } else if (facts.free_kib < needs.free_kib) {
    problems.push_back(absl::StrCat("its disk is full: ", facts.free_kib / 1024, " MiB are free in the directory; ",
                                    needs.free_kib / 1024, " MiB are needed"));
  }
  for (uint32_t port : facts.taken_ports) problems.push_back(absl::StrCat("port ", port, " is taken"));
  const std::string gpu_problem = GpuProblem(facts.gpus, needs.gpus);
  if (!gpu_problem.empty()) problems.push_back(gpu_problem);
  const absl::Duration offset = ClockOffset(facts.time, before, after);
  if (absl::AbsDuration(offset) > needs.clock_offset_max) {
    problems.push_back(absl::StrCat("its clock is ",
                                    absl::FormatDuration(absl::Trunc(absl::AbsDuration(offset), absl::Seconds(1))),
                                    offset > absl::ZeroDuration() ? " ahead" : " behind", "; at most ",
                                    absl::FormatDuration(needs.clock_offset_max), " are allowed"));
  }
  return problems;
}

}  // namespace rubato
