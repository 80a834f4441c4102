#include "client/library/sigterm.h"

#include <signal.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <mutex>

namespace rubato::client {
namespace {

std::mutex mu;
// What the handler reads; 0: a free place. Handlers know of nothing but what is static.
std::array<std::atomic<pid_t>, 16> sidecars;
std::atomic<pid_t> owner = 0;
std::atomic<bool> asked = false;

void Handle(int signal_number) {
  const int saved_errno = errno;
  if (getpid() != owner || asked.exchange(true)) {
    signal(signal_number, SIG_DFL);
    raise(signal_number);
  } else {
    for (const std::atomic<pid_t>& sidecar : sidecars) {
      if (const pid_t process = sidecar; process != 0) kill(process, SIGTERM);
    }
  }
  errno = saved_errno;
}

bool IsOurs() {
  struct sigaction current;
  return sigaction(SIGTERM, nullptr, &current) == 0 && current.sa_handler == Handle;
}

bool Install() {
  struct sigaction current;
  if (sigaction(SIGTERM, nullptr, &current) != 0) return false;
  if (current.sa_handler == Handle) return true;
  if (current.sa_handler != SIG_DFL) return false;
  struct sigaction ours = {};
  ours.sa_handler = Handle;
  ours.sa_flags = SA_RESTART;
  asked = false;
  return sigaction(SIGTERM, &ours, nullptr) == 0;
}

}  // namespace

bool PassSigtermTo(pid_t sidecar) {
  const std::lock_guard lock(mu);
  owner = getpid();
  for (std::atomic<pid_t>& place : sidecars) {
    if (place != 0) continue;
    place = sidecar;
    if (Install()) return true;
    place = 0;
    return false;
  }
  return false;
}

void StopPassingSigtermTo(pid_t sidecar) {
  const std::lock_guard lock(mu);
  bool any = false;
  for (std::atomic<pid_t>& place : sidecars) {
    if (place == sidecar) place = 0;
    any = any || place != 0;
  }
  if (!any && IsOurs()) signal(SIGTERM, SIG_DFL);
}

}  // namespace rubato::client
