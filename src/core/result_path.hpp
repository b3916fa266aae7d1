// Places of results, and places where they must not be: folders that are sets of shards.
// Invariant: writes nothing; a folder is a set if its manifest.json begins like those of `lockstep shard`.
// Used by all flags that name a file or folder for results.
#pragma once

#include <string>
#include <string_view>

namespace lockstep::core {

/// The file behind symbolic links, even if it does not exist yet. For links in a circle, one of them.
[[nodiscard]] std::string behind_links(const std::string& path);

/// Throws core::Error (usage, naming `flag`) if `path` leads through a link that another user has made in a sticky
/// folder such as /tmp.
void refuse_link_of_others(const std::string& path, std::string_view flag);

/// Throws core::Error (usage, naming `flag`) if this process cannot replace what is at `path`: it belongs to another
/// user in a sticky folder, or is immutable.
void refuse_irreplaceable(const std::string& path, std::string_view flag);

/// Whether `folder` is a set of shards, whole or damaged.
[[nodiscard]] bool is_shard_set(const std::string& folder);

/// Throws core::Error (usage, naming `flag`) if the file `path`, or what a link of this name leads to, would be inside
/// a set of shards: a result would replace one of its files, or be a surplus file.
void refuse_in_shard_set(const std::string& path, std::string_view flag);

}  // namespace lockstep::core
