// The folder in which MPI libraries keep their files.
// Invariant: it is checked before a library checks it, because some exit with code 1 (Open MPI 4).
// Used by session.cpp and relaunch.cpp.
#pragma once

namespace lockstep::runtime {

/// Throws core::Error (usage) if TMPDIR is not a folder that can be created or written to.
void require_temporary_folder();

}  // namespace lockstep::runtime
