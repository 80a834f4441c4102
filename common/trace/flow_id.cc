#include "common/trace/flow_id.h"

namespace rubato {
namespace {

// The finaliser of SplitMix64 (Steele, Lea and Flood 2014): every bit of the input decides about every bit of the
// output.
uint64_t Mix(uint64_t x) {
  x += 0x9e3779b97f4a7c15;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return x ^ (x >> 31);
}

}  // namespace

uint64_t PushFlowId(const v1::TaskId& worker, int64_t step, uint32_t chunk) {
  // The incarnation is random and different for each worker; the index only helps if a test gives all the same one.
  uint64_t id = Mix(worker.incarnation() ^ worker.index());
  id = Mix(id ^ static_cast<uint64_t>(step));
  return Mix(id ^ chunk);
}

}  // namespace rubato
