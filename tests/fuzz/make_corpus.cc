// Writes the corpus files that are made by code: make_corpus <directory> writes update_log_*, idx_*, cifar_*, text_*,
// columns_* and libsvm_* there, each as its fuzz target's comment says.
#include <zlib.h>

#include <fstream>
#include <iostream>
#include <string>
#include <vector>

#include "common/status.h"
#include "common/storage/file.h"
#include "common/storage/update_log.h"

namespace rubato {
namespace {

void Write(const std::string& directory, const std::string& name, const std::string& bytes) {
  std::ofstream(JoinPath(directory, name), std::ios::binary) << bytes;
}

absl::StatusOr<std::string> UpdateLog(const std::string& directory) {
  const std::string path = JoinPath(directory, "log.tmp");
  RUBATO_RETURN_IF_ERROR(RemoveFile(path));
  v1::LogHeader header;
  header.set_job_name("fuzz");
  header.set_server_incarnation(5);
  RUBATO_ASSIGN_OR_RETURN(auto log, UpdateLogWriter::Create(path, header));
  v1::UpdateLogRecord plan;
  plan.mutable_plan()->set_generation(1);
  plan.mutable_plan()->add_members()->set_incarnation(9);
  RUBATO_RETURN_IF_ERROR(log->Append(plan));
  for (int step = 0; step < 2; ++step) {
    v1::UpdateLogRecord update;
    update.mutable_update()->set_step(step);
    update.mutable_update()->set_incarnation(9);
    update.mutable_update()->set_applied_version(step + 1);
    RUBATO_RETURN_IF_ERROR(log->Append(update));
  }
  RUBATO_RETURN_IF_ERROR(log->Close());
  RUBATO_ASSIGN_OR_RETURN(std::string bytes, ReadFile(path));
  RUBATO_RETURN_IF_ERROR(RemoveFile(path));
  return bytes;
}

std::string Idx(const std::vector<uint8_t>& dimensions, const std::string& payload) {
  std::string bytes = {0, 0, 8, static_cast<char>(dimensions.size())};
  for (const uint8_t dimension : dimensions) bytes += std::string{0, 0, 0, static_cast<char>(dimension)};
  return bytes + payload;
}

std::string Gzip(const std::string& bytes) {
  z_stream stream = {};
  constexpr int kGzipWindow = 15 + 16;
  deflateInit2(&stream, Z_BEST_COMPRESSION, Z_DEFLATED, kGzipWindow, 8, Z_DEFAULT_STRATEGY);
  std::string compressed(deflateBound(&stream, bytes.size()), '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
  stream.avail_in = static_cast<uInt>(bytes.size());
  stream.next_out = reinterpret_cast<Bytef*>(compressed.data());
  stream.avail_out = static_cast<uInt>(compressed.size());
  deflate(&stream, Z_FINISH);
  compressed.resize(stream.total_out);
  deflateEnd(&stream);
  return compressed;
}

std::string IdxPair(const std::string& images, const std::string& labels) {
  return images + labels + std::string{static_cast<char>(labels.size() >> 8), static_cast<char>(labels.size())};
}

absl::Status WriteAll(const std::string& directory) {
  RUBATO_ASSIGN_OR_RETURN(const std::string log, UpdateLog(directory));
  Write(directory, "update_log_whole", log + '\0');
  Write(directory, "update_log_torn", log.substr(0, log.size() - 3) + '\0');
  Write(directory, "update_log_repaired", log + '\1');
  const std::string images = Idx({3, 2, 3}, std::string(18, '\x40'));
  const std::string labels = Idx({3}, {0, 1, 3});
  Write(directory, "idx_plain", IdxPair(images, labels));
  Write(directory, "idx_gzip", IdxPair(Gzip(images), Gzip(labels)));
  Write(directory, "idx_flat", IdxPair(Idx({3, 6}, std::string(18, '\x7f')), labels));
  const std::string records = '\3' + std::string(3072, '\x40') + '\x9' + std::string(3072, '\x7f');
  Write(directory, "cifar_plain", records + '\0');
  Write(directory, "cifar_two_files", records + '\1');
  Write(directory, "cifar_gzip", Gzip(records) + '\0');
  const std::string text = "In the beginning was the Word, and the Word was with others.";
  Write(directory, "text_plain", text + '\0');
  Write(directory, "text_held_out", text + '\x40');
  Write(directory, "text_gzip", Gzip(text) + '\x40');
  const std::string columns = "y,a,b,c,d\n1,0.5,3,x,One two\n0,,,,\n";
  Write(directory, "columns_plain", columns + '\0');
  Write(directory, "columns_quoted",
        "d,c,b,a,y\r\n\"a, \"\"b\"\"\n c\",\"\",1,-2,3\r\n,,0,1e3,0\r\n" + std::string("\4"));
  Write(directory, "columns_gzip", Gzip(columns) + '\2');
  const std::string sparse = "+1 1:0.5 7:-2 18446744073709551615:1e-3\n-1 qid:3 2:0 # a comment\n";
  Write(directory, "libsvm_sparse", sparse + '\x0a');
  Write(directory, "libsvm_dense", "0 1:0.25 2:3\r\n2\r\n" + std::string(1, '\0'));
  Write(directory, "libsvm_gzip", Gzip(sparse) + '\x08');
  return absl::OkStatus();
}

}  // namespace
}  // namespace rubato

int main(int argc, char** argv) {
  const absl::Status status =
      argc == 2 ? rubato::WriteAll(argv[1]) : absl::InvalidArgumentError("usage: make_corpus <directory>");
  if (status.ok()) return 0;
  std::cerr << status << std::endl;
  return 1;
}
