#ifndef RUBATO_CLIENT_LINK_FRAME_H_
#define RUBATO_CLIENT_LINK_FRAME_H_

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

// What travels between the library in a client's process and its sidecar: a header and a body of little structs and
// texts. Both come from one build, and a header of another is refused. Without gRPC, protobuf and Abseil, as all of
// this folder: the library needs libc alone. All here is pure.

namespace rubato::client {

// Raised with every change of what travels.
inline constexpr uint16_t kLinkVersion = 4;
inline constexpr uint32_t kFrameMagic = 0x6f627572;  // "rubo"
inline constexpr uint32_t kBodyBytesMax = 64u << 20;
// Of keys and rows in one body.
inline constexpr size_t kRowBytesMax = size_t{48} << 20;

// What a frame is. Those that are answered carry a request's number, which the answer repeats.
enum class FrameKind : uint16_t {
  // Sidecar to library: a ReplyBody, and what the request's kind says.
  kReply = 1,

  // Library to sidecar, answered.
  kOpen = 10,    // OpenBody, the coordinator's address.
  kDefine = 11,  // Model (model.h), and the tensors' memory as a file descriptor.
  kStart = 12,
  // Answered with StepBody, and for each table how many rows there are, as a uint64, and the rows: those of kAskRows in
  // the step before, or none.
  kBegin = 13,
  kLease = 14,    // Answered with LeaseBody.
  kPut = 15,      // Key, value.
  kErase = 16,    // Key.
  kGet = 17,      // Key. Answered with the value.
  kBarrier = 18,  // BarrierBody, name.
  kSwitch = 19,   // SwitchBody.
  kCheckpoint = 20,
  kClose = 21,  // Why the client gives up; empty: it has done its part.
  kAwait = 22,  // AwaitBody. Answered with ArrivedBody.
  // Answered when it is written, with its directory.
  kAwaitCheckpoint = 24,
  kFetchState = 25,  // FetchStateBody. Answered with an int64 for each tensor.
  kReadRows = 26,    // RowsBody, its keys. Answered with their rows.
  kHasWeights = 27,  // HasWeightsBody. Answered with an int64, 0 or 1.

  // Library to sidecar, not answered.
  kHyperparameters = 40,  // HyperparametersBody.
  kSlice = 41,            // SliceBody.
  kEpoch = 42,            // A double.
  kPush = 43,             // PushBody.
  kPushAbsent = 44,       // PushBody.
  kSkip = 45,
  kReport = 46,    // ReportBody.
  kPause = 47,     // Why.
  kForget = 48,    // Nobody waits for the answer to this request any more.
  kState = 52,     // StateBody, and its values as one text. Before kStart.
  kAskRows = 53,   // RowsBody, its keys.
  kPushRows = 54,  // RowsBody, its keys, and their gradients.
};

struct FrameHeader {
  uint32_t magic = kFrameMagic;
  uint16_t version = kLinkVersion;
  FrameKind kind = FrameKind::kReply;
  uint32_t request = 0;
  uint32_t body_bytes = 0;
};

struct Frame {
  FrameKind kind = FrameKind::kReply;
  uint32_t request = 0;
  std::string body;
};

// Appends to a frame's body.
class BodyWriter {
 public:
  template <typename T>
  BodyWriter& Put(const T& value) {
    static_assert(std::is_trivially_copyable_v<T> && !std::is_pointer_v<T>);
    body_.append(reinterpret_cast<const char*>(&value), sizeof(T));
    return *this;
  }
  // Its length and its bytes.
  BodyWriter& Text(std::string_view text) {
    Put(static_cast<uint32_t>(text.size()));
    body_.append(text);
    return *this;
  }
  // Of an array, whose length the reader knows.
  template <typename T>
  BodyWriter& Array(const T* values, size_t count) {
    body_.append(reinterpret_cast<const char*>(values), count * sizeof(T));
    return *this;
  }
  const std::string& body() const { return body_; }

 private:
  std::string body_;
};

// Reads it, in the same order. Once something was not there, everything fails.
//
//   BodyReader reader(frame.body);
//   OpenBody open;
//   if (!reader.Get(&open) || !reader.Text(&coordinator) || !reader.AtEnd()) ...
class BodyReader {
 public:
  // `body` outlives the reader.
  explicit BodyReader(std::string_view body) : rest_(body) {}

  template <typename T>
  bool Get(T* value) {
    static_assert(std::is_trivially_copyable_v<T> && !std::is_pointer_v<T>);
    std::string_view bytes;
    if (!Take(sizeof(T), &bytes)) return false;
    std::memcpy(value, bytes.data(), sizeof(T));
    return true;
  }
  bool Text(std::string* text) {
    uint32_t size = 0;
    std::string_view bytes;
    if (!Get(&size) || !Take(size, &bytes)) return false;
    text->assign(bytes);
    return true;
  }
  template <typename T>
  bool Array(size_t count, std::vector<T>* values) {
    std::string_view bytes;
    // Before any memory is taken for them.
    failed_ = failed_ || count > rest_.size() / sizeof(T);
    if (failed_ || !Take(count * sizeof(T), &bytes)) return false;
    values->resize(count);
    if (count > 0) std::memcpy(values->data(), bytes.data(), bytes.size());
    return true;
  }
  bool AtEnd() const { return !failed_ && rest_.empty(); }
  size_t bytes_left() const { return failed_ ? 0 : rest_.size(); }

 private:
  bool Take(size_t size, std::string_view* bytes) {
    failed_ = failed_ || size > rest_.size();
    if (failed_) return false;
    *bytes = rest_.substr(0, size);
    rest_.remove_prefix(size);
    return true;
  }

  std::string_view rest_;
  bool failed_ = false;
};

// The bodies. All padding is named, so that no byte of a frame is left to chance.

struct OpenBody {
  uint32_t abi_version = 0;
  uint32_t rank = 0;
  double timeout_seconds = 0;
  int64_t client_process = 0;
};

// With a text: what went wrong, empty if nothing did.
struct ReplyBody {
  int32_t result = 0;  // rubato_result.
};

struct StepBody {
  int64_t step = 0;
  uint64_t generation = 0;
  int64_t staleness_bound = 0;
  double learning_rate_scale = 1;
  uint64_t rollbacks = 0;
  uint32_t mode = 0;  // rubato_mode.
  uint32_t workers = 0;
};

struct AwaitBody {
  uint64_t tensor = 0;
};

struct HasWeightsBody {
  uint64_t tensor = 0;
};

// How many of the model's first tensors have the weights of the next step.
struct ArrivedBody {
  uint64_t tensors = 0;
};

struct LeaseBody {
  uint64_t shard = 0;
  int64_t epoch = 0;
  int64_t begin = 0;
  int64_t end = 0;
};

struct BarrierBody {
  uint32_t count = 0;
};

struct SwitchBody {
  int64_t staleness_bound = 0;
  double learning_rate_scale = 0;
  uint32_t mode = 0;
  uint32_t quorum = 0;
};

struct Hyperparameters {
  double learning_rate = 0, weight_decay = 0, momentum = 0, beta1 = 0, beta2 = 0, rho = 0, epsilon = 0;
};

struct HyperparametersBody {
  uint64_t group = 0;
  Hyperparameters values;
};

struct SliceBody {
  uint64_t shard = 0;
  int64_t begin = 0;
  int64_t end = 0;
};

struct PushBody {
  uint64_t examples = 0;
  uint64_t tensor = 0;
};

// Elements of a tensor's slot, from `begin` on; their values follow.
struct StateBody {
  uint64_t slot = 0;  // Counted from 0, as in rubato_client.h.
  uint64_t tensor = 0;
  uint64_t begin = 0;
  // How many updates the tensor's state stands for.
  int64_t updates = 0;
};

struct FetchStateBody {
  uint64_t slot = 0;
};

// Keys of a table, each once.
struct RowsBody {
  uint64_t table = 0;
  uint64_t keys = 0;
  // kPushRows.
  uint64_t examples = 0;
};

struct ReportBody {
  uint64_t examples = 0;
  double loss_sum = 0;
  double correct = 0;
};

}  // namespace rubato::client

#endif  // RUBATO_CLIENT_LINK_FRAME_H_
