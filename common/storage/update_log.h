#ifndef RUBATO_COMMON_STORAGE_UPDATE_LOG_H_
#define RUBATO_COMMON_STORAGE_UPDATE_LOG_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/storage/file.h"
#include "proto/update_log.pb.h"

namespace rubato {

// "updates-server1-partition0.log"; "updates-server1-partition0-term3.log" if the job went back to a checkpoint in
// term 3 (JobDescription.rollback_term). 0 and 1: it did not.
std::string UpdateLogName(uint32_t server, uint32_t partition, uint64_t rollback_term = 1);

// Writes one partition's update log (docs/formats.md): records, each after its length and CRC. Buffered: what was not
// flushed is lost with the process. Not thread-safe; owned by the partition's thread.
//
//   RUBATO_ASSIGN_OR_RETURN(auto log, UpdateLogWriter::Create(path, header));
//   RUBATO_RETURN_IF_ERROR(log->Append(record));
class UpdateLogWriter {
 public:
  // Creates the file with its header record. AlreadyExists when there is one: an earlier run's evidence stays.
  static absl::StatusOr<std::unique_ptr<UpdateLogWriter>> Create(const std::string& path, const v1::LogHeader& header);

  // After an error, every later call fails with it.
  absl::Status Append(const v1::UpdateLogRecord& record);
  // Hands everything to the operating system, at the end of a record.
  absl::Status Flush() { return file_->Flush(); }
  // Flushes and closes; the destructor does so, too, and hides errors.
  absl::Status Close() { return file_->Close(); }

 private:
  explicit UpdateLogWriter(std::unique_ptr<FileWriter> file) : file_(std::move(file)) {}

  const std::unique_ptr<FileWriter> file_;
  std::string frame_;
};

// Reads an update log from its start, in blocks. Not thread-safe.
//
//   RUBATO_ASSIGN_OR_RETURN(auto log, UpdateLogReader::Open(path));
//   for (;;) {
//     RUBATO_ASSIGN_OR_RETURN(bool more, log->Next(&record));
//     if (!more) break;
//   }
class UpdateLogReader {
 public:
  // Reads the header. DataLoss when the file does not begin with one.
  static absl::StatusOr<std::unique_ptr<UpdateLogReader>> Open(const std::string& path);
  ~UpdateLogReader();
  UpdateLogReader(const UpdateLogReader&) = delete;
  UpdateLogReader& operator=(const UpdateLogReader&) = delete;

  const v1::LogHeader& header() const { return header_; }

  // The next plan, update or served step; false at the end. A torn last record is an end. DataLoss, with the record's
  // offset, when a record is corrupt.
  absl::StatusOr<bool> Next(v1::UpdateLogRecord* record);

  // Whether the end was in the middle of a record: the writer was killed.
  bool torn() const { return torn_; }

 private:
  UpdateLogReader(std::string path, int descriptor) : path_(std::move(path)), descriptor_(descriptor) {}

  absl::StatusOr<bool> ReadRecord(v1::UpdateLogRecord* record);
  // Whether `bytes` more are in the buffer, read from the file if needed.
  absl::StatusOr<bool> Fill(size_t bytes);
  absl::Status Corrupt(absl::string_view what) const;

  const std::string path_;
  const int descriptor_;
  v1::LogHeader header_;
  std::string buffer_;
  size_t position_ = 0;  // In the buffer, of the next record.
  uint64_t offset_ = 0;  // In the file, of the same.
  bool torn_ = false;
};

}  // namespace rubato

#endif  // RUBATO_COMMON_STORAGE_UPDATE_LOG_H_
