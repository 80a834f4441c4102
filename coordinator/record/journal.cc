#include "coordinator/record/journal.h"

#include "absl/memory/memory.h"
#include "absl/strings/str_cat.h"
#include "common/status.h"
#include "common/storage/file.h"

namespace rubato::coordinator {
namespace {

// What is kept in memory until the next sync; more brings that forward.
constexpr size_t kMaxUnsyncedBytes = size_t{1} << 20;

// Errors of common/storage with the two codes that errors of the disk have here.
absl::Status AsDiskError(const absl::Status& status) {
  if (status.ok() || absl::IsResourceExhausted(status)) return status;
  return absl::UnavailableError(status.message());
}

absl::StatusOr<std::unique_ptr<FileLock>> Lock(const std::string& path) {
  absl::StatusOr<std::unique_ptr<FileLock>> lock = FileLock::Acquire(absl::StrCat(path, ".lock"));
  if (!absl::IsFailedPrecondition(lock.status())) return lock;
  const absl::string_view holder = lock.status().message();
  return absl::FailedPreconditionError(absl::StrCat(
      path, ": another coordinator ", holder.empty() ? "" : absl::StrCat("(", holder, ") "), "writes this journal"));
}

}  // namespace

absl::StatusOr<JournalContents> ReadJournal(const std::string& path, absl::string_view boot_id) {
  absl::StatusOr<std::string> bytes = ReadFile(path);
  if (absl::IsNotFound(bytes.status())) return bytes.status();
  if (!bytes.ok()) return AsDiskError(bytes.status());
  absl::StatusOr<JournalContents> contents = DecodeJournal(*bytes, boot_id);
  if (!contents.ok()) return Annotate(contents.status(), path);
  return contents;
}

absl::StatusOr<JournalWriter::Opened> JournalWriter::Open(const std::string& path, absl::string_view boot_id,
                                                          SyncFile sync) {
  // Before reading: whoever has the lock may be writing.
  RUBATO_ASSIGN_OR_RETURN(std::unique_ptr<FileLock> lock, Lock(path));
  absl::StatusOr<JournalContents> contents = ReadJournal(path, boot_id);
  if (absl::IsNotFound(contents.status())) contents = JournalContents();
  if (!contents.ok()) return contents.status();
  auto writer = absl::WrapUnique(new JournalWriter(path, std::move(lock), sync));
  for (v1::JournalRecord& record : contents->records) {
    if (record.has_header()) record.mutable_header()->set_format_version(kJournalFormatVersion);
  }
  absl::Status begun = writer->Replace(contents->records);
  if (absl::IsResourceExhausted(begun) && contents->format_version == kJournalFormatVersion) {
    begun = writer->GoOnWith(*contents);
  }
  RUBATO_RETURN_IF_ERROR(begun);
  return Opened{std::move(writer), std::move(contents->records)};
}

absl::Status JournalWriter::GoOnWith(const JournalContents& contents) {
  RUBATO_ASSIGN_OR_RETURN(file_, AppendFile::Open(path_, sync_));
  if (file_->size() > contents.bytes) RUBATO_RETURN_IF_ERROR(file_->Truncate(contents.bytes));
  directory_unsynced_ = true;
  return Sync();
}

absl::Status JournalWriter::CheckOwner() const {
  if (file_ == nullptr || !file_->IsReplaced()) return absl::OkStatus();
  return absl::AbortedError(absl::StrCat(path_, ": another coordinator writes this journal now"));
}

absl::Status JournalWriter::Append(const v1::JournalRecord& record, bool durable) {
  RUBATO_RETURN_IF_ERROR(CheckOwner());
  RUBATO_RETURN_IF_ERROR(Repair());
  const uint64_t before = file_->size();
  std::string frame(before == 0 ? kJournalFirstLine : "");
  RUBATO_RETURN_IF_ERROR(Annotate(AppendJournalRecord(record, &frame), path_));
  RUBATO_RETURN_IF_ERROR(file_->Append(frame));
  unsynced_ += frame;
  if (!durable && unsynced_.size() < kMaxUnsyncedBytes) return absl::OkStatus();
  absl::Status synced = Sync();
  if (synced.ok()) return synced;
  unsynced_.resize(unsynced_.size() - frame.size());
  unsynced_lost_ = true;
  // If it fails, the next Append begins with it.
  file_->Truncate(before).IgnoreError();
  return synced;
}

absl::Status JournalWriter::Repair() {
  if (!unsynced_lost_) return absl::OkStatus();
  RUBATO_RETURN_IF_ERROR(file_->Truncate(synced_bytes_));
  RUBATO_RETURN_IF_ERROR(file_->Append(unsynced_));
  return Sync();
}

absl::Status JournalWriter::Sync() {
  RUBATO_RETURN_IF_ERROR(file_->Sync());
  if (directory_unsynced_) RUBATO_RETURN_IF_ERROR(AsDiskError(SyncDirectory(DirectoryOf(path_))));
  directory_unsynced_ = false;
  NoteSynced();
  return absl::OkStatus();
}

void JournalWriter::NoteSynced() {
  unsynced_lost_ = false;
  unsynced_.clear();
  synced_bytes_ = file_->size();
}

absl::Status JournalWriter::Replace(const std::vector<v1::JournalRecord>& records) {
  // A journal without records is an empty file.
  std::string bytes(records.empty() ? "" : kJournalFirstLine);
  for (const v1::JournalRecord& record : records) {
    RUBATO_RETURN_IF_ERROR(Annotate(AppendJournalRecord(record, &bytes), path_));
  }
  RUBATO_RETURN_IF_ERROR(CheckOwner());
  const std::string temporary = absl::StrCat(path_, ".tmp");
  RUBATO_ASSIGN_OR_RETURN(std::unique_ptr<AppendFile> file, AppendFile::Open(temporary, sync_));
  absl::Status status = file->Truncate(0);
  if (status.ok()) status = file->Append(bytes);
  if (status.ok()) status = file->Sync();
  if (status.ok()) status = file->RenameTo(path_);
  if (!status.ok()) {
    RemoveFile(temporary).IgnoreError();
    return status;
  }
  file_ = std::move(file);
  NoteSynced();
  directory_unsynced_ = true;
  return Sync();
}

}  // namespace rubato::coordinator
