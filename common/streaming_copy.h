#ifndef RUBATO_COMMON_STREAMING_COPY_H_
#define RUBATO_COMMON_STREAMING_COPY_H_

#include <cstddef>

namespace rubato {

// memcpy of what the nearest caches do not hold: messages that have come, and where they go. glibc's copies more than a
// few KiB by `rep movsb`. On AMD's processors that waits for one line after another where vectors wait for several; on
// Intel's it is the faster one.
void ColdCopy(void* to, const void* from, size_t bytes);

// memcpy past the caches: what is written is not read from memory first, and does not take the place of what is in use.
// For what is read next when the caches would have lost it anyway; otherwise memcpy is faster. Nobody may read the
// bytes before FinishStreamingCopies.
void StreamingCopy(void* to, const void* from, size_t bytes);

// After it, this thread's streaming copies are ordered with its other writes, as if they had been made by memcpy.
void FinishStreamingCopies();

}  // namespace rubato

#endif  // RUBATO_COMMON_STREAMING_COPY_H_
