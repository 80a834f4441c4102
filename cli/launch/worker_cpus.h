#ifndef RUBATO_CLI_LAUNCH_WORKER_CPUS_H_
#define RUBATO_CLI_LAUNCH_WORKER_CPUS_H_

#include <cstdint>
#include <vector>

namespace rubato {

// The numbers of the CPUs that this process may use, in ascending order; none if the system does not say.
std::vector<int> AllowedCpus();

// The CPU that each worker of this machine stays on, by index, where workers fill it: there are as many of them as CPUs
// that are allowed, two or more, and each computes with one thread. Otherwise none: they run on any, as a worker's
// sidecar and the threads that receive its messages may find a CPU that is free.
std::vector<int> CpuOfEachWorker(const std::vector<int>& allowed, uint32_t workers, uint32_t threads_per_worker);

}  // namespace rubato

#endif  // RUBATO_CLI_LAUNCH_WORKER_CPUS_H_
