#ifndef RUBATO_CLI_CAPACITY_NETWORK_H_
#define RUBATO_CLI_CAPACITY_NETWORK_H_

#include <cstdint>
#include <vector>

#include "cli/capacity/costs.h"
#include "cli/capacity/event_queue.h"
#include "cli/capacity/service_queue.h"
#include "common/network_link/link_model.h"

namespace rubato::capacity {

// Where a task's messages come from and go to: the thread that moves them, and a link each way.
struct Endpoint {
  LinkModel link;
  // Its own, or the processors that it shares with others.
  ServiceQueue* transport = nullptr;
  ServiceQueue up{1};
  ServiceQueue down{1};
};

// Messages between endpoints. A message takes the sender's transport, its link, the receiver's link and its transport,
// one after another, each of which serves messages in the order in which they come; but a message goes over both links
// at the same time, as its packets do. So those of many senders queue at the link of one receiver. Not thread-safe.
//
//   network.Send({.from = &worker, .to = &server, .bytes = 1 << 20, .target = &partition, .what = slot}, leg);
class Network : private EventTarget {
 public:
  struct Message {
    Endpoint* from = nullptr;
    Endpoint* to = nullptr;
    int64_t bytes = 0;  // Of its payload.
    // Told when it has come.
    EventTarget* target = nullptr;
    uint64_t what = 0;
    // By how long it has waited for its turn this grows.
    SimTime* queued = nullptr;
  };

  struct Options {
    // Outlives it.
    EventQueue* queue = nullptr;
    LinearCost transport = {};
    // Payload does not go over links: it is read where it is.
    bool in_place = false;
    // Of the transport's time, the part for which it is not there for others.
    double processor_share = 1;
    // Places for messages that are on their way.
    uint64_t slots = 0;
  };

  explicit Network(const Options& options) : options_(options), legs_(options.slots) {}

  // `slot` is free again when the message has come.
  void Send(const Message& message, uint64_t slot);

 private:
  struct Leg {
    Message message;
    SimTime sent = 0;  // The sender's link is done with it.
  };

  // The first byte is at the receiver's link, or all of them are at its transport.
  void OnEvent(uint64_t what) override;
  void Receive(const Message& message, SimTime at);
  SimTime TimeOn(const LinkModel& link, int64_t bytes) const;
  // Of one end of a message.
  ServiceQueue::Service Transport(ServiceQueue* transport, const Message& message, SimTime at) const;

  const Options options_;
  std::vector<Leg> legs_;
};

}  // namespace rubato::capacity

#endif  // RUBATO_CLI_CAPACITY_NETWORK_H_
