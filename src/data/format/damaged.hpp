// The error for bytes that differ from what was written: exit code 1, unlike wrong usage.
// Invariant: `what` is one line that also makes sense after the name of the file; `where` is the file's path.
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

/// Calls `read` on a file whose length was correct before: if it ends too soon now, it is damaged.
template <class Read>
void read_whole(const std::string& path, Read&& read) {
  try {
    read();
  } catch (const core::Error& error) {
    if (error.code() != core::ExitCode::usage) throw;
    fail_damaged("truncated since it was opened: " + error.problem().what, path);
  }
}

}  // namespace lockstep::data
