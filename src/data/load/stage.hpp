// A copy of a set on each node, for nodes whose own disks are faster than the shared ones.
// Invariant: a copy exists whole and verified, or not at all.
// Used by the trainer and by `lockstep shard bench` (--stage).
#pragma once

#include <functional>
#include <string>

#include "runtime/communicator.hpp"

namespace lockstep::data {

/// Collective: copies the set's files into a folder within `parent` (node-local) once per node, verified by digest.
/// Returns that folder, which is opened instead; its name follows from the manifest, and correct existing files are
/// kept. Calls `on_file` as files are done. A signal ends it early: then it returns `set_folder`.
std::string stage(const runtime::Communicator& world, const std::string& set_folder, const std::string& parent,
                  const std::function<void()>& on_file = {});

}  // namespace lockstep::data
