#include "common/transport/send_queue.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "common/wire/bundle.h"

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

int SendQueue::StartNext(grpc::ByteBuffer* message) {
  if (writing_ || held_ || messages_.empty()) return 0;
  std::vector<grpc::ByteBuffer> together;
  size_t bytes = 0, most = kBundleBytesMax;
  do {
    grpc::ByteBuffer& next = together.emplace_back();
    next.Swap(&messages_.begin()->second);
    messages_.erase(messages_.begin());
    bytes += Cost(next);
    if (together.size() == 1) most = std::max(most, bytes + kBehindLargeBytesMax);
  } while (bundles_ && !messages_.empty() && bytes + Cost(messages_.begin()->second) <= most);
  bytes_ -= bytes;
  writing_ = true;
  const int count = static_cast<int>(together.size());
  grpc::ByteBuffer bundle = Bundle(std::move(together));
  message->Swap(&bundle);
  return count;
}

SendQueue::Messages SendQueue::TakeAll() {
  bytes_ = 0;
  return std::exchange(messages_, {});
}

}  // namespace rubato
