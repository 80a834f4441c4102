#ifndef RUBATO_CLI_EXPORT_SAFETENSORS_H_
#define RUBATO_CLI_EXPORT_SAFETENSORS_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/storage/checkpoint.h"

namespace rubato {

// Writes the weights and tables of a run's checkpoint, that of FindCheckpoint, as one safetensors file
// (docs/formats.md), and returns the checkpoint's name. Nothing in the file depends on when, where or by how many
// servers the weights were computed, so equal runs give equal bytes. `output` is replaced in one step, or unchanged on
// an error. Errors: those of FindCheckpoint, ReadCheckpoint and of writing.
absl::StatusOr<std::string> ExportSafetensors(const std::string& run_directory, const std::string& checkpoint_name,
                                              const std::string& output);

// The file's bytes up to the tensors' data: the header's length and the padded header. Keys of tables, "<table>.keys"
// (U64), come first, then the tensors, and last the tables' rows, "<table>.rows".
std::string SafetensorsHeader(const Checkpoint& checkpoint, const std::vector<NamedTable>& tables = {});

}  // namespace rubato

#endif  // RUBATO_CLI_EXPORT_SAFETENSORS_H_
