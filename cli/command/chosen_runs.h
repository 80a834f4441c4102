#ifndef RUBATO_CLI_COMMAND_CHOSEN_RUNS_H_
#define RUBATO_CLI_COMMAND_CHOSEN_RUNS_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace rubato {

struct ChosenRun {
  std::string name;
  std::string directory;

  bool operator==(const ChosenRun&) const = default;
};

// The runs that "DIRECTORY" and "NAME=DIRECTORY" mean, in their order. A directory with a run record is a run, called
// by its own name if none is given; one with a comparison's summary.json stands for all runs of that, with the names
// that they have there, after "NAME " if one is given. NotFound: a directory that is neither. InvalidArgument: an empty
// name, or a summary that cannot be read.
absl::StatusOr<std::vector<ChosenRun>> FindRuns(const std::vector<std::string>& texts);

// The same while they are made: a directory without either, whose directories have run records, is a comparison that
// goes on, with the runs that it has made or begun; they are called by their directories' names without
// "-seed<number>".
absl::StatusOr<std::vector<ChosenRun>> FindRunsSoFar(const std::vector<std::string>& texts);

}  // namespace rubato

#endif  // RUBATO_CLI_COMMAND_CHOSEN_RUNS_H_
