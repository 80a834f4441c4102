#include "worker/ps_client/worker_metrics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace rubato::worker {
namespace {

using testing::HasSubstr;

TEST(WorkerMetricsTest, ShowsCountsAndWhereTheTimeWent) {
  v1::WorkerProgress progress;
  progress.set_steps_total(5);
  progress.set_pull_wait_seconds_total(0.25);
  progress.set_waiting_for("worker 1");
  v1::Plan plan;
  plan.set_generation(1);
  plan.set_mode(v1::SYNC);
  MetricText text({});
  AddWorkerMetrics(progress, plan, &text);
  const std::string page = text.Take();
  EXPECT_THAT(page, HasSubstr("\nrubato_worker_steps_total 5\n"));
  EXPECT_THAT(page, HasSubstr("\nrubato_worker_phase_seconds_total{phase=\"pull_wait\"} 0.25\n"));
  EXPECT_THAT(page, HasSubstr("\nrubato_worker_waiting 1\n"));
  EXPECT_THAT(page, HasSubstr("\nrubato_plan_mode{mode=\"SYNC\"} 1\n"));
}

TEST(WorkerMetricsTest, ShowsTheLossScaleWhereThereIsOne) {
  v1::WorkerProgress progress;
  MetricText fp32({});
  AddWorkerMetrics(progress, {}, &fp32);
  EXPECT_THAT(fp32.Take(), testing::Not(HasSubstr("rubato_worker_loss_scale")));
  progress.set_loss_scale(32768);
  progress.set_overflow_total(1);
  MetricText fp16({});
  AddWorkerMetrics(progress, {}, &fp16);
  const std::string page = fp16.Take();
  EXPECT_THAT(page, HasSubstr("\nrubato_worker_loss_scale 32768\n"));
  EXPECT_THAT(page, HasSubstr("\nrubato_worker_overflows_total 1\n"));
}

TEST(WorkerMetricsTest, PutsStepsIntoBuckets) {
  v1::WorkerProgress progress;
  for (int count : {0, 2, 3}) progress.add_step_seconds_counts(count);
  progress.set_step_seconds_total(0.007);
  for (int staleness = 0; staleness < 64; ++staleness) progress.add_staleness_counts(staleness == 63 ? 4 : 1);
  MetricText text({});
  AddWorkerMetrics(progress, {}, &text);
  const std::string page = text.Take();
  EXPECT_THAT(page, HasSubstr("rubato_worker_step_seconds_bucket{le=\"0.001\"} 2\n"));
  EXPECT_THAT(page, HasSubstr("rubato_worker_step_seconds_bucket{le=\"+Inf\"} 5\nrubato_worker_step_seconds_sum 0.007\n"
                              "rubato_worker_step_seconds_count 5\n"));
  EXPECT_THAT(page, HasSubstr("rubato_worker_staleness_bucket{le=\"4\"} 5\n"));
  EXPECT_THAT(page, HasSubstr("rubato_worker_staleness_bucket{le=\"62\"} 63\n"
                              "rubato_worker_staleness_bucket{le=\"+Inf\"} 67\nrubato_worker_staleness_sum 2205\n"));
}

}  // namespace
}  // namespace rubato::worker
