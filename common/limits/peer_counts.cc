#include "common/limits/peer_counts.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/limits/peer_name.h"

namespace rubato {

PeerCounts::PeerCounts(Options options) : options_(std::move(options)), counts_(std::make_shared<Counts>()) {}

absl::StatusOr<PeerCounts::Place> PeerCounts::Take(const std::optional<Identity>& identity, absl::string_view peer) {
  std::string name = PeerName(identity, peer);
  const size_t most = identity.has_value() ? options_.per_task : options_.per_host;
  {
    MutexLock lock(counts_->mu);
    size_t& open = counts_->open[name];
    if (open >= most) {
      if (open == 0) counts_->open.erase(name);
      return absl::ResourceExhaustedError(
          absl::StrCat(name, " has ", most, " ", options_.what, " open already; no more at the same time"));
    }
    ++open;
  }
  return Place(counts_.get(), [counts = counts_, name = std::move(name)](const void*) {
    MutexLock lock(counts->mu);
    const auto found = counts->open.find(name);
    if (--found->second == 0) counts->open.erase(found);
  });
}

}  // namespace rubato
