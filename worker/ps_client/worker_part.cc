#include "worker/ps_client/worker_part.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/status.h"
#include "common/storage/checkpoint.h"
#include "common/storage/safetensors_file.h"

namespace rubato::worker {
namespace {

// Whether a chunk of the file can be read into one of the job's.
absl::Status CheckFits(const v1::ChunkRecord& from, const WorkerPart::Chunk& to) {
  if (!std::equal(from.shape().begin(), from.shape().end(), to.record.shape().begin(), to.record.shape().end())) {
    return absl::FailedPreconditionError(absl::StrCat(to.record.tensor(), ": shape [",
                                                      absl::StrJoin(from.shape(), ", "), "], the job's is [",
                                                      absl::StrJoin(to.record.shape(), ", "), "]"));
  }
  if (!to.slots.empty() && from.slots_at_size() != static_cast<int>(to.slots.size())) {
    return absl::FailedPreconditionError(absl::StrCat(to.record.tensor(), ": ", from.slots_at_size(),
                                                      " optimizer slots, the job's optimizer.algorithm has ",
                                                      to.slots.size()));
  }
  return absl::OkStatus();
}

// Copies what the two have in common. Returns how many elements.
int64_t CopyCommon(const CheckpointPart& part, const v1::ChunkRecord& from, WorkerPart::Chunk* to) {
  const v1::ChunkRecord& record = to->record;
  const int64_t begin = std::max(from.offset(), record.offset());
  const int64_t end = std::min(from.offset() + from.length(), record.offset() + record.length());
  if (begin >= end) return 0;
  const uint64_t skipped = sizeof(float) * static_cast<uint64_t>(begin - from.offset());
  const auto copy = [&](uint64_t at, std::vector<float>* array) {
    part.Copy(at + skipped, end - begin, array->data() + (begin - record.offset()));
  };
  if (!to->residual.empty()) copy(from.values_at(), &to->residual);
  for (size_t slot = 0; slot < to->slots.size(); ++slot) {
    copy(from.slots_at(static_cast<int>(slot)), &to->slots[slot]);
  }
  to->record.set_updates(std::max(to->record.updates(), from.updates()));
  return end - begin;
}

absl::Status Fill(const CheckpointPart& part, WorkerPart::Chunk* chunk) {
  int64_t filled = 0;
  chunk->record.set_updates(0);
  for (const v1::ChunkRecord& record : part.manifest.chunks()) {
    if (record.tensor() != chunk->record.tensor()) continue;
    RUBATO_RETURN_IF_ERROR(CheckFits(record, *chunk));
    filled += CopyCommon(part, record, chunk);
  }
  const v1::ChunkRecord& record = chunk->record;
  if (filled == record.length()) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat("of ", record.tensor(), ", elements ", record.offset(), " to ",
                                                    record.offset() + record.length() - 1, ", it has ", filled, " of ",
                                                    record.length()));
}

}  // namespace

int64_t WorkerPart::bytes() const {
  int64_t floats = 0;
  for (const Chunk& chunk : chunks) {
    floats += static_cast<int64_t>(chunk.residual.size());
    for (const std::vector<float>& slot : chunk.slots) floats += static_cast<int64_t>(slot.size());
  }
  return floats * static_cast<int64_t>(sizeof(float));
}

absl::Status WriteWorkerPart(const std::string& directory, const v1::TaskId& task, const WorkerPart& part,
                             v1::CheckpointManifest manifest) {
  RUBATO_ASSIGN_OR_RETURN(std::unique_ptr<CheckpointWriter> writer, CheckpointWriter::Create(directory, task));
  std::vector<float> zeros;
  for (const WorkerPart::Chunk& chunk : part.chunks) {
    if (chunk.residual.empty()) zeros.resize(std::max(zeros.size(), static_cast<size_t>(chunk.record.length())));
    CheckpointChunk written = {.record = chunk.record,
                               .values = chunk.residual.empty() ? zeros.data() : chunk.residual.data()};
    for (const std::vector<float>& slot : chunk.slots) written.slots.push_back(slot.data());
    RUBATO_RETURN_IF_ERROR(writer->Add(written));
  }
  *manifest.mutable_worker() = part.state;
  return writer->Finish(std::move(manifest));
}

absl::StatusOr<bool> ReadWorkerPart(const std::string& directory, uint32_t index, const v1::Cut* cut,
                                    WorkerPart* part) {
  // A safetensors file has weights alone.
  if (IsSafetensorsPath(directory)) return false;
  // Without a cut it is about what the job has arrays for.
  if (cut == nullptr && part->chunks.empty()) return false;
  absl::StatusOr<CheckpointPart> file = ReadCheckpointPart(directory, v1::TaskId::WORKER, index);
  if (absl::IsNotFound(file.status())) return false;
  if (!file.ok()) return file.status();
  if (cut != nullptr && file->manifest.cut().id() != cut->id()) return false;
  // Of a worker that kept its loss scale alone.
  if (cut == nullptr && file->manifest.chunks().empty()) return false;
  for (WorkerPart::Chunk& chunk : part->chunks) RUBATO_RETURN_IF_ERROR(Annotate(Fill(*file, &chunk), directory));
  part->state = file->manifest.worker();
  return true;
}

}  // namespace rubato::worker
