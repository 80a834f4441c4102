#include "server/server_metrics.h"

#include "absl/strings/str_cat.h"
#include "common/metrics/plan_metrics.h"

namespace rubato::server {

void AddServerMetrics(const v1::ServerProgress& progress, const v1::Plan& plan, MetricText* text) {
  const auto counter = [text](absl::string_view name, absl::string_view help, int64_t value) {
    text->Counter(name, help, static_cast<double>(value));
  };
  counter("rubato_server_updates_total", "Updates that were applied, each of one chunk.", progress.updates_total());
  counter("rubato_server_duplicates_total", "Pushes that had been applied before.", progress.duplicates_total());
  counter("rubato_server_dropped_total", "Pushes that came after a quorum had completed their step, or were too stale.",
          progress.dropped_total());
  counter("rubato_server_non_finite_total", "Pushes with a gradient that was not finite.", progress.non_finite_total());
  counter("rubato_server_hyperparameter_disagreements_total",
          "Updates to which members had pushed with different hyperparameters.",
          progress.hyperparameter_disagreements_total());
  counter("rubato_server_pushes_total", "Answered messages with a gradient.", progress.pushes_total());
  counter("rubato_server_pulls_total", "Answered messages with weights.", progress.pulls_total());
  counter("rubato_server_received_bytes_total", "Bytes of gradients received.", progress.received_bytes_total());
  counter("rubato_server_sent_bytes_total", "Bytes of weights sent.", progress.sent_bytes_total());
  counter("rubato_server_waits_total", "Messages that waited for other members.", progress.waits_total());
  text->Counter("rubato_server_wait_seconds_total", "How long messages waited for other members, added up.",
                progress.wait_seconds_total());
  text->Gauge("rubato_server_held_pulls", "Starts of steps that wait for other members now.", progress.held_size());
  text->Gauge("rubato_server_queue_length", "Work that waits for the threads of the partitions now.",
              static_cast<double>(progress.queue_length()));
  if (progress.table_bytes() > 0) {
    text->Gauge("rubato_server_table_rows", "Rows of tables.", static_cast<double>(progress.table_rows()));
    text->Gauge("rubato_server_table_bytes", "Memory of tables' rows and index.",
                static_cast<double>(progress.table_bytes()));
    counter("rubato_server_rows_sent_total", "Rows of tables sent.", progress.rows_sent_total());
    counter("rubato_server_rows_applied_total", "Updates of rows of tables.", progress.rows_applied_total());
    counter("rubato_server_rows_removed_total", "Rows of tables that were removed (expire_after_steps, most_rows).",
            progress.rows_removed_total());
    counter("rubato_server_rows_not_admitted_total",
            "Gradients that were dropped because their keys have no row yet (admit_after).",
            progress.rows_not_admitted_total());
  }
  text->Gauge("rubato_server_parameter_bytes", "Memory of weights and optimizer state.",
              static_cast<double>(progress.memory_bytes()));
  text->Gauge("rubato_server_step", "The highest step that a worker has begun here; -1 for none.",
              static_cast<double>(progress.highest_started_step()));
  std::vector<MetricText::Sample> clocks;
  for (const v1::MemberClock& clock : progress.clocks()) {
    clocks.push_back({{{"worker", absl::StrCat(clock.worker())}}, static_cast<double>(clock.clock())});
  }
  text->Gauges("rubato_server_member_clock", "Steps of a member that are done here.", clocks);
  AddPlanMetrics(plan, text);
}

}  // namespace rubato::server
