#ifndef RUBATO_BENCH_GPU_OPERATION_CASES_H_
#define RUBATO_BENCH_GPU_OPERATION_CASES_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "bench/gpu/case_report.h"
#include "bench/gpu/device_timing.h"
#include "kernels/backend.h"

namespace rubato::bench {

// An operation of a backend on tensors of its own. Copies between host and device have the device's bytes alone.
struct OperationCase {
  std::string name;
  Work work;
  Operation run;
};

// Cases that share tensors, which are there from `build` until the cases go.
struct OperationGroup {
  std::string name;
  std::function<absl::StatusOr<std::vector<OperationCase>>()> build;
};

// All operations that layers and codecs are made of. Tensors have about scale * 2^20 elements: at 64, more than any
// GPU's caches hold. `backend` outlives them.
std::vector<OperationGroup> OperationGroups(Backend* backend, int64_t scale);

// Times each case whose name contains one of `only` (all if that is empty), group by group; what fails is reported
// and the next one follows.
void TimeGroups(Backend& backend, const std::vector<OperationGroup>& groups, const std::vector<std::string>& only,
                const DeviceRates& rates, const TimingOptions& options, CaseReport* report);

}  // namespace rubato::bench

#endif  // RUBATO_BENCH_GPU_OPERATION_CASES_H_
