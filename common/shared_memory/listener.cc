#include "common/shared_memory/listener.h"

#include <sys/eventfd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/random.h"
#include "common/shared_memory/boot_id.h"
#include "common/shared_memory/hello.h"
#include "common/status.h"
#include "common/task.h"

namespace rubato {
namespace {

// Peers that have not said hello yet; further ones wait in the kernel's queue.
constexpr size_t kNewcomersMax = 64;

// After there was no room for another open file.
constexpr absl::Duration kAcceptPause = absl::Milliseconds(100);

// Refusals that are all logged; after these only the next at 128, 256, 512, ..., so that nobody can fill the log.
constexpr uint64_t kRefusalsLogged = 100;

// Where the peers begin among the watched sockets.
constexpr size_t kFirstPeer = 2;

absl::Status CheckOptions(const SharedMemoryListener::Options& options) {
  if (options.offered == nullptr) return absl::InvalidArgumentError("offered: null; a region of one's own is allowed");
  if (options.offered->descriptor() < 0) return absl::InvalidArgumentError("offered: a region that a peer offered");
  if (options.clock == nullptr) return absl::InvalidArgumentError("clock: null");
  if (options.log == nullptr) return absl::InvalidArgumentError("log: null");
  if (options.peers_max < 1) return absl::InvalidArgumentError("peers_max: 0; at least 1 is allowed");
  if (options.hello_timeout <= absl::ZeroDuration()) {
    return absl::InvalidArgumentError(
        absl::StrCat("hello_timeout: ", absl::FormatDuration(options.hello_timeout), "; more than 0 is allowed"));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::unique_ptr<SharedMemoryListener>> SharedMemoryListener::Create(Options options) {
  RUBATO_RETURN_IF_ERROR(CheckOptions(options));
  v1::SharedMemoryAddress address;
  RUBATO_ASSIGN_OR_RETURN(*address.mutable_boot_id(), ReadBootId());
  // Two numbers of 64 bits: nobody finds or takes the name by chance.
  address.set_socket(absl::StrFormat("rubato-%016x%016x", SystemRandom64(), SystemRandom64()));
  RUBATO_ASSIGN_OR_RETURN(FileDescriptor listening, ListenAbstract(address.socket()));
  FileDescriptor stop(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!stop.open()) return absl::ErrnoToStatus(errno, "eventfd");
  std::unique_ptr<SharedMemoryListener> listener(
      new SharedMemoryListener(std::move(options), std::move(address), std::move(listening), std::move(stop)));
  listener->thread_ = std::thread([self = listener.get()] { self->Run(); });
  return listener;
}

SharedMemoryListener::SharedMemoryListener(Options options, v1::SharedMemoryAddress address, FileDescriptor listening,
                                           FileDescriptor stop)
    : options_(std::move(options)),
      address_(std::move(address)),
      listening_(std::move(listening)),
      stop_(std::move(stop)) {}

SharedMemoryListener::~SharedMemoryListener() {
  if (!thread_.joinable()) return;
  eventfd_write(stop_.get(), 1);
  thread_.join();
}

std::shared_ptr<const SharedRegion> SharedMemoryListener::Find(uint64_t session, const v1::TaskId& task) const {
  MutexLock lock(mu_);
  const auto found = sessions_.find(session);
  if (found == sessions_.end() || !SameTask(found->second.task, task)) return nullptr;
  return found->second.region;
}

void SharedMemoryListener::Run() {
  for (;;) {
    const absl::Time now = options_.clock->Now();
    std::vector<pollfd> watched = SocketsToWatch(now);
    if (poll(watched.data(), watched.size(), PollTimeout(now)) < 0) {
      if (errno == EINTR) continue;
      options_.log->Error(
          absl::StrCat("shared memory: no further worker can connect: ", absl::ErrnoToStatus(errno, "poll").message()));
      return;
    }
    if (watched[0].revents != 0) return;
    ServePeers(watched);
    if (watched[1].revents != 0) AcceptPeers();
  }
}

std::vector<pollfd> SharedMemoryListener::SocketsToWatch(absl::Time now) const {
  std::vector<pollfd> sockets;
  sockets.reserve(kFirstPeer + peers_.size());
  sockets.push_back({.fd = stop_.get(), .events = POLLIN});
  const bool accepts = now >= accept_after_ && NewcomerCount() < kNewcomersMax;
  sockets.push_back({.fd = accepts ? listening_.get() : -1, .events = POLLIN});
  for (const Peer& peer : peers_) sockets.push_back({.fd = peer.socket.get(), .events = POLLIN});
  return sockets;
}

int SharedMemoryListener::PollTimeout(absl::Time now) const {
  absl::Time next = accept_after_ > now ? accept_after_ : absl::InfiniteFuture();
  for (const Peer& peer : peers_) {
    if (peer.session == 0) next = std::min(next, peer.hello_deadline);
  }
  if (next == absl::InfiniteFuture()) return -1;
  // Rounded up, so as not to wake before the deadline; bounded to fit.
  const absl::Duration wait = std::clamp(next - now, absl::ZeroDuration(), absl::Hours(1));
  return static_cast<int>(absl::ToInt64Milliseconds(absl::Ceil(wait, absl::Milliseconds(1))));
}

void SharedMemoryListener::AcceptPeers() {
  while (NewcomerCount() < kNewcomersMax) {
    absl::StatusOr<FileDescriptor> socket = AcceptPeer(listening_);
    const absl::Time now = options_.clock->Now();
    if (absl::IsOutOfRange(socket.status())) return;
    if (!socket.ok()) {
      if (accept_after_ == absl::InfinitePast()) {
        options_.log->Warning(absl::StrCat("shared memory: workers have to wait: ", socket.status().message()));
      }
      accept_after_ = now + kAcceptPause;
      return;
    }
    accept_after_ = absl::InfinitePast();
    Peer peer = {.socket = *std::move(socket), .hello_deadline = now + options_.hello_timeout};
    peer.description = DescribePeer(peer.socket);
    const absl::Status user = CheckPeerUser(peer.socket);
    if (!user.ok()) {
      // Whoever it is learns nothing, not even why.
      Refuse(peer, user, /*tell=*/false);
      continue;
    }
    peers_.push_back(std::move(peer));
  }
}

void SharedMemoryListener::ServePeers(const std::vector<pollfd>& watched) {
  const absl::Time now = options_.clock->Now();
  for (size_t i = 0; i < peers_.size(); ++i) {
    Peer& peer = peers_[i];
    if (watched[kFirstPeer + i].revents != 0) {
      ReadFrom(peer);
    } else if (peer.session == 0 && now >= peer.hello_deadline) {
      Refuse(
          peer,
          absl::DeadlineExceededError(absl::StrCat("no hello within ", absl::FormatDuration(options_.hello_timeout))),
          /*tell=*/true);
    }
  }
  std::erase_if(peers_, [](const Peer& peer) { return !peer.socket.open(); });
}

void SharedMemoryListener::ReadFrom(Peer& peer) {
  absl::StatusOr<Packet> packet = ReceivePacket(peer.socket);
  if (absl::IsOutOfRange(packet.status())) return;
  if (peer.session == 0) {
    const absl::StatusOr<uint64_t> session = Admit(std::move(packet));
    return session.ok() ? Welcome(peer, *session) : Refuse(peer, session.status(), /*tell=*/true);
  }
  // The socket serves to notice the peer's end: nothing is sent on it after the hello.
  if (packet.ok()) options_.log->Warning(absl::StrCat("shared memory: ", peer.description, " spoke after its hello"));
  HangUp(peer);
}

absl::StatusOr<uint64_t> SharedMemoryListener::Admit(absl::StatusOr<Packet> hello) {
  RUBATO_RETURN_IF_ERROR(hello.status());
  RUBATO_ASSIGN_OR_RETURN(v1::TaskId task, DecodeHello(hello->bytes));
  if (hello->descriptors.size() != 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("a hello with ", hello->descriptors.size(), " descriptors; 1 is allowed"));
  }
  if (IsFull()) {
    return absl::ResourceExhaustedError(absl::StrCat("all ", options_.peers_max, " places are taken"));
  }
  Session admitted = {.task = std::move(task)};
  RUBATO_ASSIGN_OR_RETURN(admitted.region,
                          SharedRegion::Map(std::move(hello->descriptors[0]), options_.peer_bytes_max));
  MutexLock lock(mu_);
  for (;;) {
    const uint64_t session = SystemRandom64();
    if (sessions_.try_emplace(session, std::move(admitted)).second) return session;
  }
}

void SharedMemoryListener::Welcome(Peer& peer, uint64_t session) {
  peer.session = session;
  // A peer that is gone by now is noticed in the next round.
  const absl::Status sent = SendPacket(peer.socket, EncodeWelcome(session), options_.offered->descriptor());
  if (!sent.ok()) {
    options_.log->Warning(absl::StrCat("shared memory: no answer to ", peer.description, ": ", sent.message()));
    HangUp(peer);
  }
}

void SharedMemoryListener::Refuse(Peer& peer, const absl::Status& reason, bool tell) {
  ++refused_total_;
  if (refused_total_ <= kRefusalsLogged || std::has_single_bit(refused_total_)) {
    options_.log->Warning(absl::StrCat("shared memory: refused ", peer.description, ": ", reason.message(), " (",
                                       refused_total_, " refused so far)"));
  }
  // As far as it goes: the peer may be gone.
  if (tell) (void)SendPacket(peer.socket, EncodeWelcome(reason), -1);
  HangUp(peer);
}

void SharedMemoryListener::HangUp(Peer& peer) {
  peer.socket.Close();
  if (peer.session == 0) return;
  Session gone;  // Declared before the lock: nothing is unmapped under it.
  MutexLock lock(mu_);
  const auto found = sessions_.find(peer.session);
  gone = std::move(found->second);
  sessions_.erase(found);
}

bool SharedMemoryListener::IsFull() const {
  MutexLock lock(mu_);
  return sessions_.size() >= options_.peers_max;
}

size_t SharedMemoryListener::NewcomerCount() const {
  return std::count_if(peers_.begin(), peers_.end(), [](const Peer& peer) { return peer.session == 0; });
}

}  // namespace rubato
