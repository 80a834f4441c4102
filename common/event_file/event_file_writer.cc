#include "common/event_file/event_file_writer.h"

#include <unistd.h>

#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/event_file/crc32c.h"
#include "common/status.h"

namespace rubato {
namespace {

namespace fs = std::filesystem;

void AppendLittleEndian(uint64_t value, int bytes, std::string* to) {
  for (int i = 0; i < bytes; ++i) to->push_back(static_cast<char>(value >> (8 * i) & 0xff));
}

// A name that is not there yet.
std::string NewName(const std::string& directory, absl::Time now) {
  char host[256] = "localhost";
  if (gethostname(host, sizeof(host) - 1) != 0) host[0] = '\0';
  const std::string base =
      absl::StrCat(directory, "/events.out.tfevents.", absl::ToUnixSeconds(now), ".", host, ".", getpid());
  for (int number = 0;; ++number) {
    std::string path = absl::StrCat(base, ".", number);
    std::error_code error;
    if (!fs::exists(path, error)) return path;
  }
}

}  // namespace

std::string EventRecord(const tensorflow::Event& event) {
  const std::string data = event.SerializeAsString();
  std::string record;
  AppendLittleEndian(data.size(), 8, &record);
  AppendLittleEndian(MaskedCrc32c(record), 4, &record);
  record += data;
  AppendLittleEndian(MaskedCrc32c(data), 4, &record);
  return record;
}

absl::StatusOr<std::unique_ptr<EventFileWriter>> EventFileWriter::Create(const std::string& directory, absl::Time now) {
  std::error_code error;
  fs::create_directories(directory, error);
  if (error) return absl::UnavailableError(absl::StrCat(directory, ": cannot be created: ", error.message()));
  std::unique_ptr<EventFileWriter> writer(new EventFileWriter(NewName(directory, now)));
  writer->file_.open(writer->path_, std::ios::binary | std::ios::trunc);
  tensorflow::Event version;
  version.set_wall_time(absl::ToDoubleSeconds(now - absl::UnixEpoch()));
  version.set_file_version("brain.Event:2");
  RUBATO_RETURN_IF_ERROR(writer->Append(version));
  return writer;
}

absl::Status EventFileWriter::Append(const tensorflow::Event& event) {
  const std::string record = EventRecord(event);
  file_.write(record.data(), static_cast<std::streamsize>(record.size())).flush();
  if (!file_) return absl::UnavailableError(absl::StrCat(path_, ": cannot be written"));
  return absl::OkStatus();
}

}  // namespace rubato
