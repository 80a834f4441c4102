#ifndef RUBATO_COMMON_PART_COPIES_PART_SERVICE_H_
#define RUBATO_COMMON_PART_COPIES_PART_SERVICE_H_

#include "common/limits/refusal_log.h"
#include "common/part_copies/part_store.h"
#include "proto/part_copies.grpc.pb.h"

namespace rubato {

// A PartStore as a gRPC service.
class PartService : public v1::PartCopies::Service {
 public:
  // The store outlives it, and so does what is told of who is refused, which may be null.
  explicit PartService(PartStore* store, RefusalLog* refusals = nullptr) : store_(store), refusals_(refusals) {}

  grpc::Status Read(grpc::ServerContext* context, const v1::ReadPartRequest* request,
                    v1::ReadPartReply* reply) override;
  grpc::Status Write(grpc::ServerContext* context, const v1::WritePartRequest* request,
                     v1::WritePartReply* reply) override;

 private:
  PartStore* const store_;
  RefusalLog* const refusals_;
};

}  // namespace rubato

#endif  // RUBATO_COMMON_PART_COPIES_PART_SERVICE_H_
