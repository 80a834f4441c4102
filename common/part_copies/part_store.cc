#include "common/part_copies/part_store.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "common/status.h"
#include "common/storage/cut_record.h"
#include "common/storage/file.h"
#include "common/task.h"

namespace rubato {
namespace {

absl::Status CheckBytes(absl::string_view field, size_t bytes) {
  if (bytes <= PartStore::kMaxBytes) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(field, ": ", bytes, " bytes; at most ", PartStore::kMaxBytes, " travel at a time"));
}

std::string TextOf(const v1::PartName& part) {
  return absl::StrCat(part.checkpoint(), "/", CheckpointPartName(part.role(), part.index()));
}

}  // namespace

void PartStore::SetJob(uint64_t fingerprint) {
  MutexLock lock(mu_);
  fingerprint_ = fingerprint;
}

absl::Status PartStore::Check(const v1::PartName& part) const {
  {
    MutexLock lock(mu_);
    if (fingerprint_ == 0) return absl::UnavailableError("this server is in no job yet");
    if (part.job_fingerprint() != fingerprint_) {
      return absl::FailedPreconditionError(absl::StrCat("part.job_fingerprint: ", absl::Hex(part.job_fingerprint()),
                                                        "; this server is in job ", absl::Hex(fingerprint_)));
    }
  }
  if (!IsCheckpointName(part.checkpoint())) {
    return absl::InvalidArgumentError(
        absl::StrCat("part.checkpoint: '", part.checkpoint(), "'; allowed: step<number>, final, stopped"));
  }
  if (part.role() != v1::TaskId::SERVER && part.role() != v1::TaskId::WORKER) {
    return absl::InvalidArgumentError(absl::StrCat("part.role: ", part.role(), "; allowed: SERVER, WORKER"));
  }
  return absl::OkStatus();
}

std::string PartStore::DirectoryOf(const v1::PartName& part) const {
  return JoinPath(options_.directory, part.checkpoint());
}

absl::StatusOr<v1::ReadPartReply> PartStore::Read(const v1::ReadPartRequest& request) const {
  const v1::PartName& part = request.part();
  RUBATO_RETURN_IF_ERROR(Check(part));
  RUBATO_RETURN_IF_ERROR(CheckBytes("bytes", request.bytes()));
  const std::string directory = DirectoryOf(part);
  absl::StatusOr<v1::CheckpointManifest> manifest =
      ReadCheckpointManifest(directory, part.role(), part.index(), part.cut_id());
  if (!manifest.ok()) {
    // Of another cut, or damaged: not the one that is asked for.
    return absl::NotFoundError(manifest.status().message());
  }
  v1::ReadPartReply reply;
  if (request.bytes() > 0) {
    RUBATO_ASSIGN_OR_RETURN(*reply.mutable_data(), ReadCheckpointData(directory, part.role(), part.index(),
                                                                      request.offset(), request.bytes()));
  }
  if (request.offset() == 0) *reply.mutable_manifest() = *std::move(manifest);
  return reply;
}

bool PartStore::Has(const v1::PartName& part, const v1::CheckpointManifest& manifest) const {
  const absl::StatusOr<v1::CheckpointManifest> there =
      ReadCheckpointManifest(DirectoryOf(part), part.role(), part.index(), part.cut_id());
  return there.ok() && there->data_crc32() == manifest.data_crc32() && there->data_bytes() == manifest.data_bytes() &&
         SameTask(there->task(), manifest.task());
}

absl::StatusOr<std::shared_ptr<PartStore::Incoming>> PartStore::Find(const Key& key, bool begins) {
  const absl::Time now = options_.clock->Now();
  MutexLock lock(mu_);
  if (!begins) {
    const auto found = incoming_.find(key);
    if (found == incoming_.end()) return nullptr;
    found->second->last = now;
    return found->second;
  }
  incoming_.erase(key);
  const auto oldest = std::min_element(incoming_.begin(), incoming_.end(),
                                       [](const auto& a, const auto& b) { return a.second->last < b.second->last; });
  if (incoming_.size() >= options_.max_incoming) {
    if (now - oldest->second->last < options_.idle) {
      return absl::ResourceExhaustedError(
          absl::StrCat("takes ", incoming_.size(), " copies of parts already; no more at the same time"));
    }
    incoming_.erase(oldest);
  }
  auto copy = std::make_shared<Incoming>();
  copy->last = now;
  incoming_[key] = copy;
  return copy;
}

void PartStore::Drop(const Key& key, const std::shared_ptr<Incoming>& copy) {
  MutexLock lock(mu_);
  const auto found = incoming_.find(key);
  if (found != incoming_.end() && found->second == copy) incoming_.erase(found);
}

absl::StatusOr<v1::WritePartReply> PartStore::Write(const v1::WritePartRequest& request) {
  const v1::PartName& part = request.part();
  RUBATO_RETURN_IF_ERROR(Check(part));
  RUBATO_RETURN_IF_ERROR(CheckBytes("data", request.data().size()));
  if (part.role() == options_.task.role() && part.index() == options_.task.index()) {
    return absl::InvalidArgumentError(absl::StrCat("part.index: ", part.index(), " is this server itself"));
  }
  const bool begins = request.has_manifest();
  if (begins) {
    if (request.offset() != 0) {
      return absl::InvalidArgumentError(absl::StrCat("offset: ", request.offset(), "; 0 with the manifest"));
    }
    const v1::CheckpointManifest& manifest = request.manifest();
    if (manifest.task().role() != part.role() || manifest.task().index() != part.index() ||
        manifest.cut().id() != part.cut_id()) {
      return absl::InvalidArgumentError(absl::StrCat("manifest: is of ", TaskName(manifest.task()), " and ",
                                                     CutName(manifest.cut()), ", part is of ", TextOf(part),
                                                     " and cut ", part.cut_id()));
    }
    if (Has(part, manifest)) {
      v1::WritePartReply reply;
      reply.set_complete(true);
      return reply;
    }
  }
  const Key key = {part.role(), part.index()};
  RUBATO_ASSIGN_OR_RETURN(const std::shared_ptr<Incoming> copy, Find(key, begins));
  absl::StatusOr<v1::WritePartReply> reply = absl::FailedPreconditionError(absl::StrCat(
      "offset: ", request.offset(), "; of ", TextOf(part), " nothing has come, begin again with the manifest"));
  if (copy != nullptr) reply = Take(request, copy);
  if (!reply.ok() || reply->complete()) Drop(key, copy);
  return reply;
}

absl::StatusOr<v1::WritePartReply> PartStore::Take(const v1::WritePartRequest& request,
                                                   const std::shared_ptr<Incoming>& copy) {
  const v1::PartName& part = request.part();
  MutexLock lock(copy->mu);
  if (request.has_manifest()) {
    RUBATO_ASSIGN_OR_RETURN(copy->writer, CheckpointWriter::Create(DirectoryOf(part), request.manifest().task()));
    copy->checkpoint = part.checkpoint();
    copy->manifest = request.manifest();
    copy->bytes = 0;
  }
  if (copy->writer == nullptr || request.offset() != copy->bytes || copy->checkpoint != part.checkpoint() ||
      copy->manifest.cut().id() != part.cut_id()) {
    return absl::FailedPreconditionError(absl::StrCat("offset: ", request.offset(), " of ", TextOf(part), "; of ",
                                                      copy->checkpoint, " ", copy->bytes,
                                                      " bytes have come, begin again with the manifest"));
  }
  RUBATO_RETURN_IF_ERROR(copy->writer->Copy(request.data()));
  copy->bytes += request.data().size();
  v1::WritePartReply reply;
  if (copy->bytes >= copy->manifest.data_bytes()) {
    RUBATO_RETURN_IF_ERROR(copy->writer->FinishCopy(copy->manifest));
    reply.set_complete(true);
  }
  return reply;
}

}  // namespace rubato
