#include "common/limits/peer_name.h"

#include "absl/strings/str_replace.h"
#include "absl/strings/strip.h"

namespace rubato {

std::string PeerName(const std::optional<Identity>& identity, absl::string_view peer) {
  if (identity.has_value()) return PartyText(identity->party, identity->index);
  // gRPC may write the brackets of an IPv6 address as percent codes.
  const std::string text = absl::StrReplaceAll(peer, {{"%5B", "["}, {"%5D", "]"}});
  absl::string_view host = text;
  if (!absl::ConsumePrefix(&host, "ipv4:") && !absl::ConsumePrefix(&host, "ipv6:")) return "this host";
  return std::string(host.substr(0, host.rfind(':')));
}

}  // namespace rubato
