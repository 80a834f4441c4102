#include "worker/data/byte_file.h"

#include <algorithm>
#include <cerrno>

#include "absl/strings/str_cat.h"
#include "common/status.h"

namespace rubato::worker {

absl::StatusOr<std::unique_ptr<ByteFile>> ByteFile::Open(const std::string& path) {
  errno = 0;
  gzFile file = gzopen(path.c_str(), "rb");
  // zlib leaves errno alone when it has no memory.
  if (file == nullptr) return absl::ErrnoToStatus(errno == 0 ? ENOMEM : errno, absl::StrCat("cannot open ", path));
  gzbuffer(file, 1 << 17);
  return std::unique_ptr<ByteFile>(new ByteFile(path, file));
}

ByteFile::~ByteFile() { gzclose(file_); }

absl::StatusOr<int64_t> ByteFile::Read(void* buffer, int64_t size) {
  constexpr int64_t kMaxRead = 1 << 30;  // gzread counts in int.
  int64_t done = 0;
  while (done < size) {
    errno = 0;
    const int read =
        gzread(file_, static_cast<char*>(buffer) + done, static_cast<unsigned>(std::min(size - done, kMaxRead)));
    int code = Z_OK;
    const char* why = gzerror(file_, &code);
    if (code == Z_ERRNO) return absl::ErrnoToStatus(errno, absl::StrCat("cannot read ", path_));
    if (read < 0 || (code != Z_OK && code != Z_STREAM_END)) {
      return absl::DataLossError(absl::StrCat("damaged or truncated gzip file ", path_, ": ", why));
    }
    if (read == 0) break;
    done += read;
  }
  return done;
}

absl::StatusOr<std::vector<uint8_t>> ReadWholeFile(const std::string& path, int64_t max_bytes) {
  RUBATO_ASSIGN_OR_RETURN(std::unique_ptr<ByteFile> file, ByteFile::Open(path));
  std::vector<uint8_t> bytes;
  for (int64_t done = 0;;) {
    const int64_t step = std::max<int64_t>(done, 1 << 20);
    bytes.resize(done + step);
    RUBATO_ASSIGN_OR_RETURN(const int64_t count, file->Read(bytes.data() + done, step));
    done += count;
    if (done > max_bytes) {
      return absl::ResourceExhaustedError(absl::StrCat(path, ": more than ", max_bytes, " bytes"));
    }
    if (count == step) continue;
    bytes.resize(done);
    return bytes;
  }
}

}  // namespace rubato::worker
