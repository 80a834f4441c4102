#include "cli/launch/stop_signals.h"

#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "common/status.h"

namespace rubato {
namespace {

sigset_t Signals() {
  sigset_t signals;
  sigemptyset(&signals);
  for (int signal : {SIGINT, SIGTERM, SIGHUP}) sigaddset(&signals, signal);
  return signals;
}

absl::Status SystemError(absl::string_view call) {
  return absl::InternalError(absl::StrCat(call, ": ", std::strerror(errno)));
}

absl::Status Watch(int events, int descriptor) {
  struct epoll_event event = {};
  event.events = EPOLLIN;
  return epoll_ctl(events, EPOLL_CTL_ADD, descriptor, &event) == 0 ? absl::OkStatus() : SystemError("epoll_ctl");
}

}  // namespace

absl::StatusOr<std::unique_ptr<StopSignals>> StopSignals::Create() {
  sigset_t signals = Signals();
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  FileDescriptor taken(signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK));
  if (!taken.open()) return SystemError("signalfd");
  FileDescriptor events(epoll_create1(EPOLL_CLOEXEC));
  if (!events.open()) return SystemError("epoll");
  RUBATO_RETURN_IF_ERROR(Watch(events.get(), taken.get()));
  return std::unique_ptr<StopSignals>(new StopSignals(std::move(taken), std::move(events)));
}

StopSignals::~StopSignals() {
  sigset_t signals = Signals();
  pthread_sigmask(SIG_UNBLOCK, &signals, nullptr);
}

absl::Status StopSignals::AlsoAtEndOf(int input) {
  RUBATO_RETURN_IF_ERROR(Watch(events_.get(), input));
  input_ = input;
  return absl::OkStatus();
}

bool StopSignals::InputHasEnded() {
  struct pollfd event = {input_, POLLIN, 0};
  char ignored[4096];
  while (input_ >= 0 && poll(&event, 1, 0) == 1) {
    const ssize_t got = read(input_, ignored, sizeof(ignored));
    if (got > 0 || (got < 0 && errno == EINTR)) continue;
    epoll_ctl(events_.get(), EPOLL_CTL_DEL, input_, nullptr);
    input_ = -1;
    return true;
  }
  return false;
}

bool StopSignals::Take() {
  struct signalfd_siginfo info;
  bool taken = false;
  while (read(signals_.get(), &info, sizeof(info)) == static_cast<ssize_t>(sizeof(info))) taken = true;
  if (taken) reason_ = "stopped by a signal";
  if (!InputHasEnded()) return taken;
  if (!taken) reason_ = "stopped by the end of its standard input";
  return true;
}

}  // namespace rubato
