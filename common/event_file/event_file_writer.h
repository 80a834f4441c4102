#ifndef RUBATO_COMMON_EVENT_FILE_EVENT_FILE_WRITER_H_
#define RUBATO_COMMON_EVENT_FILE_EVENT_FILE_WRITER_H_

#include <fstream>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "proto/tensorflow_event.pb.h"

namespace rubato {

// Writes an event file as TensorBoard reads it: tensorflow.Event messages in TFRecord framing, each with masked CRC-32C
// of its length and of its bytes. Not thread-safe.
//
//   RUBATO_ASSIGN_OR_RETURN(auto writer, EventFileWriter::Create("runs/a/tensorboard", clock.Now()));
//   RUBATO_RETURN_IF_ERROR(writer->Append(event));
class EventFileWriter {
 public:
  // Begins a new file in `directory`, which is created; files that are there stay, and are read as its past. The name
  // has what TensorBoard looks for, "tfevents", the time, host and process. Unavailable: an I/O error.
  static absl::StatusOr<std::unique_ptr<EventFileWriter>> Create(const std::string& directory, absl::Time now);

  // The event has been handed to the system on return, whole or not at all for a reader. Unavailable: an I/O error.
  absl::Status Append(const tensorflow::Event& event);

  const std::string& path() const { return path_; }

 private:
  explicit EventFileWriter(std::string path) : path_(std::move(path)) {}

  const std::string path_;
  std::ofstream file_;
};

// An event framed as a record. Pure.
std::string EventRecord(const tensorflow::Event& event);

}  // namespace rubato

#endif  // RUBATO_COMMON_EVENT_FILE_EVENT_FILE_WRITER_H_
