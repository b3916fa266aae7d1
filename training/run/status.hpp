// The status.json of a run, which its directory writes and in which other processes of the run tell a failure.
// Invariant: after another process has told a failure, no `running` or `stopped` stays in the file, in whatever order
// the two write. The file appears whole, except on a full disk.
// Used by training/run/directory and run.
#pragma once

#include <string>
#include <string_view>

#include "io/folder.hpp"
#include "training/run/record.hpp"

namespace lockstep::training {

inline constexpr const char* status_name = "status.json";

/// The state in the status.json of the run folder `folder`: "finished"; empty if it cannot be read.
[[nodiscard]] std::string state_in(const std::string& folder) noexcept;

/// A report of several lines as one message: "a\n  b\n" becomes "a; b".
[[nodiscard]] std::string message_of(std::string_view report);

/// Whether another process of the run, such as a guard, has ended it, while this one continues for a moment. It knows
/// the cause; a signal that stops this process may be a consequence.
[[nodiscard]] bool was_ended_by_others(const io::Folder& folder) noexcept;

/// For the holder of the run's lock: replaces the file. If others have told a failure since the lock was taken, it
/// becomes `failed` instead of `running` or `stopped`. Throws core::Error if it cannot be written.
void write_status(const io::Folder& folder, const Status& status);

/// For processes that are left of a run whose directory's owner cannot end it, such as other ranks, guards and
/// watchdogs: in the status.json in `folder` a `running` state becomes `failed`, with `reason` as its message, or the
/// failure that was told first; other states stay. A file that does not exist, is a link or cannot be replaced stays as
/// it is.
void mark_failed(const io::Folder& folder, const std::string& reason) noexcept;
/// The same for a process that has not opened the folder, only knows its note_of(), and is on the same node: nothing if
/// the folder was moved, or another is in its place.
void mark_noted_failed(const std::string& note, const std::string& reason) noexcept;
[[nodiscard]] std::string note_of(const io::Folder& folder);

}  // namespace lockstep::training
