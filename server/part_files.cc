#include "server/part_files.h"

#include <algorithm>
#include <filesystem>
#include <memory>
#include <system_error>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "common/status.h"
#include "common/storage/checkpoint.h"
#include "common/storage/cut_record.h"
#include "common/storage/file.h"

namespace rubato::server {
bool IsCheckpointName(absl::string_view name) { return name == "final" || CheckCutName(name).ok(); }

absl::StatusOr<int64_t> PartFiles::Write(const Part& part, const std::function<bool()>& cancelled) const {
  if (!IsCheckpointName(part.name)) {
    return absl::InvalidArgumentError(
        absl::StrCat("name: '", part.name, "'; a checkpoint is called step<number>, final or stopped"));
  }
  const std::string directory = JoinPath(options_.directory, part.name);
  absl::StatusOr<int64_t> bytes = TryWrite(directory, part, cancelled);
  if (!bytes.ok()) {
    // What is half written may take up the room that is missing.
    const std::string path = JoinPath(directory, CheckpointPartName(v1::TaskId::SERVER, options_.task.index()));
    for (const char* suffix : {".data.tmp", ".manifest.tmp"}) RemoveFile(path + suffix).IgnoreError();
  }
  return bytes;
}

absl::StatusOr<int64_t> PartFiles::TryWrite(const std::string& directory, const Part& part,
                                            const std::function<bool()>& cancelled) const {
  RUBATO_ASSIGN_OR_RETURN(auto writer, CheckpointWriter::Create(directory, options_.task));
  for (const ChunkSnapshot& chunk : part.chunks) {
    if (cancelled()) return absl::CancelledError(absl::StrCat(directory, ": given up"));
    CheckpointChunk entry;
    entry.record = chunk.record;
    entry.values = chunk.weights->data();
    for (const FloatBuffer::Ptr& slot : chunk.slots) entry.slots.push_back(slot->data());
    RUBATO_RETURN_IF_ERROR(writer->Add(entry));
  }
  v1::CheckpointManifest manifest;
  manifest.set_job_name(options_.job_name);
  uint32_t servers = options_.task.index() + 1;
  for (uint32_t index : options_.servers) {
    servers = std::max(servers, index + 1);
    manifest.add_server_indices(index);
  }
  manifest.set_servers(servers);
  *manifest.mutable_plan() = part.plan;
  if (part.cut.id() != 0) *manifest.mutable_cut() = part.cut;
  RUBATO_RETURN_IF_ERROR(writer->Finish(std::move(manifest)));
  const std::string name = CheckpointPartName(v1::TaskId::SERVER, options_.task.index());
  RUBATO_ASSIGN_OR_RETURN(uint64_t bytes, FileBytes(JoinPath(directory, name + ".data")));
  return static_cast<int64_t>(bytes);
}

absl::Status PartFiles::KeepOnly(const std::vector<std::string>& names) const {
  absl::StatusOr<std::vector<std::string>> found = ListDirectory(options_.directory);
  if (absl::IsNotFound(found.status())) return absl::OkStatus();
  RUBATO_RETURN_IF_ERROR(found.status());
  absl::Status status;
  for (const std::string& name : *found) {
    const bool keep = name == "step0" || std::find(names.begin(), names.end(), name) != names.end();
    if (!keep && StepOfCheckpoint(name) >= 0) status.Update(RemoveFrom(JoinPath(options_.directory, name)));
  }
  return status;
}

absl::Status PartFiles::RemoveFrom(const std::string& directory) const {
  const std::string path = JoinPath(directory, CheckpointPartName(v1::TaskId::SERVER, options_.task.index()));
  // The manifest first: a part without data would otherwise seem to be there.
  for (const char* suffix : {".manifest", ".manifest.tmp", ".data", ".data.tmp"}) {
    RUBATO_RETURN_IF_ERROR(RemoveFile(path + suffix));
  }
  std::error_code not_empty;  // Others' parts are theirs to remove.
  std::filesystem::remove(directory, not_empty);
  return absl::OkStatus();
}

}  // namespace rubato::server
