#include "common/transport/send_queue.h"

#include <utility>

namespace rubato {
namespace {

size_t Cost(const grpc::ByteBuffer& message) { return message.Length() + SendQueue::kMessageOverheadBytes; }

}  // namespace

bool SendQueue::Push(grpc::ByteBuffer message, int64_t priority) {
  const size_t cost = Cost(message);
  if (cost > bytes_max_ - bytes_) return false;
  bytes_ += cost;
  messages_.emplace(priority, grpc::ByteBuffer())->second.Swap(&message);
  return true;
}

bool SendQueue::StartNext(grpc::ByteBuffer* message) {
  if (writing_ || messages_.empty()) return false;
  message->Swap(&messages_.begin()->second);
  messages_.erase(messages_.begin());
  bytes_ -= Cost(*message);
  writing_ = true;
  return true;
}

SendQueue::Messages SendQueue::TakeAll() {
  bytes_ = 0;
  return std::exchange(messages_, {});
}

}  // namespace rubato
