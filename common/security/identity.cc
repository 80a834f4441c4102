#include "common/security/identity.h"

#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

namespace rubato {
namespace {

constexpr absl::string_view kScheme = "rubato://";
constexpr Party kParties[] = {Party::kCoordinator, Party::kServer, Party::kWorker, Party::kEvaluator, Party::kOperator};

absl::string_view RoleName(Party party) {
  switch (party) {
    case Party::kCoordinator:
      return "coordinator";
    case Party::kServer:
      return "server";
    case Party::kWorker:
      return "worker";
    case Party::kEvaluator:
      return "evaluator";
    case Party::kOperator:
      break;
  }
  return "operator";
}

// Of which there is one, as far as credentials know.
bool IsSingle(Party party) { return party == Party::kCoordinator || party == Party::kOperator; }

}  // namespace

std::string PartyText(Party party, uint32_t index) {
  return IsSingle(party) ? std::string(RoleName(party)) : absl::StrCat(RoleName(party), " ", index);
}

std::string IdentityUri(const Identity& identity) {
  return absl::StrCat(kScheme, identity.job, "/", RoleName(identity.party), "/", identity.index);
}

absl::StatusOr<Identity> ParseIdentityUri(absl::string_view uri) {
  absl::string_view rest = uri;
  if (absl::ConsumePrefix(&rest, kScheme)) {
    const std::vector<absl::string_view> parts = absl::StrSplit(rest, '/');
    Identity identity;
    if (parts.size() == 3 && !parts[0].empty() && absl::SimpleAtoi(parts[2], &identity.index)) {
      identity.job = std::string(parts[0]);
      for (const Party party : kParties) {
        identity.party = party;
        // One spelling of each: no "01", no index of what there is one of.
        if (parts[1] == RoleName(party) && IdentityUri(identity) == uri && (!IsSingle(party) || identity.index == 0)) {
          return identity;
        }
      }
    }
  }
  return absl::InvalidArgumentError(
      absl::StrCat("\"", uri, "\" is no identity of a job; allowed: rubato://<job>/<role>/<index>"));
}

std::string CredentialName(Party party, uint32_t index) {
  return party == Party::kOperator ? "operator" : absl::StrCat(RoleName(party), "-", index);
}

}  // namespace rubato
