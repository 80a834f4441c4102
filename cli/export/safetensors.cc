#include "cli/export/safetensors.h"

#include <cstdint>
#include <memory>
#include <nlohmann/json.hpp>
#include <vector>

#include "absl/strings/str_cat.h"
#include "cli/checkpoint/run_checkpoints.h"
#include "common/status.h"
#include "common/storage/file.h"

namespace rubato {
namespace {

// Tensor data begins at a multiple of this many bytes.
constexpr size_t kAlignment = 8;

absl::Status WriteTensors(const Checkpoint& checkpoint, const std::vector<NamedTable>& tables,
                          const std::string& path) {
  RUBATO_ASSIGN_OR_RETURN(auto file, FileWriter::Create(path, FileWriter::kReplace));
  RUBATO_RETURN_IF_ERROR(file->Write(SafetensorsHeader(checkpoint, tables)));
  for (const NamedTable& table : tables) {
    RUBATO_RETURN_IF_ERROR(file->Write(table.keys.data(), sizeof(uint64_t) * table.keys.size()));
  }
  for (const NamedTensor& tensor : checkpoint.tensors) {
    RUBATO_RETURN_IF_ERROR(file->Write(tensor.values.data(), sizeof(float) * tensor.values.size()));
  }
  for (const NamedTable& table : tables) {
    RUBATO_RETURN_IF_ERROR(file->Write(table.rows.data(), sizeof(float) * table.rows.size()));
  }
  RUBATO_RETURN_IF_ERROR(file->Sync());
  return file->Close();
}

}  // namespace

std::string SafetensorsHeader(const Checkpoint& checkpoint, const std::vector<NamedTable>& tables) {
  nlohmann::ordered_json header;
  header["__metadata__"] = {{"job", checkpoint.job_name},
                            {"version_min", absl::StrCat(checkpoint.version_min)},
                            {"version_max", absl::StrCat(checkpoint.version_max)}};
  uint64_t begin = 0;
  const auto add = [&](const std::string& tensor, const char* dtype, const std::vector<int64_t>& shape, size_t bytes) {
    header[tensor] = {{"dtype", dtype}, {"shape", shape}, {"data_offsets", {begin, begin + bytes}}};
    begin += bytes;
  };
  for (const NamedTable& table : tables) {
    add(table.name + ".keys", "U64", {static_cast<int64_t>(table.keys.size())}, sizeof(uint64_t) * table.keys.size());
  }
  for (const NamedTensor& tensor : checkpoint.tensors) {
    add(tensor.name, "F32", tensor.shape, sizeof(float) * tensor.values.size());
  }
  for (const NamedTable& table : tables) {
    add(table.name + ".rows", "F32", {static_cast<int64_t>(table.keys.size()), table.dimension},
        sizeof(float) * table.rows.size());
  }
  std::string text = header.dump();
  text.append((kAlignment - text.size() % kAlignment) % kAlignment, ' ');
  std::string bytes;
  for (int i = 0; i < 8; ++i) bytes.push_back(static_cast<char>(uint64_t{text.size()} >> (8 * i)));
  return bytes + text;
}

absl::StatusOr<std::string> ExportSafetensors(const std::string& run_directory, const std::string& checkpoint_name,
                                              const std::string& output) {
  const std::string checkpoints = CheckpointsOfRun(run_directory);
  RUBATO_ASSIGN_OR_RETURN(std::string name, FindCheckpoint(run_directory, checkpoint_name));
  RUBATO_ASSIGN_OR_RETURN(const Checkpoint checkpoint, ReadCheckpoint(JoinPath(checkpoints, name)));
  RUBATO_ASSIGN_OR_RETURN(const std::vector<NamedTable> tables, ReadCheckpointTables(JoinPath(checkpoints, name)));
  const std::string temporary = absl::StrCat(output, ".tmp");
  absl::Status status = WriteTensors(checkpoint, tables, temporary);
  if (status.ok()) status = RenameFile(temporary, output);
  if (status.ok()) return name;
  RemoveFile(temporary).IgnoreError();
  return status;
}

}  // namespace rubato
