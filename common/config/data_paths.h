#ifndef RUBATO_COMMON_CONFIG_DATA_PATHS_H_
#define RUBATO_COMMON_CONFIG_DATA_PATHS_H_

#include <functional>
#include <string>

#include "proto/job_config.pb.h"

namespace rubato {

// Calls change(path) for each path of a file or folder that the job reads: the fields that are marked with
// (rubato.v1.reads_file), in the data source and elsewhere. Empty ones are left out.
void ForEachReadPath(v1::JobConfig* config, const std::function<void(std::string* path)>& change);

// Makes relative paths of files that the job reads absolute: relative to `config_directory`, if there is such a file
// or folder, otherwise to the working directory. What is at neither place is left as it is: another machine may have
// it.
void ResolveReadPaths(const std::string& config_directory, v1::JobConfig* config);

}  // namespace rubato

#endif  // RUBATO_COMMON_CONFIG_DATA_PATHS_H_
