// index.json of a checkpoint: its files, which parts of which tensors they contain, and all digests.
// Invariant: an index that is read equals what was written; share/schemas/checkpoint-1.schema.json has the format.
// Used by the writer and the reader of checkpoints.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "checkpoint/box.hpp"

namespace lockstep::checkpoint {

/// A part of one tensor in a file.
struct PieceRecord {
  Box box{};
  std::string digest{};  ///< of its values
};

/// A file that one rank wrote.
struct FileRecord {
  std::string name{};
  std::uint64_t bytes = 0;
  std::string digest{};  ///< of the whole file, because a flipped bit may be in HDF5's own data
  std::vector<PieceRecord> pieces{};
};

struct Index {
  std::string content{};  ///< the text of a JSON object: what the owner of the checkpoint stores beside tensors
  std::vector<FileRecord> files{};
};

/// How to go on with an index of a newer format.
inline constexpr std::string_view newer_fix = "use a newer Lockstep";

[[nodiscard]] std::string to_text(const FileRecord& file);
/// Throws core::Error (usage) if the text is not from to_text().
[[nodiscard]] FileRecord parse_file_record(std::string_view text);

[[nodiscard]] std::string to_text(const Index& index);
/// Throws core::Error (usage) naming `where` and the field if it is not an index, has a newer format, or is impossible:
/// a path as a file's name, rows that a tensor does not have, missing rows, an impossible position of the run.
[[nodiscard]] Index parse_index(std::string_view text, const std::string& where);

}  // namespace lockstep::checkpoint
