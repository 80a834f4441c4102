#include "common/limits/acceptor.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/limits/listening_sockets.h"
#include "common/sockets.h"
#include "common/status.h"

namespace rubato {
namespace {

// Without descriptors, until they are asked for again.
constexpr absl::Duration kPause = absl::Milliseconds(100);

}  // namespace

Acceptor::Acceptor(Options options)
    : options_(std::move(options)),
      clock_(options_.clock == nullptr ? &real_clock_ : options_.clock),
      rate_(options_.connections, options_.period) {}

absl::StatusOr<std::unique_ptr<Acceptor>> Acceptor::Listen(Options options,
                                                           std::shared_ptr<grpc::ServerCredentials> credentials,
                                                           grpc::ServerBuilder* builder) {
  std::unique_ptr<Acceptor> acceptor(new Acceptor(std::move(options)));
  RUBATO_RETURN_IF_ERROR(acceptor->Bind());
  acceptor->grpc_ = builder->experimental().AddExternalConnectionAcceptor(
      grpc::ServerBuilder::experimental_type::ExternalConnectionType::FROM_FD, std::move(credentials));
  return acceptor;
}

absl::Status Acceptor::Bind() {
  RUBATO_ASSIGN_OR_RETURN(ListeningSockets listening, ListenOn(options_.listen));
  listeners_ = std::move(listening.sockets);
  port_ = listening.port;
  const unsigned milliseconds = static_cast<unsigned>(absl::ToInt64Milliseconds(options_.unacknowledged));
  for (const FileDescriptor& listener : listeners_) {
    setsockopt(listener.get(), IPPROTO_TCP, TCP_USER_TIMEOUT, &milliseconds, sizeof(milliseconds));
  }
  stop_ = FileDescriptor(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (stop_.open()) return absl::OkStatus();
  return absl::UnavailableError(absl::StrCat("cannot listen on ", options_.listen, ": ", strerror(errno)));
}

Acceptor::~Acceptor() { Stop(); }

void Acceptor::Start() {
  thread_ = std::thread([this] { Run(); });
}

void Acceptor::Stop() {
  if (thread_.joinable()) {
    eventfd_write(stop_.get(), 1);
    thread_.join();
  }
  listeners_.clear();
}

void Acceptor::Run() {
  std::vector<pollfd> waits = {{stop_.get(), POLLIN, 0}};
  for (const FileDescriptor& listener : listeners_) waits.push_back({listener.get(), POLLIN, 0});
  bool paused = false;
  for (;;) {
    // Those that wait stay in the backlog during a pause.
    const int ready = poll(waits.data(), paused ? 1 : waits.size(),
                           paused ? static_cast<int>(absl::ToInt64Milliseconds(kPause)) : -1);
    if (ready < 0 && errno != EINTR) return;
    if (ready > 0 && waits[0].revents != 0) return;
    paused = false;
    for (const FileDescriptor& listener : listeners_) paused = !AcceptAll(listener.get()) || paused;
  }
}

bool Acceptor::AcceptAll(int listener) {
  for (;;) {
    sockaddr_storage name = {};
    socklen_t size = sizeof(name);
    const int connection = accept4(listener, reinterpret_cast<sockaddr*>(&name), &size, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (connection < 0) {
      if (IsOutOfDescriptors(errno)) {
        Note("everybody", "descriptors", absl::StrCat("connections wait, as there are none: ", strerror(errno)));
        return false;
      }
      if (errno == EAGAIN) return true;
      // Others are of the connection, which has gone again.
      if (errno == EINTR || errno == ECONNABORTED || errno == EPROTO || errno == EPERM) continue;
      return false;
    }
    if (!Admit(connection, HostOf(name, size))) {
      close(connection);
      continue;
    }
    grpc::experimental::ExternalConnectionAcceptor::NewConnectionParameters parameters;
    parameters.listener_fd = listener;
    parameters.fd = connection;  // Which is gRPC's from here on.
    grpc_->HandleNewConnection(&parameters);
  }
}

bool Acceptor::Admit(int connection, const std::string& host) {
  const int spared = FirstSparedDescriptor(options_.spare_descriptors);
  if (connection >= spared) {
    Note(host, "descriptors", absl::StrCat("a connection: this process has ", spared, " descriptors in use"));
    return false;
  }
  if (rate_.Take(host, clock_->Now())) return true;
  Note(host, "connections",
       absl::StrCat("a connection: ", host, " has made ", options_.connections, " within ",
                    absl::FormatDuration(options_.period)));
  return false;
}

void Acceptor::Note(const std::string& host, absl::string_view kind, absl::string_view why) {
  if (options_.refusals != nullptr) options_.refusals->Note(host, kind, why);
}

}  // namespace rubato
