#ifndef RUBATO_CLI_EXPORT_SAFETENSORS_H_
#define RUBATO_CLI_EXPORT_SAFETENSORS_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/storage/checkpoint.h"

namespace rubato {

// Writes the weights and tables of a run's checkpoint ("step0", "step150", "stopped", "final") as one safetensors file
// (docs/formats.md), and returns the checkpoint's name. With an empty name that is "final", or else the
// newest complete one but "step0". Nothing in the file depends on when, where or by
// how many servers the weights were computed, so equal runs give equal bytes. `output` is replaced in one step, or
// unchanged on an error. Errors: those of ReadCheckpoint and of writing; NotFound says which checkpoints there are.
absl::StatusOr<std::string> ExportSafetensors(const std::string& run_directory, const std::string& checkpoint_name,
                                              const std::string& output);

// The file's bytes up to the tensors' data: the header's length and the padded header. Keys of tables, "<table>.keys"
// (U64), come first, then the tensors, and last the tables' rows, "<table>.rows".
std::string SafetensorsHeader(const Checkpoint& checkpoint, const std::vector<NamedTable>& tables = {});

}  // namespace rubato

#endif  // RUBATO_CLI_EXPORT_SAFETENSORS_H_
