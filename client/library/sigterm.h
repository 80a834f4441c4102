#ifndef RUBATO_CLIENT_LIBRARY_SIGTERM_H_
#define RUBATO_CLIENT_LIBRARY_SIGTERM_H_

#include <sys/types.h>

namespace rubato::client {

// Passes this process's SIGTERM on to a sidecar, which then leaves the job after the step at work, if nobody else
// handles the signal. A second SIGTERM ends the process, as it would without this. A forked child's SIGTERM is its own.
// False: somebody else handles it, or there are too many sidecars. Both on any thread.
bool PassSigtermTo(pid_t sidecar);
// The signal is again what it was once no sidecar is left.
void StopPassingSigtermTo(pid_t sidecar);

}  // namespace rubato::client

#endif  // RUBATO_CLIENT_LIBRARY_SIGTERM_H_
