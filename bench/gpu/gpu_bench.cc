// Rates of a backend's operations: TFLOP/s, GB/s of what they have to read and write at least, and the time beside the
// floor that products and copies of the same backend set (device_timing.h). One line of JSON each, then a table.
#include <cstdint>
#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include "CLI/CLI.hpp"
#include "absl/status/status.h"
#include "bench/gpu/case_report.h"
#include "bench/gpu/device_flags.h"
#include "bench/gpu/device_timing.h"
#include "bench/gpu/operation_cases.h"
#include "common/status.h"

namespace rubato::bench {
namespace {

// Fails if there is nothing to measure with.
absl::Status Run(const DeviceFlags& flags, int64_t scale, const std::vector<std::string>& only, CaseReport* report) {
  RUBATO_ASSIGN_OR_RETURN(const std::unique_ptr<Backend> backend, CreateBackend(flags));
  std::cout << "# " << flags.precision << " on " << backend->Name() << std::endl;
  RUBATO_ASSIGN_OR_RETURN(const DeviceRates rates, MeasureRates(*backend, flags.timing, scale < 64));
  TimeGroups(*backend, OperationGroups(backend.get(), scale), only, rates, flags.timing, report);
  return absl::OkStatus();
}

int Main(int argc, char** argv) {
  CLI::App app("Rates of a backend's operations");
  DeviceFlags flags;
  AddDeviceFlags(&app, &flags);
  int64_t scale = 64;
  std::vector<std::string> only;
  app.add_option("--scale", scale, "Sizes: tensors of so many million elements")->check(CLI::Range(1, 1024));
  app.add_option("--only", only, "Cases whose names contain one of these, separated by commas")->delimiter(',');
  CLI11_PARSE(app, argc, argv);
  CaseReport report(&std::cout, &std::cerr);
  if (const absl::Status status = Run(flags, scale, only, &report); !status.ok()) report.Fail("gpu_bench", status);
  return report.Finish();
}

}  // namespace
}  // namespace rubato::bench

int main(int argc, char** argv) { return rubato::bench::Main(argc, argv); }
