#include "worker/ps_client/server_places.h"

#include <cstdint>
#include <map>

#include "absl/strings/str_cat.h"

namespace rubato::worker {

absl::Status NameServersByPlace(v1::JobDescription* job) {
  std::map<uint32_t, uint32_t> places;
  for (int i = 0; i < job->servers_size(); ++i) {
    places.emplace(job->servers(i).task().index(), static_cast<uint32_t>(i));
  }
  for (int i = 0; i < job->chunks_size(); ++i) {
    v1::ChunkPlacement* chunk = job->mutable_chunks(i);
    auto place = places.find(chunk->server());
    if (place == places.end()) {
      return absl::FailedPreconditionError(
          absl::StrCat("job.chunks[", i, "].server: value ", chunk->server(), ", which is not among job.servers"));
    }
    chunk->set_server(place->second);
  }
  return absl::OkStatus();
}

}  // namespace rubato::worker
