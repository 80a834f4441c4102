#ifndef RUBATO_COMMON_TRANSPORT_SEND_QUEUE_H_
#define RUBATO_COMMON_TRANSPORT_SEND_QUEUE_H_

#include <grpcpp/support/byte_buffer.h>

#include <cstddef>
#include <cstdint>
#include <map>

namespace rubato {

// Messages that wait to be written to a stream, which takes one at a time: the lowest priority number first, and among
// equals the oldest. To a peer that takes bundles (common/wire/bundle.h), those that wait together are written
// together, as long as they are small: a large one has nothing to gain, and would only come later. But little that is
// behind it goes with it, in the same bundle or, if so desired, just before it. Pure bookkeeping; not thread-safe.
//
//   if (!queue.Push(std::move(message), priority)) ...close the stream...
//   if (queue.StartNext(&message) > 0) ...write it, and call WriteDone() when it is written...
class SendQueue {
 public:
  // What a message counts for beside its bytes, so that empty ones are bounded too.
  static constexpr size_t kMessageOverheadBytes = 256;
  // Of a bundle's messages together: half of what a message has by default (cluster.message_bytes), so that what is
  // needed first waits no longer behind a bundle than behind a message, and room for what is said of them beside it:
  // eight of 64 KiB, or two of 256 KiB.
  static constexpr size_t kBundleBytesMax = (size_t{1} << 19) + (size_t{1} << 14);
  // Of those beside a larger one.
  static constexpr size_t kBesideLargeBytesMax = size_t{1} << 13;
  // Of waiting messages, from which on there are many of them. Twice what one has by default.
  static constexpr size_t kManyBytes = size_t{1} << 21;

  // Where little goes that waits behind a message of more than kBundleBytesMax.
  enum class Little { kBehind, kBefore };

  // At most `bytes_max` wait at a time, the message being written not counted.
  explicit SendQueue(size_t bytes_max, Little little = Little::kBehind) : bytes_max_(bytes_max), little_(little) {}

  // Returns false, and takes nothing, when the bound would be passed.
  bool Push(grpc::ByteBuffer&& message, int64_t priority = 0);

  // The peer takes bundles.
  void AllowBundles() { bundles_ = true; }
  // While it is set nothing is taken out: more is about to come.
  void set_held(bool held) { held_ = held; }

  // Takes out what is to be written next, and returns how many messages that are: 0 when there is none, the queue is
  // held, or another is being written.
  int StartNext(grpc::ByteBuffer* message);
  void WriteDone() { writing_ = false; }

  bool writing() const { return writing_; }
  bool empty() const { return messages_.empty(); }
  // What was started last was little that goes before a large message, which is next.
  bool large_follows() const { return was_overtaken_; }
  // kManyBytes have waited behind a message that was started, and there have been some ever since: what everything
  // waits for is the peer. As of the last StartNext.
  bool many_wait() const { return many_wait_; }
  // Waiting for more would bring nothing together.
  bool fills_bundle() const { return bytes_ >= kBundleBytesMax; }

  // Equal keys keep the order in which they came.
  using Messages = std::multimap<int64_t, grpc::ByteBuffer>;

  // Empties the queue. The messages' memory is released with what is returned, which the caller does without a lock.
  Messages TakeAll();

 private:
  const size_t bytes_max_;
  const Little little_;
  Messages messages_;
  size_t bytes_ = 0;
  bool writing_ = false;
  bool many_wait_ = false;
  bool bundles_ = false;
  bool held_ = false;
  // By little, the large message that is first.
  bool was_overtaken_ = false;
};

}  // namespace rubato

#endif  // RUBATO_COMMON_TRANSPORT_SEND_QUEUE_H_
