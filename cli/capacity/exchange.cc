#include "cli/capacity/exchange.h"

#include <algorithm>

namespace rubato::capacity {

StepParts& StepParts::operator+=(const StepParts& other) {
  computing += other.computing;
  barrier += other.barrier;
  network += other.network;
  server += other.server;
  queued += other.queued;
  return *this;
}

StepParts DivideWait(const Exchange& exchange, SimTime since) {
  const auto after = [since](SimTime begin, SimTime end) { return std::max<SimTime>(0, end - std::max(begin, since)); };
  StepParts parts;
  parts.network = after(exchange.sent, exchange.arrived) + after(exchange.left, exchange.stored);
  parts.server = after(exchange.arrived, exchange.taken) + after(exchange.released, exchange.left);
  // Before it was sent, an earlier request of the batch waited for others.
  parts.barrier = exchange.stored - since - parts.network - parts.server;
  const SimTime in_network = exchange.arrived - exchange.sent + exchange.stored - exchange.left;
  const double share = in_network > 0 ? static_cast<double>(parts.network) / static_cast<double>(in_network) : 0;
  parts.queued = after(exchange.arrived, exchange.taken) +
                 static_cast<SimTime>(share * static_cast<double>(exchange.network_queue));
  return parts;
}

}  // namespace rubato::capacity
