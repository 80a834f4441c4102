#include "bench/push_pull/shm_subject.h"

#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "bench/push_pull/client_memory.h"
#include "bench/push_pull/server_memory.h"
#include "bench/push_pull/two_way_region.h"
#include "common/clock.h"
#include "common/status.h"

namespace rubato::bench {
namespace {

// At the start of the region that the client writes: what was pushed so far. Of the other one: what was added.
struct Header {
  SharedCounter count;
  alignas(64) char data[64];
};

Header* HeaderOf(TwoWayRegion* region) { return reinterpret_cast<Header*>(region->data()); }
float* ChunkOf(const Setup& setup, TwoWayRegion* region, uint32_t count) {
  return reinterpret_cast<float*>(region->data() + sizeof(Header) + count % setup.chunks() * setup.size);
}
size_t RegionBytes(const Setup& setup) { return sizeof(Header) + setup.chunks() * setup.size; }

class ShmClient : public Client {
 public:
  ShmClient(const Setup& setup, std::unique_ptr<TwoWayRegion> pushes, std::unique_ptr<TwoWayRegion> pulls)
      : setup_(setup), memory_(setup), pushes_(std::move(pushes)), pulls_(std::move(pulls)) {
    std::memcpy(ChunkOf(setup_, pushes_.get(), 0), memory_.Gradient(0), setup_.chunks() * setup_.size);
  }

  absl::StatusOr<Count> Run(absl::Duration duration) override {
    const absl::Time begin = clock_.Now();
    SharedCounter& pushed = HeaderOf(pushes_.get())->count;
    SharedCounter& added = HeaderOf(pulls_.get())->count;
    int64_t round_trips = 0;
    for (;;) {
      const bool goes_on = clock_.Now() - begin < duration;
      for (; goes_on && sent_ - received_ < static_cast<uint32_t>(setup_.in_flight); ++sent_) pushed.Increment();
      if (sent_ == received_) return Count{round_trips, clock_.Now() - begin};
      if (added.Get() == received_) added.AwaitChange(received_);
      const int64_t chunk = received_ % setup_.chunks();
      std::memcpy(memory_.Weights(chunk), ChunkOf(setup_, pulls_.get(), received_++), setup_.size);
      memory_.CountTrip(chunk);
      ++round_trips;
    }
  }

  absl::Status Verify() override { return memory_.Verify(); }

 private:
  const Setup setup_;
  ClientMemory memory_;
  RealClock clock_;
  const std::unique_ptr<TwoWayRegion> pushes_;
  const std::unique_ptr<TwoWayRegion> pulls_;
  uint32_t sent_ = 0;
  uint32_t received_ = 0;
};

}  // namespace

absl::Status ServeShm(const Setup& setup, const Ready& ready) {
  RUBATO_ASSIGN_OR_RETURN(const std::unique_ptr<TwoWayRegion> pushes, TwoWayRegion::Create(RegionBytes(setup)));
  RUBATO_ASSIGN_OR_RETURN(const std::unique_ptr<TwoWayRegion> pulls, TwoWayRegion::Create(RegionBytes(setup)));
  ready(absl::StrCat(pushes->address(), ",", pulls->address()));
  for (uint32_t done = 0;; ++done) {
    if (HeaderOf(pushes.get())->count.Get() == done) HeaderOf(pushes.get())->count.AwaitChange(done);
    AddFloats(ChunkOf(setup, pushes.get(), done), setup.floats(), ChunkOf(setup, pulls.get(), done));
    HeaderOf(pulls.get())->count.Increment();
  }
}

absl::StatusOr<std::unique_ptr<Client>> ConnectShm(const Setup& setup, const std::string& address) {
  const std::pair<std::string, std::string> parts = absl::StrSplit(address, absl::MaxSplits(',', 1));
  RUBATO_ASSIGN_OR_RETURN(auto pushes, TwoWayRegion::Open(parts.first, RegionBytes(setup)));
  RUBATO_ASSIGN_OR_RETURN(auto pulls, TwoWayRegion::Open(parts.second, RegionBytes(setup)));
  return std::make_unique<ShmClient>(setup, std::move(pushes), std::move(pulls));
}

}  // namespace rubato::bench
