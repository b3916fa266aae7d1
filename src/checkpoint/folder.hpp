// The folder of a run's checkpoints: one step-000001234 for each, by the number of steps; links are other names.
// Invariant: a checkpoint is whole (DONE is written last), or is recognised as incomplete and skipped. The newest whole
// one is never removed, nor anything that Lockstep has not made, and nothing through a link. A link is no checkpoint of
// the folder.
// Used by the writer and the reader of checkpoints, and by the trainer.
#pragma once

#include <cstddef>
#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep::checkpoint {

inline constexpr std::string_view index_name = "index.json";
inline constexpr std::string_view done_name = "DONE";

/// "step-000001234".
[[nodiscard]] std::string name_of(std::uint64_t n_steps);
/// "rank-00003.h5".
[[nodiscard]] std::string file_name_of(int rank);
/// Whether `name` is a result of file_name_of().
[[nodiscard]] bool is_rank_file(std::string_view name);

/// Whether `path` is a folder with files of a checkpoint, whole or not.
[[nodiscard]] bool is_checkpoint(const std::string& path);

/// Returns the checkpoints in `folder` with names of name_of(), newest first, whole or not; none if the folder does not
/// exist. Throws core::Error (system) if it cannot be listed.
[[nodiscard]] std::vector<std::string> list_checkpoints(const std::string& folder);
/// Returns the links to folders that have such names.
[[nodiscard]] std::vector<std::string> list_links(const std::string& folder);
/// Warns of those that are newer than the checkpoint `newest`; of all if it is empty.
void tell_links(const std::string& folder, const std::string& newest = "");

/// "the folder of step 192 is called step-000000999, not step-000000192": `path` has the name of another step than the
/// `content` of its index. Empty if the name is right, or that of no step.
[[nodiscard]] std::string misnamed_reason(const std::string& path, const std::string& content);
/// The same; reads the index. Empty if it cannot be read.
[[nodiscard]] std::string misnamed_reason(const std::string& path);
/// Throws core::Error (usage) for a `reason` of misnamed_reason() that is not empty.
void refuse_misnamed(const std::string& path, const std::string& reason);

/// The folder of checkpoints in a run's folder.
[[nodiscard]] std::string checkpoints_in(const std::string& run_dir);

/// The folder of checkpoints that a user means by `path`: that of a run, or itself.
[[nodiscard]] std::string folder_meant(const std::string& path);
/// Whether `path` itself is a symbolic link.
[[nodiscard]] bool is_link(const std::string& path);
/// ": there is no such folder", ": it is a file": why there is no checkpoint in `path`; empty for a folder.
[[nodiscard]] std::string absence_of(const std::string& path);

/// Returns the checkpoints that a user means by `path`: those of a run, the checkpoint itself, or those in a folder.
/// Throws as list_checkpoints().
[[nodiscard]] std::vector<std::string> find_checkpoints(const std::string& path);

/// As find_checkpoints(), but throws core::Error (usage, naming `where`) if there is none.
[[nodiscard]] std::vector<std::string> require_checkpoints(const std::string& path, std::string_view where);

/// Returns the names that give_name() has given to the checkpoint `path`, sorted.
[[nodiscard]] std::vector<std::string> names_of(const std::string& path);

/// Gives the checkpoint `path` another name, such as "best": a link beside it, which replaces an older one. Warns if it
/// fails.
void give_name(const std::string& path, const std::string& name) noexcept;

/// Restores checkpoints that a killed run was replacing, on file systems that replace by two renames: gives each its
/// name back, or removes it if the name is taken. Logs its actions. Removes nothing if `folder` is a link. No other
/// process may write there.
void restore_replaced(const std::string& folder);

/// Renames the checkpoints in `folder` after more than `n_steps` steps, so that they no longer count as checkpoints,
/// and removes their other names. Returns their old paths. Throws std::exception if it cannot.
std::vector<std::string> set_aside_newer(const std::string& folder, std::uint64_t n_steps);

/// Returns what set_aside_newer() has made in `folder`, sorted.
[[nodiscard]] std::vector<std::string> list_set_aside(const std::string& folder);

/// Why `path` may not be removed as a checkpoint of ours, whole or not: "it is a symbolic link". Empty if it may.
[[nodiscard]] std::string foreign_reason(const std::string& path);
/// "'PATH' is left alone, as it is not a checkpoint made by Lockstep: REASON".
[[nodiscard]] std::string left_alone_text(const std::string& path, const std::string& reason);

/// Removes a checkpoint, whole or not, and its names; for readers it vanishes at once. Throws core::Error if that
/// fails, or if foreign_reason() forbids it.
void remove_checkpoint(const std::string& path);

/// Removes checkpoints that are older than `newest`, a whole one. Keeps n_kept - 1 that are marked as done, those with
/// another name, and the newest one of at most `n_sound_steps` steps. Warns if it fails. Leaves alone, with one
/// warning, what has the name of another step, what foreign_reason() forbids, and everything if the folder is a link:
/// `told` has what was already reported. Newer checkpoints, from which a run did not resume, stay until the run
/// replaces them.
void remove_older(const std::string& newest, std::size_t n_kept, std::uint64_t n_sound_steps,
                  std::set<std::string>& told) noexcept;

}  // namespace lockstep::checkpoint
