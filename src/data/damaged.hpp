// The error for bytes that are not what was written: exit code 1, unlike wrong usage.
// Invariant: `what` is one line that also makes sense behind the name of the file; `where` is the file's path.
// Used by the readers of data/.
#pragma once

#include <string>

#include "core/error.hpp"

namespace lockstep::data {

[[noreturn]] inline void fail_damaged(const std::string& what, const std::string& path) {
  throw core::Error{
      core::ExitCode::failed,
      {.what = what, .where = path, .fix = "copy or make the set again; `lockstep shard verify` names all damage"}};
}

}  // namespace lockstep::data
