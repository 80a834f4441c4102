#include "common/transport/send_queue.h"

#include <algorithm>
#include <iterator>
#include <utility>
#include <vector>

#include "common/wire/bundle.h"

namespace rubato {
namespace {

size_t Cost(const grpc::ByteBuffer& message) { return message.Length() + SendQueue::kMessageOverheadBytes; }

}  // namespace

bool SendQueue::Push(grpc::ByteBuffer&& message, int64_t priority) {
  const size_t cost = Cost(message);
  if (cost > bytes_max_ - bytes_) return false;
  bytes_ += cost;
  messages_.emplace(priority, grpc::ByteBuffer())->second.Swap(&message);
  return true;
}

int SendQueue::StartNext(grpc::ByteBuffer* message) {
  if (writing_ || held_ || messages_.empty()) return 0;
  auto next = messages_.begin();
  size_t bytes = 0, most = kBundleBytesMax;
  if (const size_t first = Cost(next->second); first > most) {
    const auto second = std::next(next);
    const bool is_overtaken = little_ == Little::kBefore && !was_overtaken_ && second != messages_.end() &&
                              Cost(second->second) <= kBesideLargeBytesMax;
    was_overtaken_ = is_overtaken;
    if (is_overtaken) next = second;
    most = is_overtaken ? kBesideLargeBytesMax : first + kBesideLargeBytesMax;
  }
  auto end = next;
  int count = 0;
  do {
    bytes += Cost(end->second);
    ++end;
    ++count;
  } while (bundles_ && end != messages_.end() && bytes + Cost(end->second) <= most);
  std::vector<grpc::ByteBuffer> together(count);
  for (grpc::ByteBuffer& one : together) {
    one.Swap(&next->second);
    next = messages_.erase(next);
  }
  bytes_ -= bytes;
  writing_ = true;
  many_wait_ = many_wait_ ? !messages_.empty() : bytes_ >= kManyBytes;
  grpc::ByteBuffer bundle = Bundle(std::move(together));
  message->Swap(&bundle);
  return count;
}

SendQueue::Messages SendQueue::TakeAll() {
  bytes_ = 0;
  was_overtaken_ = false;
  return std::exchange(messages_, {});
}

}  // namespace rubato
