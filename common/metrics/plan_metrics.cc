#include "common/metrics/plan_metrics.h"

namespace rubato {

void AddPlanMetrics(const v1::Plan& plan, MetricText* text) {
  if (plan.generation() == 0) return;
  text->Gauge("rubato_plan_generation", "Number of the plan that the task knows.",
              static_cast<double>(plan.generation()));
  std::vector<MetricText::Sample> modes;
  for (v1::Mode mode : {v1::SYNC, v1::SSP, v1::ASYNC}) {
    modes.push_back({{{"mode", v1::Mode_Name(mode)}}, plan.mode() == mode ? 1.0 : 0.0});
  }
  text->Gauges("rubato_plan_mode", "1 for the mode of the plan, 0 for the others.", modes);
  text->Gauge("rubato_plan_members", "Workers that are members of the plan.", plan.members_size());
  if (plan.mode() == v1::SSP) {
    text->Gauge("rubato_plan_staleness_bound", "Steps that a member may be ahead of the slowest.",
                static_cast<double>(plan.staleness_bound()));
  }
}

}  // namespace rubato
