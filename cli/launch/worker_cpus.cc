#include "cli/launch/worker_cpus.h"

#include <sched.h>

namespace rubato {

std::vector<int> AllowedCpus() {
  cpu_set_t set;
  std::vector<int> cpus;
  // Fails where there are more CPUs than fit into the set.
  if (sched_getaffinity(0, sizeof(set), &set) != 0) return cpus;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (CPU_ISSET(cpu, &set)) cpus.push_back(cpu);
  }
  return cpus;
}

std::vector<int> CpuOfEachWorker(const std::vector<int>& allowed, uint32_t workers, uint32_t threads_per_worker) {
  const bool fill = workers >= 2 && workers == allowed.size() && threads_per_worker == 1;
  return fill ? allowed : std::vector<int>();
}

}  // namespace rubato
