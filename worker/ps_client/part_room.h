#ifndef RUBATO_WORKER_PS_CLIENT_PART_ROOM_H_
#define RUBATO_WORKER_PS_CLIENT_PART_ROOM_H_

#include "common/model_spec.h"
#include "proto/coordinator.pb.h"
#include "worker/ps_client/gradient_encoder.h"
#include "worker/ps_client/worker_part.h"

namespace rubato::worker {

// A worker's part of a checkpoint with room for the residuals that the encoder keeps, and for so many slots of every
// chunk; nothing is in it yet.
WorkerPart MakePartRoom(const v1::JobDescription& job, const ModelSpec& spec, GradientEncoder* encoder, int slots);

// The encoder's residuals as they are now, in a part of their own; and the other way. To be used while nothing is
// encoded.
WorkerPart CopyResiduals(const v1::JobDescription& job, const ModelSpec& spec, GradientEncoder* encoder);
void PutResiduals(const WorkerPart& part, GradientEncoder* encoder);

}  // namespace rubato::worker

#endif  // RUBATO_WORKER_PS_CLIENT_PART_ROOM_H_
