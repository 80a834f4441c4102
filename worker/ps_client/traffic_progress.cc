#include "worker/ps_client/traffic_progress.h"

#include "absl/strings/str_cat.h"
#include "common/network_link/link_model.h"

namespace rubato::worker {

void AddTraffic(const PsClient::Counters& counters, v1::WorkerProgress* progress) {
  progress->set_sent_bytes_total(counters.sent_bytes);
  progress->set_received_bytes_total(counters.received_bytes);
  progress->set_non_finite_total(progress->non_finite_total() + counters.non_finite);
  progress->set_waiting_for(counters.waiting_for);
  progress->set_waiting_seconds(absl::ToDoubleSeconds(counters.waiting));
  progress->set_entry_wait_seconds(absl::ToDoubleSeconds(counters.entry_wait));
  progress->set_pushes_total(counters.pushes);
  progress->set_pulls_total(counters.pulls);
  for (int64_t count : counters.staleness) progress->add_staleness_counts(count);
}

std::string DescribeSlowed(const StragglerModel& slow, const LinkRelay* link) {
  std::string text = FormatStraggler(slow);
  if (link == nullptr) return text;
  return absl::StrCat(text, text.empty() ? "" : " ", "behind ", FormatLink(link->link()));
}

}  // namespace rubato::worker
