#ifndef RUBATO_CLIENT_LIBRARY_SIDECAR_PROCESS_H_
#define RUBATO_CLIENT_LIBRARY_SIDECAR_PROCESS_H_

#include <sys/types.h>

#include <memory>
#include <string>

namespace rubato::client {

// The sidecar's process. It ends when the other end of its socket does, so this only starts it and says how it ended.
// Drain on any thread and in a signal handler; the rest on one thread.
//
//   std::string error;
//   std::unique_ptr<SidecarProcess> process = SidecarProcess::Start(options, &descriptor, &error);
class SidecarProcess {
 public:
  struct Options {
    // Empty: "rubato-sidecar" beside this library, otherwise in PATH.
    std::string program;
    // Where its standard error goes. Empty: where this process's goes.
    std::string log_path;
  };

  // Null, and what went wrong. `descriptor`: this process's end of the socket pair; the caller's.
  static std::unique_ptr<SidecarProcess> Start(const Options& options, int* descriptor, std::string* error);
  // Waits for the process's end, not long, then kills it. Not in a forked child.
  ~SidecarProcess();
  SidecarProcess(const SidecarProcess&) = delete;
  SidecarProcess& operator=(const SidecarProcess&) = delete;

  // The process that started it.
  pid_t owner() const { return owner_; }
  // Whether this process is another than the one that started it, which is this one's parent.
  bool forked() const;
  // "the sidecar (process 17) was ended by signal 9"; waits a little until it is known.
  std::string DescribeEnd();
  // Asks it to leave the job after the step at work.
  void Drain() const;
  // It is another process's: nothing is to be done with it here.
  void Abandon() { ended_ = true; }

 private:
  explicit SidecarProcess(pid_t process);
  bool AwaitEnd(double seconds);

  const pid_t owner_;
  const pid_t process_;
  // SIGTERM to this process is passed on.
  const bool passes_sigterm_;
  bool ended_ = false;
  int wait_status_ = -1;  // -1: somebody else has waited for it.
};

}  // namespace rubato::client

#endif  // RUBATO_CLIENT_LIBRARY_SIDECAR_PROCESS_H_
