#include "common/shared_memory/hello.h"

#include <algorithm>
#include <cstring>
#include <type_traits>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/status.h"

namespace rubato {
namespace {

constexpr char kMagic[8] = {'r', 'u', 'b', 'a', 't', 'o', 'S', 'M'};
constexpr uint32_t kCodeMax = static_cast<uint32_t>(absl::StatusCode::kUnauthenticated);

struct Start {
  char magic[8];
  uint32_t version;
};

struct HelloBytes {
  Start start;
  uint32_t role;
  uint32_t index;
  uint32_t zero;
  uint64_t incarnation;
};
static_assert(sizeof(HelloBytes) == 32);

struct WelcomeBytes {
  Start start;
  uint32_t code;
  uint64_t session;
  char message[232];
};
static_assert(sizeof(WelcomeBytes) == 256);

Start MakeStart() {
  Start start = {.magic = {}, .version = kHelloVersion};
  std::memcpy(start.magic, kMagic, sizeof(kMagic));
  return start;
}

template <typename T>
std::string ToBytes(const T& value) {
  static_assert(std::has_unique_object_representations_v<T>, "padding would send bytes of the stack");
  return std::string(reinterpret_cast<const char*>(&value), sizeof(value));
}

template <typename T>
absl::StatusOr<T> FromBytes(absl::string_view bytes) {
  Start start;
  if (bytes.size() < sizeof(start) || std::memcmp(bytes.data(), kMagic, sizeof(kMagic)) != 0) {
    return absl::InvalidArgumentError(absl::StrCat("a packet of ", bytes.size(), " bytes that is no hello"));
  }
  std::memcpy(&start, bytes.data(), sizeof(start));
  if (start.version != kHelloVersion) {
    return absl::InvalidArgumentError(
        absl::StrCat("a hello of version ", start.version, "; version ", kHelloVersion, " is allowed"));
  }
  if (bytes.size() != sizeof(T)) {
    return absl::InvalidArgumentError(
        absl::StrCat("a hello of ", bytes.size(), " bytes; ", sizeof(T), " were expected"));
  }
  T value;
  std::memcpy(&value, bytes.data(), sizeof(value));
  return value;
}

}  // namespace

std::string EncodeHello(const v1::TaskId& task) {
  return ToBytes(HelloBytes{.start = MakeStart(),
                            .role = static_cast<uint32_t>(task.role()),
                            .index = task.index(),
                            .zero = 0,
                            .incarnation = task.incarnation()});
}

absl::StatusOr<v1::TaskId> DecodeHello(absl::string_view bytes) {
  RUBATO_ASSIGN_OR_RETURN(const HelloBytes hello, FromBytes<HelloBytes>(bytes));
  if (hello.role != v1::TaskId::WORKER && hello.role != v1::TaskId::EVALUATOR) {
    return absl::InvalidArgumentError(absl::StrCat("role: ", hello.role, "; ", v1::TaskId::WORKER, " (WORKER) and ",
                                                   v1::TaskId::EVALUATOR, " (EVALUATOR) are allowed"));
  }
  if (hello.incarnation == 0) return absl::InvalidArgumentError("incarnation: 0; any other number is allowed");
  if (hello.zero != 0) return absl::InvalidArgumentError(absl::StrCat("bytes 20-23: ", hello.zero, " instead of 0"));
  v1::TaskId task;
  task.set_role(static_cast<v1::TaskId::Role>(hello.role));
  task.set_index(hello.index);
  task.set_incarnation(hello.incarnation);
  return task;
}

std::string EncodeWelcome(const absl::StatusOr<uint64_t>& session) {
  WelcomeBytes welcome = {};
  welcome.start = MakeStart();
  if (session.ok()) {
    welcome.session = *session;
  } else {
    welcome.code = static_cast<uint32_t>(session.status().code());
    const absl::string_view message = session.status().message();
    std::copy_n(message.data(), std::min(message.size(), sizeof(welcome.message) - 1), welcome.message);
  }
  return ToBytes(welcome);
}

absl::StatusOr<uint64_t> DecodeWelcome(absl::string_view bytes) {
  RUBATO_ASSIGN_OR_RETURN(const WelcomeBytes welcome, FromBytes<WelcomeBytes>(bytes));
  if (welcome.code > kCodeMax) {
    return absl::InvalidArgumentError(absl::StrCat("code: ", welcome.code, "; 0 to ", kCodeMax, " are allowed"));
  }
  if (welcome.code != 0) {
    const size_t length = strnlen(welcome.message, sizeof(welcome.message));
    return absl::Status(static_cast<absl::StatusCode>(welcome.code),
                        absl::StrCat("refused: ", absl::string_view(welcome.message, length)));
  }
  if (welcome.session == 0) return absl::InvalidArgumentError("session: 0; any other number is allowed");
  return welcome.session;
}

}  // namespace rubato
