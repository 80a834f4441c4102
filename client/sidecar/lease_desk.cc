#include "client/sidecar/lease_desk.h"

#include <utility>

#include "absl/time/time.h"

namespace rubato::client {
namespace {

// How soon a request may be due again.
constexpr absl::Duration kPoll = absl::Milliseconds(20);
// While nothing is wanted, reports of finished shards wake the thread.
constexpr absl::Duration kIdle = absl::Milliseconds(500);

}  // namespace

LeaseDesk::LeaseDesk(Options options) : options_(std::move(options)), hold_(options_.hold) {
  thread_ = std::thread([this] { Run(); });
}

LeaseDesk::~LeaseDesk() {
  {
    MutexLock lock(mu_);
    stop_ = true;
    changed_.NotifyAll();
  }
  thread_.join();
}

void LeaseDesk::Want(uint32_t request) {
  MutexLock lock(mu_);
  request_ = request;
  leases_.Want();
  changed_.NotifyAll();
}

void LeaseDesk::Release() {
  MutexLock lock(mu_);
  if (std::exchange(hold_, false)) changed_.NotifyAll();
}

void LeaseDesk::OnGrant(const v1::ShardGrant& grant) {
  MutexLock lock(mu_);
  leases_.OnGrant(grant, options_.clock->Now());
  changed_.NotifyAll();
}

void LeaseDesk::SetSlice(const SliceBody& slice) {
  MutexLock lock(mu_);
  leases_.SetSlice(slice);
}

void LeaseDesk::Acknowledged() {
  MutexLock lock(mu_);
  if (leases_.Acknowledged()) changed_.NotifyAll();
}

void LeaseDesk::Stopped() {
  std::optional<v1::ShardRequest> last;
  {
    MutexLock lock(mu_);
    last = leases_.Stopped(options_.clock->Now());
  }
  if (last.has_value()) options_.send(*last);
}

std::vector<v1::ShardPosition> LeaseDesk::Positions() {
  MutexLock lock(mu_);
  return leases_.Positions();
}

bool LeaseDesk::TakeAnswer(uint32_t* request, std::optional<LeaseBody>* lease) {
  if (hold_ || !leases_.wanted()) return false;
  *lease = leases_.Take();
  if (!lease->has_value()) {
    if (!leases_.done()) return false;
    leases_.Forget();
  }
  *request = request_;
  return true;
}

void LeaseDesk::Run() {
  for (;;) {
    std::optional<v1::ShardRequest> due;
    std::optional<LeaseBody> lease;
    uint32_t request = 0;
    bool answered = false;
    {
      MutexLock lock(mu_);
      if (stop_) return;
      answered = TakeAnswer(&request, &lease);
      due = leases_.Due(options_.clock->Now());
      if (!answered && !due.has_value()) changed_.WaitFor(mu_, leases_.wanted() ? kPoll : kIdle);
    }
    if (answered) options_.answer(request, lease);
    if (due.has_value()) options_.send(*due);
  }
}

}  // namespace rubato::client
