#ifndef RUBATO_COMMON_TRACE_FLOW_ID_H_
#define RUBATO_COMMON_TRACE_FLOW_ID_H_

#include <cstdint>

#include "common/trace/trace_log.h"
#include "proto/parameter_server.pb.h"

namespace rubato {

// Arrows from a push to where it is applied.
inline constexpr TraceKind kPushFlow = {"flow", "push"};

// Names the push of one chunk in one step of a worker, the same on both sides without a word on the wire: so a trace
// can draw an arrow from the push to where it is applied. A hash; two pushes of one trace have the same one only by a
// chance of about n^2 / 2^65 for n pushes.
uint64_t PushFlowId(const v1::TaskId& worker, int64_t step, uint32_t chunk);

}  // namespace rubato

#endif  // RUBATO_COMMON_TRACE_FLOW_ID_H_
