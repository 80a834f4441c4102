#include "tests/explorer/scope.h"

#include <vector>

#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "common/proto_enum.h"

namespace rubato::explorer {

using simulation::Rules;

absl::StatusOr<Rules> ParseRules(const std::string& text) {
  const std::pair<std::string, std::string> parts = absl::StrSplit(text, absl::MaxSplits(':', 1));
  uint32_t number = 0;
  const bool has_number = absl::SimpleAtoi(parts.second, &number) && number >= 1;
  Rules rules;
  if (text == "sync") return rules;
  if (parts.first == "sync" && has_number) {
    rules.quorum = number;
    return rules;
  }
  if (parts.first == "ssp" && has_number) {
    rules.mode = v1::SSP;
    rules.staleness_bound = number;
    return rules;
  }
  if (text == "async") {
    rules.mode = v1::ASYNC;
    return rules;
  }
  return absl::InvalidArgumentError(
      absl::StrCat("mode: value \"", text, "\"; allowed: sync, sync:QUORUM, ssp:BOUND, async, with numbers from 1"));
}

std::string NameOf(const Rules& rules) {
  switch (rules.mode) {
    case v1::SYNC:
      return rules.quorum > 0 ? absl::StrCat("sync:", rules.quorum) : "sync";
    case v1::SSP:
      return absl::StrCat("ssp:", rules.staleness_bound);
    case v1::ASYNC:
      return "async";
    case v1::MODE_UNSPECIFIED:
      RUBATO_NO_VALUE_OF(v1::Mode) : break;
  }
  return "unspecified";
}

std::string Describe(const Scope& scope) {
  std::vector<std::string> events;
  if (scope.switch_to.has_value()) events.push_back(absl::StrCat("a switch to ", NameOf(*scope.switch_to)));
  if (scope.cut) events.push_back("a cut");
  if (scope.crash_worker) events.push_back("a worker's crash");
  if (scope.break_stream) events.push_back("a stream's break");
  if (scope.repeat) events.push_back("a repeated message");
  if (scope.timeout) events.push_back("a timeout");
  if (scope.crash_coordinator) events.push_back("the coordinator's crash");
  if (scope.crash_server) events.push_back("a server's crash");
  if (scope.stay) events.push_back("workers stay");
  return absl::StrCat(NameOf(scope.start), ", ", scope.workers, " workers, ", scope.servers, " servers of ",
                      scope.partitions, " partitions, ", scope.chunks, " chunks in messages of ",
                      scope.chunks_per_message, ", ", scope.steps, " steps", events.empty() ? "" : ", ",
                      absl::StrJoin(events, ", "));
}

}  // namespace rubato::explorer
