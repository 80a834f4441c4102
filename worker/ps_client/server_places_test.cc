#include "worker/ps_client/server_places.h"

#include <gtest/gtest.h>

namespace rubato::worker {
namespace {

v1::JobDescription JobOf(std::initializer_list<uint32_t> servers, std::initializer_list<uint32_t> chunks) {
  v1::JobDescription job;
  for (uint32_t server : servers) job.add_servers()->mutable_task()->set_index(server);
  for (uint32_t server : chunks) job.add_chunks()->set_server(server);
  return job;
}

TEST(ServerPlacesTest, ChunksFindTheirServersAlthoughOneIsMissing) {
  v1::JobDescription job = JobOf({1, 3}, {3, 1, 3});
  ASSERT_TRUE(NameServersByPlace(&job).ok());
  EXPECT_EQ(job.chunks(0).server(), 1u);
  EXPECT_EQ(job.chunks(1).server(), 0u);
  EXPECT_EQ(job.chunks(2).server(), 1u);
}

TEST(ServerPlacesTest, AChunkOfNobodyIsRefused) {
  v1::JobDescription job = JobOf({1, 3}, {3, 0});
  const absl::Status status = NameServersByPlace(&job);
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(status.message(), "job.chunks[1].server: value 0, which is not among job.servers");
}

}  // namespace
}  // namespace rubato::worker
