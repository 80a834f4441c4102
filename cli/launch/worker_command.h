#ifndef RUBATO_CLI_LAUNCH_WORKER_COMMAND_H_
#define RUBATO_CLI_LAUNCH_WORKER_COMMAND_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace rubato {

// What the workers of a client's job run: somebody's program, which takes part through client/rubato_client.h.
struct WorkerCommand {
  // The program's path first.
  std::vector<std::string> argv;
  // Of librubato_client.so and of the sidecar program. Empty: the workers have their own.
  std::string library;
  std::string sidecar;
  // "NAME=value" each, for all workers alike.
  std::vector<std::string> variables;
  // That a worker computes with; 0: nobody knows.
  uint32_t threads = 0;
};

// The command, with its program looked for as execvp(3) does, and the client's files of the folder that `program` (this
// one's path) is in or, as a build has them, of <its bin folder>/client. `flag` is what messages call the command.
// InvalidArgument: it is empty, or not a program that can be run.
absl::StatusOr<WorkerCommand> MakeWorkerCommand(const std::vector<std::string>& argv, const std::string& flag,
                                                const std::string& program);

// The words of a command line, as a shell takes quotes and backslashes, and nothing else: no variables, no patterns.
// InvalidArgument: a quote is not closed, or there are no words.
absl::StatusOr<std::vector<std::string>> SplitCommand(const std::string& line, const std::string& flag);

// Adds to the variables of `workers` on this machine how many threads each computes with (OMP_NUM_THREADS): its share
// of the cores, unless the environment says so already. Sets `threads`.
void ShareCores(uint32_t workers, WorkerCommand* command);

// Which of the job's workers a process is.
struct WorkerPlace {
  uint32_t rank = 0;
  uint32_t size = 1;
  // Among those on the same machine.
  uint32_t local_rank = 0;
  uint32_t local_size = 1;
  // How it is slowed down, to see what a straggler does to the job, as FormatStraggler writes it; empty: it is not.
  std::string slow;
  // The network link that it is put behind, as FormatLink writes it; empty: none.
  std::string network;
};

// The environment of a worker, "NAME=value" each: RUBATO_COORDINATOR, RUBATO_RANK, RUBATO_SIZE, RUBATO_LOCAL_RANK,
// RUBATO_LOCAL_SIZE, RUBATO_LIBRARY and RUBATO_SIDECAR if they are known, RUBATO_SLOW and RUBATO_NETWORK if it is
// slowed down, and the command's own. Python does not keep its output back (PYTHONUNBUFFERED), so that a line is seen
// when it is printed.
std::vector<std::string> WorkerVariables(const WorkerCommand& command, const std::string& coordinator,
                                         const WorkerPlace& place);

}  // namespace rubato

#endif  // RUBATO_CLI_LAUNCH_WORKER_COMMAND_H_
