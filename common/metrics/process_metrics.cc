#include "common/metrics/process_metrics.h"

#include <sys/resource.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <system_error>

namespace rubato {
namespace {

double Seconds(const timeval& time) {
  return static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec);
}

}  // namespace

void AddProcessMetrics(MetricText* text) {
  rusage usage = {};
  if (getrusage(RUSAGE_SELF, &usage) == 0) {
    text->Counter("process_cpu_seconds_total", "Processor time that the process has used.",
                  Seconds(usage.ru_utime) + Seconds(usage.ru_stime));
  }
  double total_pages = 0;
  double resident_pages = 0;
  if (std::ifstream statm("/proc/self/statm"); statm >> total_pages >> resident_pages) {
    text->Gauge("process_resident_memory_bytes", "Memory of the process that is in RAM.",
                resident_pages * static_cast<double>(sysconf(_SC_PAGESIZE)));
  }
  std::error_code error;
  const std::filesystem::directory_iterator files("/proc/self/fd", error);
  if (error) return;
  // The iterator itself has one open.
  text->Gauge("process_open_fds", "Files and connections that the process has open.",
              static_cast<double>(std::distance(begin(files), end(files))) - 1);
}

}  // namespace rubato
