#include "cli/capacity/network.h"

#include <algorithm>

namespace rubato::capacity {
namespace {

// Of an event's slot.
constexpr uint64_t kAtTransport = uint64_t{1} << 63;

SimTime LatencyOf(const LinkModel& link) { return absl::ToInt64Nanoseconds(link.latency); }

}  // namespace

SimTime Network::TimeOn(const LinkModel& link, int64_t bytes) const {
  if (options_.in_place || link.bytes_per_second <= 0) return 0;
  return FromSeconds(static_cast<double>(bytes) / link.bytes_per_second);
}

ServiceQueue::Service Network::Transport(ServiceQueue* transport, const Message& message, SimTime at) const {
  const SimTime time = options_.transport.Of(0, message.bytes);
  const SimTime begin =
      transport->Serve(at, static_cast<SimTime>(options_.processor_share * static_cast<double>(time))).begin;
  return {begin, begin + time};
}

void Network::Send(const Message& message, uint64_t slot) {
  const SimTime now = options_.queue->now();
  const ServiceQueue::Service given = Transport(message.from->transport, message, now);
  const auto sent = message.from->up.Serve(given.end, TimeOn(message.from->link, message.bytes));
  *message.queued += given.begin - now + sent.begin - given.end;
  const SimTime latency = LatencyOf(message.from->link) + LatencyOf(message.to->link);
  legs_[slot] = {message, sent.end + latency};
  options_.queue->At(sent.begin + latency, this, slot);
}

void Network::OnEvent(uint64_t what) {
  const uint64_t slot = what & ~kAtTransport;
  const Leg& leg = legs_[slot];
  const Message& message = leg.message;
  const SimTime now = options_.queue->now();
  if ((what & kAtTransport) != 0) return Receive(message, now);
  const auto received = message.to->down.Serve(now, TimeOn(message.to->link, message.bytes));
  *message.queued += received.begin - now;
  // Not before the sender has sent its last byte.
  const SimTime there = std::max(received.end, leg.sent);
  // A thread of its own takes them in this order, whenever that is; processors have other things to do until then.
  if (there == now || message.to->transport->places() == 1) return Receive(message, there);
  options_.queue->At(there, this, slot | kAtTransport);
}

void Network::Receive(const Message& message, SimTime at) {
  const ServiceQueue::Service taken = Transport(message.to->transport, message, at);
  *message.queued += taken.begin - at;
  options_.queue->At(taken.end, message.target, message.what);
}

}  // namespace rubato::capacity
