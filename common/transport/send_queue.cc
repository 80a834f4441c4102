#include "common/transport/send_queue.h"

#include <utility>

namespace rubato {
namespace {

size_t Cost(const grpc::ByteBuffer& message) { return message.Length() + SendQueue::kMessageOverheadBytes; }

}  // namespace

bool SendQueue::Push(grpc::ByteBuffer message) {
  const size_t cost = Cost(message);
  if (cost > bytes_max_ - bytes_) return false;
  bytes_ += cost;
  messages_.emplace_back();
  messages_.back().Swap(&message);
  return true;
}

bool SendQueue::StartNext(grpc::ByteBuffer* message) {
  if (writing_ || messages_.empty()) return false;
  message->Swap(&messages_.front());
  messages_.pop_front();
  bytes_ -= Cost(*message);
  writing_ = true;
  return true;
}

std::deque<grpc::ByteBuffer> SendQueue::TakeAll() {
  bytes_ = 0;
  return std::exchange(messages_, {});
}

}  // namespace rubato
