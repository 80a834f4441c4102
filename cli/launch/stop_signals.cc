#include "cli/launch/stop_signals.h"

#include <pthread.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "absl/strings/str_cat.h"

namespace rubato {
namespace {

sigset_t Signals() {
  sigset_t signals;
  sigemptyset(&signals);
  for (int signal : {SIGINT, SIGTERM, SIGHUP}) sigaddset(&signals, signal);
  return signals;
}

}  // namespace

absl::StatusOr<std::unique_ptr<StopSignals>> StopSignals::Create() {
  sigset_t signals = Signals();
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  int descriptor = signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK);
  if (descriptor < 0) return absl::InternalError(absl::StrCat("signalfd: ", std::strerror(errno)));
  return std::unique_ptr<StopSignals>(new StopSignals(descriptor));
}

StopSignals::~StopSignals() {
  close(descriptor_);
  sigset_t signals = Signals();
  pthread_sigmask(SIG_UNBLOCK, &signals, nullptr);
}

bool StopSignals::Take() {
  struct signalfd_siginfo info;
  bool taken = false;
  while (read(descriptor_, &info, sizeof(info)) == static_cast<ssize_t>(sizeof(info))) taken = true;
  return taken;
}

}  // namespace rubato
