#ifndef RUBATO_COMMON_PART_COPIES_PART_SERVICE_H_
#define RUBATO_COMMON_PART_COPIES_PART_SERVICE_H_

#include "common/part_copies/part_store.h"
#include "proto/part_copies.grpc.pb.h"

namespace rubato {

// A PartStore as a gRPC service.
class PartService : public v1::PartCopies::Service {
 public:
  // The store outlives it.
  explicit PartService(PartStore* store) : store_(store) {}

  grpc::Status Read(grpc::ServerContext* context, const v1::ReadPartRequest* request,
                    v1::ReadPartReply* reply) override;
  grpc::Status Write(grpc::ServerContext* context, const v1::WritePartRequest* request,
                     v1::WritePartReply* reply) override;

 private:
  PartStore* const store_;
};

}  // namespace rubato

#endif  // RUBATO_COMMON_PART_COPIES_PART_SERVICE_H_
