// What the verbs of lockstep ckpt have in common.
// Invariant: none of it changes anything.
// Used by training/ckpt.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "checkpoint/reader.hpp"
#include "core/error.hpp"
#include "runtime/session.hpp"

namespace lockstep::training::ckpt {

/// The newest first. Throws core::Error (usage) if there is none.
[[nodiscard]] std::vector<std::string> require_checkpoints(const std::string& folder);

/// The exit code for `error`, which is about the checkpoint `path`: ExitCode::system if this user may not read it, or
/// one of its files, because then its content is unknown.
[[nodiscard]] core::ExitCode code_of(const core::Error& error, const std::string& path);

/// "epoch 2, step 21"; epochs count from 1.
struct SavedAt {
  std::uint64_t epoch = 0;
  std::uint64_t step = 0;
  std::uint64_t samples_seen = 0;
};
[[nodiscard]] SavedAt saved_at(const checkpoint::Checkpoint& one);

/// Collective: rank 0 does the `work`, whose exit code is that of all.
[[nodiscard]] int on_first_rank(const runtime::Session& session, const std::function<core::ExitCode()>& work);

}  // namespace lockstep::training::ckpt
