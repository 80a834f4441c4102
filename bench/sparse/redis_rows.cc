#include "bench/sparse/redis_rows.h"

#include <sys/socket.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "bench/push_pull/sockets.h"
#include "common/file_descriptor.h"
#include "common/status.h"

namespace rubato::bench {
namespace {

// Keys of one command, few enough that redis answers the first ones while the last are on their way.
constexpr size_t kKeysTogether = 512;

// Redis's answers (RESP) on a socket.
class AnswerReader {
 public:
  explicit AnswerReader(int socket) : socket_(socket), buffer_(size_t{1} << 18) {}

  // A line, without its end, until the next call.
  absl::StatusOr<absl::string_view> Line() {
    for (size_t looked_at = 0;;) {
      const absl::string_view rest(buffer_.data() + begin_, end_ - begin_);
      if (const size_t size = rest.find("\r\n", looked_at); size != absl::string_view::npos) {
        begin_ += size + 2;
        return rest.substr(0, size);
      }
      looked_at = rest.empty() ? 0 : rest.size() - 1;
      RUBATO_RETURN_IF_ERROR(More());
    }
  }

  // The number in a line that begins with `kind`.
  absl::StatusOr<int64_t> Number(char kind) {
    RUBATO_ASSIGN_OR_RETURN(const absl::string_view line, Line());
    int64_t number = 0;
    if (line.empty() || line[0] != kind || !absl::SimpleAtoi(line.substr(1), &number)) {
      return absl::InternalError(
          absl::StrCat("redis: \"", line, "\" where a number after '", std::string(1, kind), "' was to come"));
    }
    return number;
  }

  absl::Status Ok() {
    RUBATO_ASSIGN_OR_RETURN(const absl::string_view line, Line());
    return line == "+OK" ? absl::OkStatus() : absl::InternalError(absl::StrCat("redis: ", line));
  }

  // A value of this size.
  absl::Status Value(size_t size, void* to) {
    RUBATO_ASSIGN_OR_RETURN(const int64_t found, Number('$'));
    if (found != static_cast<int64_t>(size)) {
      return absl::InternalError(absl::StrCat("redis: a value of ", found, " bytes instead of ", size));
    }
    while (end_ - begin_ < size + 2) RUBATO_RETURN_IF_ERROR(More());
    std::memcpy(to, buffer_.data() + begin_, size);
    begin_ += size + 2;
    return absl::OkStatus();
  }

  int64_t bytes() const { return bytes_; }

 private:
  absl::Status More() {
    std::copy(buffer_.begin() + static_cast<ptrdiff_t>(begin_), buffer_.begin() + static_cast<ptrdiff_t>(end_),
              buffer_.begin());
    end_ -= begin_;
    begin_ = 0;
    const ssize_t moved = recv(socket_, buffer_.data() + end_, buffer_.size() - end_, 0);
    if (moved < 0) return SystemError("recv from redis");
    if (moved == 0) return absl::UnavailableError("redis is gone");
    end_ += static_cast<size_t>(moved);
    bytes_ += moved;
    return absl::OkStatus();
  }

  const int socket_;
  // What has come and was not taken is from begin_ to end_. A line or a value fits.
  std::vector<char> buffer_;
  size_t begin_ = 0, end_ = 0;
  int64_t bytes_ = 0;
};

class RedisRows : public RowClient {
 public:
  RedisRows(int dimension, FileDescriptor socket)
      : dimension_(dimension), socket_(std::move(socket)), reader_(socket_.get()) {}

  absl::Status Exchange(const std::vector<uint64_t>& pushed, const std::vector<float>& gradients,
                        const std::vector<uint64_t>& asked) override {
    commands_.clear();
    for (size_t i = 0; i < pushed.size(); ++i) {
      if (i % kKeysTogether == 0) BeginCommand("MSET", 2 * std::min(kKeysTogether, pushed.size() - i));
      AddWord(&pushed[i], sizeof(uint64_t));
      AddWord(gradients.data() + i * dimension_, row_bytes());
    }
    for (size_t i = 0; i < asked.size(); ++i) {
      if (i % kKeysTogether == 0) BeginCommand("MGET", std::min(kKeysTogether, asked.size() - i));
      AddWord(&asked[i], sizeof(uint64_t));
    }
    RUBATO_RETURN_IF_ERROR(SendCommands());
    for (size_t i = 0; i < pushed.size(); i += kKeysTogether) RUBATO_RETURN_IF_ERROR(reader_.Ok());
    rows_.resize(asked.size() * dimension_);
    for (size_t i = 0; i < asked.size(); ++i) {
      if (i % kKeysTogether == 0) RUBATO_RETURN_IF_ERROR(reader_.Number('*').status());
      RUBATO_RETURN_IF_ERROR(reader_.Value(row_bytes(), rows_.data() + i * dimension_));
    }
    return absl::OkStatus();
  }

  const float* rows() override { return rows_.data(); }
  int64_t payload_bytes() override { return sent_bytes_ + reader_.bytes(); }

 private:
  size_t row_bytes() const { return sizeof(float) * dimension_; }

  void BeginCommand(absl::string_view name, size_t words) {
    absl::StrAppend(&commands_, "*", words + 1, "\r\n");
    AddWord(name.data(), name.size());
  }
  void AddWord(const void* data, size_t bytes) {
    absl::StrAppend(&commands_, "$", bytes, "\r\n");
    commands_.append(static_cast<const char*>(data), bytes);
    commands_.append("\r\n");
  }

  // Redis takes all of it, whether its answers are read or not.
  absl::Status SendCommands() {
    for (size_t sent = 0; sent < commands_.size();) {
      const ssize_t moved = send(socket_.get(), commands_.data() + sent, commands_.size() - sent, MSG_NOSIGNAL);
      if (moved < 0) return SystemError("send to redis");
      sent += static_cast<size_t>(moved);
    }
    sent_bytes_ += static_cast<int64_t>(commands_.size());
    return absl::OkStatus();
  }

  const int dimension_;
  const FileDescriptor socket_;
  AnswerReader reader_;
  std::string commands_;
  std::vector<float> rows_;
  int64_t sent_bytes_ = 0;
};

}  // namespace

absl::StatusOr<std::unique_ptr<RowClient>> ConnectRedisRows(const SparseSetup& setup, const RedisServer& server) {
  RUBATO_ASSIGN_OR_RETURN(FileDescriptor socket, server.Connect());
  return std::make_unique<RedisRows>(setup.dimension, std::move(socket));
}

}  // namespace rubato::bench
