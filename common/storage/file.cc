#include "common/storage/file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "common/status.h"

namespace rubato {
namespace {

constexpr size_t kBufferBytes = 256 * 1024;

}  // namespace

absl::Status ErrnoError(int error, absl::string_view action, absl::string_view path) {
  return absl::ErrnoToStatus(error, absl::StrCat(action, " ", path));
}

std::string DirectoryOf(const std::string& path) {
  const size_t slash = path.rfind('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

absl::Status SyncDirectory(const std::string& path) {
  const int descriptor = open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor < 0) return ErrnoError(errno, "cannot open directory", path);
  const int error = fsync(descriptor) == 0 ? 0 : errno;
  close(descriptor);
  // Some file systems cannot sync a directory and say so.
  if (error != 0 && error != EINVAL) return ErrnoError(error, "cannot sync directory", path);
  return absl::OkStatus();
}

std::string JoinPath(absl::string_view directory, absl::string_view name) {
  if (directory.empty() || directory.back() == '/') return absl::StrCat(directory, name);
  return absl::StrCat(directory, "/", name);
}

absl::StatusOr<std::string> ReadFile(const std::string& path) {
  const int descriptor = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor < 0) return ErrnoError(errno, "cannot open", path);
  std::string contents;
  struct stat info;
  if (fstat(descriptor, &info) == 0 && info.st_size > 0) contents.reserve(static_cast<size_t>(info.st_size) + 1);
  int error = 0;
  for (;;) {
    const size_t used = contents.size();
    contents.resize(std::max(used + 4096, contents.capacity()));
    const ssize_t got = read(descriptor, contents.data() + used, contents.size() - used);
    contents.resize(used + static_cast<size_t>(std::max<ssize_t>(got, 0)));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) error = errno;
    if (got <= 0) break;
  }
  close(descriptor);
  if (error != 0) return ErrnoError(error, "cannot read", path);
  return contents;
}

absl::StatusOr<std::string> ReadFileRange(const std::string& path, uint64_t offset, size_t bytes) {
  const int descriptor = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor < 0) return ErrnoError(errno, "cannot open", path);
  std::string contents(bytes, '\0');
  size_t filled = 0;
  int error = 0;
  while (filled < bytes) {
    const ssize_t got =
        pread(descriptor, contents.data() + filled, bytes - filled, static_cast<off_t>(offset + filled));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) error = errno;
    if (got <= 0) break;
    filled += static_cast<size_t>(got);
  }
  close(descriptor);
  if (error != 0) return ErrnoError(error, "cannot read", path);
  contents.resize(filled);
  return contents;
}

absl::Status WriteFileAtomically(const std::string& path, absl::string_view contents) {
  const std::string temporary = absl::StrCat(path, ".tmp");
  RUBATO_ASSIGN_OR_RETURN(auto file, FileWriter::Create(temporary, FileWriter::kReplace));
  RUBATO_RETURN_IF_ERROR(file->Write(contents));
  RUBATO_RETURN_IF_ERROR(file->Sync());
  RUBATO_RETURN_IF_ERROR(file->Close());
  return RenameFile(temporary, path);
}

absl::Status MakeDirectories(const std::string& path) {
  std::error_code error;
  if (std::filesystem::is_directory(path, error)) return absl::OkStatus();
  // "a/b/" names the directory "a/b".
  const std::string bare(absl::StripSuffix(path, "/"));
  const std::string parent = DirectoryOf(bare);
  if (bare.empty() || parent == bare) return ErrnoError(ENOENT, "cannot create directory", path);
  RUBATO_RETURN_IF_ERROR(MakeDirectories(parent));
  if (mkdir(bare.c_str(), 0777) == 0) return SyncDirectory(parent);
  const int reason = errno;
  // Another task may have been quicker.
  if (std::filesystem::is_directory(bare, error)) return absl::OkStatus();
  return ErrnoError(reason == EEXIST ? ENOTDIR : reason, "cannot create directory", path);
}

bool FileExists(const std::string& path) {
  struct stat info;
  return stat(path.c_str(), &info) == 0;
}

absl::StatusOr<uint64_t> FileBytes(const std::string& path) {
  struct stat info;
  if (stat(path.c_str(), &info) != 0) return ErrnoError(errno, "cannot look at", path);
  return static_cast<uint64_t>(info.st_size);
}

absl::StatusOr<absl::Time> FileTime(const std::string& path) {
  struct stat info;
  if (stat(path.c_str(), &info) != 0) return ErrnoError(errno, "cannot look at", path);
  return absl::TimeFromTimespec(info.st_mtim);
}

absl::StatusOr<std::vector<std::string>> ListDirectory(const std::string& path) {
  std::error_code error;
  std::filesystem::directory_iterator entry(path, error);
  std::vector<std::string> names;
  while (!error && entry != std::filesystem::directory_iterator()) {
    names.push_back(entry->path().filename().string());
    entry.increment(error);
  }
  if (error) return ErrnoError(error.value(), "cannot list directory", path);
  std::sort(names.begin(), names.end());
  return names;
}

absl::Status RemoveFile(const std::string& path) {
  if (unlink(path.c_str()) == 0 || errno == ENOENT) return absl::OkStatus();
  return ErrnoError(errno, "cannot remove", path);
}

absl::Status RenameFile(const std::string& from, const std::string& to) {
  if (rename(from.c_str(), to.c_str()) != 0) {
    return ErrnoError(errno, absl::StrCat("cannot rename ", from, " to"), to);
  }
  return SyncDirectory(DirectoryOf(to));
}

FileWriter::FileWriter(std::string path, int descriptor) : path_(std::move(path)), descriptor_(descriptor) {
  buffer_.reserve(kBufferBytes);
}

absl::StatusOr<std::unique_ptr<FileWriter>> FileWriter::Create(const std::string& path, Mode mode) {
  const int flags = O_WRONLY | O_CREAT | O_CLOEXEC | (mode == kNew ? O_EXCL : O_TRUNC);
  const int descriptor = open(path.c_str(), flags, 0644);
  if (descriptor < 0) return ErrnoError(errno, "cannot create", path);
  return std::unique_ptr<FileWriter>(new FileWriter(path, descriptor));
}

FileWriter::~FileWriter() {
  if (descriptor_ >= 0) Close().IgnoreError();
}

absl::Status FileWriter::Write(absl::string_view bytes) { return Write(bytes.data(), bytes.size()); }

// The buffer leaves in blocks of its full size, wherever these end: a killed process thus leaves a torn record in a
// log, which its reader recognises, rather than a file that seems complete.
absl::Status FileWriter::Write(const void* data, size_t bytes) {
  RUBATO_RETURN_IF_ERROR(status_);
  const char* from = static_cast<const char*>(data);
  bytes_ += bytes;
  while (bytes > 0) {
    if (buffer_.empty() && bytes >= kBufferBytes) return WriteThrough(from, bytes);
    const size_t taken = std::min(bytes, kBufferBytes - buffer_.size());
    buffer_.append(from, taken);
    from += taken;
    bytes -= taken;
    if (buffer_.size() == kBufferBytes) RUBATO_RETURN_IF_ERROR(Flush());
  }
  return absl::OkStatus();
}

absl::Status FileWriter::WriteThrough(const char* data, size_t bytes) {
  while (bytes > 0) {
    const ssize_t written = write(descriptor_, data, bytes);
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return status_ = ErrnoError(errno, "cannot write", path_);
    data += written;
    bytes -= static_cast<size_t>(written);
  }
  return absl::OkStatus();
}

absl::Status FileWriter::Flush() {
  RUBATO_RETURN_IF_ERROR(status_);
  RUBATO_RETURN_IF_ERROR(WriteThrough(buffer_.data(), buffer_.size()));
  buffer_.clear();
  return absl::OkStatus();
}

absl::Status FileWriter::Sync() {
  RUBATO_RETURN_IF_ERROR(Flush());
  if (fsync(descriptor_) != 0) return status_ = ErrnoError(errno, "cannot sync", path_);
  return absl::OkStatus();
}

absl::Status FileWriter::Close() {
  if (descriptor_ < 0) return status_;
  absl::Status flushed = Flush();
  const int error = close(descriptor_) == 0 ? 0 : errno;
  descriptor_ = -1;
  status_ = absl::FailedPreconditionError(absl::StrCat(path_, " is closed"));
  if (flushed.ok() && error != 0) return ErrnoError(error, "cannot close", path_);
  return flushed;
}

}  // namespace rubato
