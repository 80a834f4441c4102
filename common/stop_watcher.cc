#include "common/stop_watcher.h"

#include <pthread.h>
#include <signal.h>

#include <utility>

namespace rubato {
namespace {

sigset_t Watched() {
  sigset_t signals;
  sigemptyset(&signals);
  // SIGUSR1 is how the destructor wakes the thread.
  for (int signal : {SIGINT, SIGTERM, SIGUSR1}) sigaddset(&signals, signal);
  return signals;
}

}  // namespace

StopWatcher::StopWatcher(std::function<void(absl::string_view)> on_stop) {
  const sigset_t signals = Watched();
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  thread_ = std::thread([signals, on_stop = std::move(on_stop)] {
    for (;;) {
      int signal = 0;
      if (sigwait(&signals, &signal) != 0 || signal == SIGUSR1) return;
      on_stop(signal == SIGINT ? "SIGINT" : "SIGTERM");
    }
  });
}

StopWatcher::~StopWatcher() {
  pthread_kill(thread_.native_handle(), SIGUSR1);
  thread_.join();
}

}  // namespace rubato
