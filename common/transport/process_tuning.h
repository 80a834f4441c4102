#ifndef RUBATO_COMMON_TRANSPORT_PROCESS_TUNING_H_
#define RUBATO_COMMON_TRANSPORT_PROCESS_TUNING_H_

#include <optional>
#include <string>

#include "absl/strings/string_view.h"

namespace rubato {

// Has what is allocated be in huge pages where the system gives them to those who ask ("madvise" is the choice in
// /sys/kernel/mm/transparent_hugepage/enabled): what a message touches lies all over the heap, and with pages of 4 KiB
// each place costs a walk through the page tables. glibc asks for them only if an environment variable says so when a
// program starts (GLIBC_TUNABLES, from glibc 2.35 on), so that this starts the program anew, in the same process and
// with the same arguments, if it is not set: to be called before anything else is done (docs/decisions/0044). If that
// fails the pages are small.
void UseHugePages();

// What GLIBC_TUNABLES has to be for it, of what it is (empty: not set) and the text of that file; nothing: the program
// stays as it is.
std::optional<std::string> TunablesForHugePages(absl::string_view tunables, absl::string_view enabled);

// Settings of the whole process that gRPC is faster with. To be called once, before gRPC is used.
//
// Freed memory is kept instead of given back to the system at once: gRPC allocates and frees buffers for every message,
// and returning and faulting in their pages again is what costs most for messages of 1 MiB and more (glibc alone).
// Abseil's mutexes do not look for deadlocks.
void TuneProcess();

// Tells the system that the calling thread, and the threads and processes that it starts from now on, have work to do
// rather than somebody to answer: when they wake up they do not take a processor from what runs there (SCHED_BATCH,
// sched(7)). Where processors are fewer than what wants to run, each then does more at a time. Nothing happens where
// the system refuses.
void ScheduleAsBatch();

// The opposite, for a coordinator and for commands that somebody waits for: when they wake up they take the processor
// from what runs there, and where many wait for it their turn comes soon, and is short (a slice of 0.1 ms;
// sched_setattr(2), from Linux 6.12 on; before it they wait for their turn as others do).
void ScheduleToAnswer();

}  // namespace rubato

#endif  // RUBATO_COMMON_TRANSPORT_PROCESS_TUNING_H_
