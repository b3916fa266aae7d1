// The folder in which MPI libraries keep files of their own.
// Invariant: it is looked at before a library is, as some leave the program without it, with exit code 1 (Open MPI 4).
// Used by session.cpp and relaunch.cpp.
#pragma once

namespace lockstep::runtime {

/// Throws core::Error (usage) if TMPDIR names no folder that can be made or written to.
void require_temporary_folder();

}  // namespace lockstep::runtime
