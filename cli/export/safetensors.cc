#include "cli/export/safetensors.h"

#include <cstdint>
#include <memory>
#include <nlohmann/json.hpp>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/status.h"
#include "common/storage/file.h"

namespace rubato {
namespace {

// Tensor data begins at a multiple of this many bytes.
constexpr size_t kAlignment = 8;

absl::Status WriteTensors(const Checkpoint& checkpoint, const std::string& path) {
  RUBATO_ASSIGN_OR_RETURN(auto file, FileWriter::Create(path, FileWriter::kReplace));
  RUBATO_RETURN_IF_ERROR(file->Write(SafetensorsHeader(checkpoint)));
  for (const NamedTensor& tensor : checkpoint.tensors) {
    RUBATO_RETURN_IF_ERROR(file->Write(tensor.values.data(), sizeof(float) * tensor.values.size()));
  }
  RUBATO_RETURN_IF_ERROR(file->Sync());
  return file->Close();
}

absl::StatusOr<Checkpoint> FindCheckpoint(const std::string& run_directory, const std::string& name) {
  const std::string all = JoinPath(run_directory, "checkpoints");
  const std::string directory = JoinPath(all, name);
  if (FileExists(directory)) return ReadCheckpoint(directory);
  absl::StatusOr<std::vector<std::string>> names = ListDirectory(all);
  return absl::NotFoundError(absl::StrCat(
      directory, ": there is no such checkpoint; ",
      names.ok() && !names->empty() ? absl::StrCat("there are: ", absl::StrJoin(*names, ", ")) : "there is none"));
}

}  // namespace

std::string SafetensorsHeader(const Checkpoint& checkpoint) {
  nlohmann::ordered_json header;
  header["__metadata__"] = {{"job", checkpoint.job_name},
                            {"plan_generation", absl::StrCat(checkpoint.plan.generation())},
                            {"version_min", absl::StrCat(checkpoint.version_min)},
                            {"version_max", absl::StrCat(checkpoint.version_max)}};
  uint64_t begin = 0;
  for (const NamedTensor& tensor : checkpoint.tensors) {
    const uint64_t end = begin + sizeof(float) * tensor.values.size();
    header[tensor.name] = {{"dtype", "F32"}, {"shape", tensor.shape}, {"data_offsets", {begin, end}}};
    begin = end;
  }
  std::string text = header.dump();
  text.append((kAlignment - text.size() % kAlignment) % kAlignment, ' ');
  std::string bytes;
  for (int i = 0; i < 8; ++i) bytes.push_back(static_cast<char>(uint64_t{text.size()} >> (8 * i)));
  return bytes + text;
}

absl::Status ExportSafetensors(const std::string& run_directory, const std::string& checkpoint_name,
                               const std::string& output) {
  RUBATO_ASSIGN_OR_RETURN(Checkpoint checkpoint, FindCheckpoint(run_directory, checkpoint_name));
  const std::string temporary = absl::StrCat(output, ".tmp");
  absl::Status status = WriteTensors(checkpoint, temporary);
  if (status.ok()) return RenameFile(temporary, output);
  RemoveFile(temporary).IgnoreError();
  return status;
}

}  // namespace rubato
