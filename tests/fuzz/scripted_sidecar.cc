// Takes the place of client/library/sidecar_process.cc: the other end of the socket is a thread that answers as it was
// told, well or badly.
#include "tests/fuzz/scripted_sidecar.h"

#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <map>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "client/library/sidecar_process.h"
#include "client/link/channel.h"
#include "client/link/model.h"
#include "client/rubato_client.h"

namespace rubato::client {
namespace {

constexpr double kPatienceSeconds = 120;

std::string sidecar_answers;
// Of the one client that there is at a time.
std::thread sidecar;

// Whether the library waits for the answer as long as it takes.
bool IsAwaited(FrameKind kind) {
  switch (kind) {
    case FrameKind::kOpen:
    case FrameKind::kDefine:
    case FrameKind::kStart:
    case FrameKind::kPut:
    case FrameKind::kErase:
    case FrameKind::kCheckpoint:
    case FrameKind::kClose:
      return true;
    default:
      return false;
  }
}

class Sidecar {
 public:
  Sidecar(int descriptor, std::string answers) : channel_(descriptor), answers_(std::move(answers)) {}

  void Run() {
    Frame frame;
    std::string error;
    while (channel_.Receive(&frame, kPatienceSeconds, &error) == Channel::Received::kFrame) {
      if (const int passed = channel_.TakePassed(); passed >= 0) close(passed);
      Note(frame);
      if (frame.request != 0 && !Answer(frame)) break;
    }
    channel_.Shutdown();
  }

 private:
  // What later answers depend on.
  void Note(const Frame& frame) {
    BodyReader reader(frame.body);
    RowsBody rows;
    if (frame.kind == FrameKind::kDefine) DecodeModel(frame.body, &model_);
    if (frame.kind == FrameKind::kAskRows && reader.Get(&rows)) asked_[rows.table] = rows.keys;
  }

  // False: the connection is of no use any more.
  bool Answer(const Frame& frame) {
    const uint8_t how = next_ < answers_.size() ? static_cast<uint8_t>(answers_[next_]) : 0;
    ++next_;
    BodyWriter body;
    switch (how % 8) {
      case 5:  // Another result.
        body.Put(ReplyBody{.result = static_cast<int32_t>(how / 8 % 10) - 6}).Text("it did not work");
        break;
      case 6:  // No such body.
        body.Put(ReplyBody{}).Text("").Array(answers_.data(), std::min<size_t>(answers_.size(), how / 8));
        break;
      case 7:
        if (how / 8 % 2 == 0 && !IsAwaited(frame.kind)) return true;  // None.
        // No frame, or the end.
        if (how / 8 % 4 == 1) channel_.Send(static_cast<FrameKind>(how), frame.request ^ how, answers_);
        return false;
      default:
        body.Put(ReplyBody{}).Text("");
        WriteGood(frame, &body);
        break;
    }
    return channel_.Send(FrameKind::kReply, frame.request, body.body()).empty();
  }

  void WriteGood(const Frame& frame, BodyWriter* body) {
    BodyReader reader(frame.body);
    RowsBody rows;
    switch (frame.kind) {
      case FrameKind::kBegin:
        body->Put(StepBody{.step = step_++, .generation = 1, .mode = RUBATO_ASYNC, .workers = 1});
        for (size_t table = 0; table < model_.tables.size(); ++table) {
          const uint64_t count = std::exchange(asked_[table], 0);
          body->Put(count);
          WriteRows(table, count, body);
        }
        return;
      case FrameKind::kReadRows:
        if (reader.Get(&rows)) WriteRows(rows.table, rows.keys, body);
        return;
      case FrameKind::kLease:
        body->Put(LeaseBody{.shard = 1, .end = 10});
        return;
      case FrameKind::kAwait:
        body->Put(ArrivedBody{.tensors = model_.tensors.size()});
        return;
      case FrameKind::kGet:
      case FrameKind::kAwaitCheckpoint:
        body->Array("checkpoints/step10", 18);
        return;
      case FrameKind::kFetchState:
        for (size_t i = 0; i < model_.tensors.size(); ++i) body->Put(int64_t{7});
        return;
      default:
        return;
    }
  }

  void WriteRows(uint64_t table, uint64_t count, BodyWriter* body) const {
    if (table >= model_.tables.size()) return;
    const std::vector<float> rows(count * static_cast<uint64_t>(model_.tables[table].dimension), 0.5f);
    body->Array(rows.data(), rows.size());
  }

  Channel channel_;
  const std::string answers_;
  size_t next_ = 0;
  Model model_;
  std::map<uint64_t, uint64_t> asked_;
  int64_t step_ = 0;
};

}  // namespace

void SetSidecarAnswers(std::string answers) { sidecar_answers = std::move(answers); }

std::unique_ptr<SidecarProcess> SidecarProcess::Start(const Options&, int* descriptor, std::string* error) {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) {
    *error = "no socket pair";
    return nullptr;
  }
  *descriptor = ends[0];
  // It ends when the other end is closed, which is before this object ends.
  sidecar = std::thread([other = ends[1], answers = sidecar_answers] { Sidecar(other, answers).Run(); });
  return std::unique_ptr<SidecarProcess>(new SidecarProcess(getpid()));
}

SidecarProcess::SidecarProcess(pid_t process) : owner_(getpid()), process_(process), passes_sigterm_(false) {}
SidecarProcess::~SidecarProcess() { sidecar.join(); }
bool SidecarProcess::forked() const { return getpid() != owner_; }
std::string SidecarProcess::DescribeEnd() {
  return "the sidecar (thread of process " + std::to_string(process_) + ") has ended";
}
void SidecarProcess::Drain() const {}

}  // namespace rubato::client
