// A file of tensors with its name for messages, and the flag that named it.
// Invariant: the user can fix usage errors by naming another file; only our own files are called damaged.
// Used by the readers of weights.
#pragma once

#include <string>
#include <utility>

#include "core/error.hpp"

namespace lockstep::checkpoint {

struct NamedFile {
  std::string path{};
  std::string flag{};
};

/// "'FILE' is not ...".
[[noreturn]] inline void refuse(const NamedFile& named, const std::string& what, std::string expected,
                                std::string fix) {
  core::fail_usage({.what = "'" + named.path + "' " + what,
                    .where = named.flag,
                    .expected = std::move(expected),
                    .fix = std::move(fix)});
}

[[noreturn]] inline void fail_damaged(const NamedFile& named, const std::string& what) {
  throw core::Error{core::ExitCode::failed,
                    {.what = "'" + named.path + "' is damaged: " + what,
                     .where = named.flag,
                     .fix = "copy the file again, or use an older one"}};
}

}  // namespace lockstep::checkpoint
